"""Loads and validates all inputs of a run; opens papers' texts one at a time.

A folder holds `PMC*.md` or `.txt`, the stem being the id; a file is JSONL with `pmcid`
and `text`. Loading reads every text that is needed once, to know that it decodes and
is not blank, and keeps only where it stands.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from jobs.kit.inputs.rows import InputFindings
from jobs.kit.inputs.sampling import draw_sample, report_sample
from jobs.paper_investigation.bench import (
    ANY_ID,
    PMCID,
    paper_id,
    question_files,
    read_bench,
    read_questions,
    read_sentences,
    unsourced,
)
from jobs.paper_investigation.data import (
    WORDING,
    BenchPaper,
    InvestigationDataset,
    PaperQuestion,
)
from jobs.paper_investigation.rows import Encoding, read_rows, unreadable
from jobs.paper_investigation.settings import PIPELINES, InvestigationSettings
from runner.errors import DatasetError, UsageError
from runner.job import InputFile
from runner.json_entries import BOM

SUFFIXES = (".md", ".txt")

CACHED_TEXTS = 16
"""Texts held at once: those of the papers whose questions are under way."""

_ID_LINE = re.compile(r"^\*\*PMCID:\*\*\s*(\S+)", re.MULTILINE)
_TITLE = re.compile(r"^#\s+(\S.*?)\s*$", re.MULTILINE)
_HEAD = 4_000  # characters in which the id and the title are looked for


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFile:
    """A paper that is a file of its own."""

    path: Path

    def read(self, encoding: Encoding) -> str:
        """The text; `UnicodeDecodeError` under "strict"."""
        return _plain(self.path.read_bytes(), encoding)


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonLine:
    """A paper that is one line of a JSONL file."""

    path: Path
    start: int
    size: int

    def read(self, encoding: Encoding) -> str:
        """The line's `text`."""
        with self.path.open("rb") as file:
            file.seek(self.start)
            line = _plain(file.read(self.size), encoding)
        return _unix(msgspec.json.decode(line)["text"])


class PaperFiles:
    """Texts by paper id; holds places, and the last few texts that were asked for."""

    def __init__(
        self, locations: Mapping[str, TextFile | JsonLine], encoding: Encoding
    ) -> None:
        self._locations = locations
        self._encoding: Encoding = encoding
        self._text = functools.lru_cache(maxsize=CACHED_TEXTS)(self._read)

    def __contains__(self, pmcid: str) -> bool:
        return pmcid in self._locations

    def __iter__(self) -> Iterator[str]:
        return iter(self._locations)

    def __len__(self) -> int:
        return len(self._locations)

    def text(self, pmcid: str) -> str:
        """The paper's text with line ends as LF; `KeyError` where there is none."""
        return self._text(pmcid)

    def title(self, pmcid: str) -> str | None:
        """The text's first heading; None without one, or without the text."""
        if pmcid not in self:
            return None
        heading = _TITLE.search(self.text(pmcid)[:_HEAD])
        return heading[1] if heading else None

    def _read(self, pmcid: str) -> str:
        return self._locations[pmcid].read(self._encoding)


def open_papers(
    settings: InvestigationSettings, wanted: Container[str], findings: InputFindings
) -> PaperFiles:
    """The texts of the *wanted* papers; the others are counted and left alone."""
    path = settings.papers
    if path is None:
        return PaperFiles({}, settings.encoding_errors)
    locations = (
        _from_file(path, settings, wanted, findings)
        if path.is_file()
        else _from_folder(path, settings, wanted, findings)
    )
    return PaperFiles(locations, settings.encoding_errors)


def _from_folder(
    folder: Path,
    settings: InvestigationSettings,
    wanted: Container[str],
    findings: InputFindings,
) -> dict[str, TextFile | JsonLine]:
    files = _paper_files(folder, settings)
    locations: dict[str, TextFile | JsonLine] = {}
    for pmcid, path in files.items():
        if pmcid not in wanted:
            _notice_unwanted(pmcid, folder.name, findings)
            continue
        text_file = TextFile(path=path)
        text = _checked(text_file, settings.encoding_errors, findings)
        stated = _ID_LINE.search(text[:_HEAD])
        if stated and stated[1] != pmcid:
            findings.add(
                "pmcid_disagrees",
                "warn",
                folder.name,
                "Some papers state another PMCID than their file name, which counts.",
                example=f"{path.name} states {stated[1][:64]}",
            )
        if text.strip():
            locations[pmcid] = text_file
    return locations


