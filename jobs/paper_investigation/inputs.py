"""Loads and validates all inputs of a run; opens papers' texts one by one.

A folder has `PMC*.md` or `.txt` files with the id as the stem; a file is JSONL with
`pmcid` and `text`. Loading reads every needed text once, to check that it decodes and
is not blank, and stores only its position.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Container, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from jobs.kit.inputs.files import opened
from jobs.kit.inputs.open_file import OpenFile
from jobs.kit.inputs.rows import InputFindings, RowSource
from jobs.kit.inputs.sampling import draw_sample, report_sample
from jobs.paper_investigation.bench import (
    ANY_ID,
    PMCID,
    PaperIdRow,
    paper_id,
    question_files,
    read_bench,
    read_entries,
    read_questions,
    read_sentences,
    unsourced,
)
from jobs.paper_investigation.data import (
    HEAD_CHARS,
    WORDING,
    BenchPaper,
    InvestigationDataset,
    PaperQuestion,
    PaperTexts,
    ReadText,
)
from jobs.paper_investigation.settings import (
    PIPELINES,
    Encoding,
    InvestigationSettings,
)
from runner.errors import DatasetError, UsageError
from runner.job import InputFile
from runner.json_entries import BOM

SUFFIXES = (".md", ".txt", ".pdf")

_ID_LINE = re.compile(r"^\*\*PMCID:\*\*\s*(\S+)", re.MULTILINE)


def open_papers(
    settings: InvestigationSettings,
    wanted: Container[str] | None,
    findings: InputFindings,
) -> PaperTexts:
    """Open the texts of the *wanted* papers; the others are only counted.

    Args:
        settings: settings that name the papers.
        wanted: ids; None: all papers.
        findings: receives problems.
    """
    path = settings.papers
    if path is None:
        return PaperTexts({})
    read = _from_file if path.is_file() else _from_folder
    return read(path, settings, wanted, findings)


def _from_folder(
    folder: Path,
    settings: InvestigationSettings,
    wanted: Container[str] | None,
    findings: InputFindings,
) -> PaperTexts:
    files = _paper_files(folder, settings)
    readers: dict[str, ReadText] = {}
    blank: list[str] = []
    for pmcid, path in files.items():
        if wanted is not None and pmcid not in wanted:
            _notice_unwanted(pmcid, folder.name, findings)
            continue
        if path.suffix == ".pdf":
            text = _pdf_text(path)
            readers[pmcid] = partial(str, text)
        else:
            text = _checked(path, settings.encoding_errors, findings)
            readers[pmcid] = partial(_file_text, path, settings.encoding_errors)
        stated = _ID_LINE.search(text[:HEAD_CHARS])
        if stated and stated[1] != pmcid:
            findings.add(
                "pmcid_disagrees",
                "warn",
                folder.name,
                "Some papers state another PMCID than their file name, which counts.",
                example=f"{path.name} states {stated[1][:64]}",
            )
        if not text.strip():
            del readers[pmcid]
            blank.append(pmcid)
    return PaperTexts(readers, blank)


def _pdf_text(path: Path) -> str:
    """Read the text of a PDF's pages; it stays in memory, as reading is slow."""
    from jobs.kit.inputs.documents import (  # noqa: PLC0415 - for PDF files alone
        read_document,
    )

    return _unix(read_document(path).text)


def _paper_files(folder: Path, settings: InvestigationSettings) -> dict[str, Path]:
    try:
        paths = sorted(folder.iterdir())
    except OSError as error:
        raise DatasetError(
            f"{folder}: {error.strerror} (check the path and its permissions)."
        ) from error
    shape = ANY_ID if settings.any_id else PMCID
    files: dict[str, Path] = {}
    for path in paths:
        if path.suffix not in SUFFIXES:
            continue
        if not shape.fullmatch(path.stem):
            if settings.takes_all_papers:
                raise DatasetError(
                    f"{folder.name}: {path.name} is not named by an id (rename the "
                    f"file: {'1 to 64 letters, digits, dots, dashes or underscores'}"
                    if settings.any_id
                    else f"{folder.name}: {path.name} is not named PMC and digits "
                    "(accept other ids with --any-id)."
                )
            continue
        twin = files.setdefault(path.stem, path)
        if twin is not path:
            raise DatasetError(
                f"{folder.name}: {twin.name} and {path.name} are the same paper "
                "(keep one of the two)."
            )
    if not files:
        names = (
            "a paper is a .md, .txt or .pdf, named by its id"
            if settings.any_id
            else "files are named by id, such as PMC123.md; other names need --any-id"
        )
        raise DatasetError(f"{folder}: no paper in it ({names}).")
    return files


def _from_file(
    path: Path,
    settings: InvestigationSettings,
    wanted: Container[str] | None,
    findings: InputFindings,
) -> PaperTexts:
    readers: dict[str, ReadText] = {}
    blank: list[str] = []
    lines: dict[str, int] = {}
    source, file = RowSource(file=path.name), OpenFile(path)
    for entry in read_entries(path, settings, findings):
        row = _TextRow.at(source, entry.line, entry.fields)
        pmcid = paper_id(row, row.pmcid, settings)
        first = lines.setdefault(pmcid, row.line)
        if first != row.line:
            raise row.error(
                f"{pmcid} occurs on line {first} already (keep one of the two)"
            )
        if "text" not in entry.fields:
            raise row.error("text is missing (leave it empty for a paper without one)")
        if wanted is not None and pmcid not in wanted:
            _notice_unwanted(pmcid, path.name, findings)
        elif row.text.strip():
            readers[pmcid] = partial(_line_text, file, entry.start, entry.size)
        else:
            blank.append(pmcid)
    if wanted is None and not lines:
        raise DatasetError(f"{path.name}: no paper in it (a line a paper is expected).")
    return PaperTexts(readers, blank)


class _TextRow(PaperIdRow):
    text: str = ""


def _line_text(file: OpenFile, start: int, size: int) -> str:
    text: str = file.object_at(start, size)["text"]
    return _unix(text)


def _file_text(path: Path, encoding: Encoding) -> str:
    """Read the text of a paper's file; raise `UnicodeDecodeError` if "strict"."""
    with opened(path) as file:
        return _unix(file.read().removeprefix(BOM).decode(errors=encoding))


def _notice_unwanted(pmcid: str, where: str, findings: InputFindings) -> None:
    findings.add(
        "papers_not_needed",
        "info",
        where,
        "Some papers are named by no line of the bench, or by no question.",
        example=pmcid,
    )


def _checked(path: Path, encoding: Encoding, findings: InputFindings) -> str:
    try:
        return _file_text(path, "strict")
    except UnicodeDecodeError as error:
        if encoding == "strict":
            raise DatasetError(
                f"{path.name}: byte {error.start} is not UTF-8 "
                "(save the file as UTF-8, or use --encoding-errors replace)."
            ) from error
        findings.add(
            "replaced_bytes",
            "warn",
            path.parent.name,
            "Bytes that are not UTF-8 were replaced in some papers.",
            example=path.name,
        )
        return _file_text(path, encoding)


def _unix(text: str) -> str:
    """Convert line ends to LF, so that requests are the same on all systems."""
    return text.replace("\r\n", "\n")


SAMPLE = Path(__file__).parent / "sample"

DATA = ("bench", "papers", "questions", *PIPELINES, "sentence_bench")
"""Settings that name data; without any of them the sample is used."""

INPUTS = (*DATA, "prompts")
"""Settings that name files."""


def with_sample(settings: InvestigationSettings) -> InvestigationSettings:
    """Return settings that a run can start from.

    If no input is named, the shipped sample's files are filled in; otherwise the given
    object is returned, so that callers can compare the identity.

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
    if settings.mode == "extract":
        needed: tuple[str, ...] = ("papers",)
    elif settings.mode == "investigate":
        needed = ("bench", "papers")
    else:
        needed = () if settings.closed_book else ("papers",)
    for name in needed:
        if getattr(settings, name) is None:
            raise UsageError(
                f"Mode {settings.mode} needs --{name}; name no input at all to run "
                "on the shipped sample."
            )
    files = (settings.questions, *(getattr(settings, p) for p in settings.pipelines))
    if settings.mode != "extract" and not any(files):
        raise UsageError(
            f"Mode {settings.mode} needs --questions, or a file for one of "
            f"{', '.join(settings.pipelines)}."
        )
    return settings


def inputs(settings: InvestigationSettings) -> tuple[InputFile, ...]:
    """Return the files and folders that `load` reads under these settings."""
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
    """Read and validate the named inputs.

    An imported run may name none: its answers have labels.
    """
    findings = InputFindings()
    bench: tuple[BenchPaper, ...] = ()
    if settings.bench is not None:
        bench = read_bench(settings.bench, settings, findings)
    questions: Mapping[str, tuple[PaperQuestion, ...]] = read_questions(
        settings, findings
    )
    if settings.takes_all_papers:
        papers = open_papers(settings, None, findings)
        bench = tuple(
            BenchPaper(pmcid=pmcid, variants=())
            for pmcid in sorted((*papers, *papers.blank))
        )
        bench = _some_papers(bench, questions, settings.limit, findings)
    elif settings.mode == "questions":
        questions = _some_questions(questions, settings.limit, findings)
        papers = open_papers(settings, questions, findings)
    else:
        bench = _some_papers(bench, questions, settings.limit, findings)
        papers = open_papers(settings, {p.pmcid for p in bench}, findings)
    _notice_cut(papers, settings, findings)
    dataset = InvestigationDataset(
        settings=settings,
        prompts=WORDING.book(settings.prompts, settings.profile),
        bench=bench,
        papers=papers,
        questions=questions,
        sentences=read_sentences(settings, findings),
        has_truth=not settings.takes_all_papers,
    )
    _notice_unsourced(dataset, findings)
    return replace(dataset, findings=findings.findings())


def _some_questions(
    questions: Mapping[str, tuple[PaperQuestion, ...]],
    limit: int,
    findings: InputFindings,
) -> Mapping[str, tuple[PaperQuestion, ...]]:
    """Draw a sample of the questions, stratified by pipeline and paper."""
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
    """Draw a sample of the papers, stratified by the pipelines of their questions."""
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
    papers: PaperTexts, settings: InvestigationSettings, findings: InputFindings
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