def _paper_files(folder: Path, settings: InvestigationSettings) -> dict[str, Path]:
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        raise unreadable(folder, error) from error
    shape = ANY_ID if settings.any_id else PMCID
    files: dict[str, Path] = {}
    for path in paths:
        if path.suffix not in SUFFIXES or not shape.fullmatch(path.stem):
            continue
        twin = files.setdefault(path.stem, path)
        if twin is not path:
            raise DatasetError(
                f"{folder.name}: {twin.name} and {path.name} are the same paper "
                "(keep one of the two)."
            )
    if not files:
        raise DatasetError(
            f"{folder}: no paper in it (files are named by id, such as PMC123.md; "
            "other names need --any-id)."
        )
    return files


def _from_file(
    path: Path,
    settings: InvestigationSettings,
    wanted: Container[str],
    findings: InputFindings,
) -> dict[str, TextFile | JsonLine]:
    locations: dict[str, TextFile | JsonLine] = {}
    lines: dict[str, int] = {}
    for row in read_rows(path, settings.encoding_errors, findings):
        pmcid = paper_id(row, settings)
        first = lines.setdefault(pmcid, row.line)
        if first != row.line:
            raise row.error(
                f"{pmcid} occurs on line {first} already (keep one of the two)"
            )
        if "text" not in row.fields:
            raise row.error("text is missing (leave it empty for a paper without one)")
        if pmcid not in wanted:
            _notice_unwanted(pmcid, path.name, findings)
        elif row.text("text"):
            locations[pmcid] = JsonLine(path=path, start=row.start, size=row.size)
    return locations


def _notice_unwanted(pmcid: str, where: str, findings: InputFindings) -> None:
    findings.add(
        "papers_not_needed",
        "info",
        where,
        "Some papers are named by no line of the bench, or by no question.",
        example=pmcid,
    )


def _checked(text_file: TextFile, encoding: Encoding, findings: InputFindings) -> str:
    try:
        return text_file.read("strict")
    except OSError as error:
        raise unreadable(text_file.path, error) from error
    except UnicodeDecodeError as error:
        if encoding == "strict":
            raise DatasetError(
                f"{text_file.path.name}: byte {error.start} is not UTF-8 "
                "(save the file as UTF-8, or use --encoding-errors replace)."
            ) from error
        findings.add(
            "replaced_bytes",
            "warn",
            text_file.path.parent.name,
            "Bytes that are not UTF-8 were replaced in some papers.",
            example=text_file.path.name,
        )
        return text_file.read(encoding)


def _plain(data: bytes, encoding: Encoding) -> str:
    return _unix(data.removeprefix(BOM).decode(errors=encoding))


def _unix(text: str) -> str:
    """LF line ends, so that a checkout on another system asks the same."""
    return text.replace("\r\n", "\n")


SAMPLE = Path(__file__).parent / "sample"

DATA = ("bench", "papers", "questions", *PIPELINES, "sentence_bench")
"""The settings that name data; without any of them the sample is used."""

INPUTS = (*DATA, "prompts")
"""The settings that name files."""


def with_sample(settings: InvestigationSettings) -> InvestigationSettings:
    """Settings that a run can start from.

    Where no input is named at all, the shipped sample's files are filled in; the
    returned object is the given one otherwise, so a caller can tell by identity.

    Raises:
        UsageError: some inputs are named, and one that the mode needs is not.
    """
    if all(getattr(settings, name) is None for name in DATA):
        return settings.model_copy(
            update={
                "bench": SAMPLE / "variant_bench.jsonl",
                "papers": SAMPLE / "papers",
                "questions": SAMPLE / "questions",
                "sentence_bench": SAMPLE / "sentence_bench.jsonl",
            }
        )
    for name in _needed(settings):
        if getattr(settings, name) is None:
            raise UsageError(
                f"Mode {settings.mode} needs --{name}; name no input at all to run "
                "on the shipped sample."
            )
    if settings.mode != "extract" and not _names_questions(settings):
        raise UsageError(
            f"Mode {settings.mode} needs --questions, or a file for one of "
            f"{', '.join(settings.pipelines)}."
        )
    return settings


def inputs(settings: InvestigationSettings) -> tuple[InputFile, ...]:
    """The files and folders that `load` reads under these settings."""
    named_paths = (
        ("prompts", settings.prompts),
        ("bench", settings.bench),
        ("papers", settings.papers),
        *question_files(settings).items(),
        ("sentence_bench", settings.sentence_bench),
    )
    return tuple(
        InputFile(setting=name, path=path) for name, path in named_paths if path
    )


def load(settings: InvestigationSettings) -> InvestigationDataset:
    """Read and validate the inputs that are named.

    An imported run may name none: its answers carry their own truth.
    """
    findings = InputFindings()
    bench: tuple[BenchPaper, ...] = ()
    if settings.bench is not None:
        bench = read_bench(settings.bench, settings, findings)
    questions: Mapping[str, tuple[PaperQuestion, ...]] = read_questions(
        settings, findings
    )
    if settings.mode == "questions":
        questions = _some_questions(questions, settings.limit, findings)
    else:
        bench = _some_papers(bench, questions, settings.limit, findings)
    wanted = questions if settings.mode == "questions" else {p.pmcid for p in bench}
    papers = open_papers(settings, wanted, findings)
    _notice_cut(papers, settings, findings)
    dataset = InvestigationDataset(
        settings=settings,
        prompts=WORDING.book(settings.prompts, settings.profile),
        bench=bench,
        papers=papers,
        questions=questions,
        sentences=_sentences(settings, findings),
    )
    _notice_unsourced(dataset, findings)
    return replace(dataset, findings=findings.findings())


def _sentences(
    settings: InvestigationSettings, findings: InputFindings
) -> Mapping[tuple[str, str], tuple[str, ...]]:
    if settings.sentence_bench is None:
        return {}
    return read_sentences(settings.sentence_bench, settings, findings)


def _needed(settings: InvestigationSettings) -> tuple[str, ...]:
    if settings.mode != "questions":
        return ("bench", "papers")
    return () if settings.closed_book else ("papers",)


def _names_questions(settings: InvestigationSettings) -> bool:
    return settings.questions is not None or any(
        getattr(settings, pipeline) is not None for pipeline in settings.pipelines
    )


def _some_questions(
    questions: Mapping[str, tuple[PaperQuestion, ...]],
    limit: int,
    findings: InputFindings,
) -> Mapping[str, tuple[PaperQuestion, ...]]:
    """A sample of the questions: pipelines and papers keep their share."""
    every = tuple(itertools.chain.from_iterable(questions.values()))
    sample = draw_sample(
        every,
        limit,
        key=lambda question: question.key,
        strata=(lambda question: question.pipeline, lambda question: question.pmcid),
    )
    report_sample(findings, sample, every, "question", "pipeline and paper")
    keys = {question.key for question in sample}
    cut = {
        pmcid: tuple(q for q in group if q.key in keys)
        for pmcid, group in questions.items()
    }
    return {pmcid: group for pmcid, group in cut.items() if group}


def _some_papers(
    bench: tuple[BenchPaper, ...],
    questions: Mapping[str, tuple[PaperQuestion, ...]],
    limit: int,
    findings: InputFindings,
) -> tuple[BenchPaper, ...]:
    """A sample of the papers: those that each pipeline asks about keep their share."""
    sample = draw_sample(
        bench,
        limit,
        key=lambda paper: paper.pmcid,
        strata=(
            lambda paper: tuple(
                sorted(
                    {question.pipeline for question in questions.get(paper.pmcid, ())}
                )
            ),
        ),
    )
    report_sample(findings, sample, bench, "paper", "set of pipelines with questions")
    return sample


def _notice_unsourced(dataset: InvestigationDataset, findings: InputFindings) -> None:
    if not dataset.sentences:
        return
    for question in unsourced(dataset):
        findings.add(
            "sentence_not_in_bench",
            "warn",
            question.pipeline,
            "The sentences of some questions are not among those of the sentence "
            "bench for their paper and variant.",
            example=f"question_id {question.question_id}",
        )


def _notice_cut(
    papers: PaperFiles, settings: InvestigationSettings, findings: InputFindings
) -> None:
    if not settings.max_chars:
        return
    for pmcid in papers:
        if len(papers.text(pmcid)) > settings.max_chars:
            findings.add(
                "papers_cut",
                "warn",
                "papers",
                f"Some papers are longer than {settings.max_chars} characters and are "
                "sent without their end (max_chars).",
                example=pmcid,
            )
