"""Loads a run's inputs: a prepared set or a library, and full texts.

A set's folder is read back into the `ValidationSet` that a run screens and scoring
uses. A library becomes a set of one review without labels. Labels from a file change
no task: the records, their order and a sample of them are the same without them. Full
texts are read when a task needs them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Annotated, Any

from pydantic import PlainValidator

from jobs.kit.inputs.cells import (
    BLANK,
    Count,
    InputCell,
    Label,
    Number,
    Text,
    word_of,
)
from jobs.kit.inputs.column_map import column_map
from jobs.kit.inputs.files import csv_columns, read_json, read_objects, read_table
from jobs.kit.inputs.rows import InputFindings, RowModel, columns_of
from jobs.kit.inputs.sampling import draw_sample, report_sample
from jobs.kit.text_format import plural
from jobs.screening.data import (
    KINDS,
    ArticleText,
    Criteria,
    RecordKind,
    ScreeningRecord,
    SetReview,
    ValidationSet,
)
from jobs.screening.input_tables import CriteriaColumns, Id, PaperRow, TextRow
from jobs.screening.labels import labelled, read_criteria_file
from jobs.screening.library import COLUMNS as LIBRARY_COLUMNS
from jobs.screening.library import LibraryRecord, read_library, tables_of
from jobs.screening.prompts import WORDING, describe_review
from jobs.screening.settings import ScreeningSettings, StageName
from runner.errors import DatasetError, UsageError
from runner.fingerprint import input_hashes
from runner.job import InputFile
from runner.messages import TextPart
from runner.prompts import PromptBook
from runner.scorecard import Finding


@dataclass(frozen=True, kw_only=True)
class ScreeningDataset:
    """Inputs of a run; an import may have settings only."""

    settings: ScreeningSettings
    prompts: PromptBook = field(default_factory=WORDING.shipped)
    validation_set: ValidationSet | None = None
    fulltexts: Mapping[str, Path] = field(default_factory=dict)  #: by paper
    library: Mapping[str, LibraryRecord] = field(default_factory=dict)
    """Records of a library by id; empty for a set."""
    findings: tuple[Finding, ...] = ()

    @cached_property
    def review_parts(self) -> dict[tuple[str, str | None], TextPart]:
        """Parts of prompts by review and context; a cache of `plan`."""
        return {}

    @cached_property
    def prompt_lengths(
        self,
    ) -> dict[tuple[StageName, str, str | None], tuple[int, int]]:
        """Prompt sizes by stage, review and context; a cache of `plan`.

        Each has the maximum number of tokens of a prompt about a paper without texts,
        and how many times it has the paper.
        """
        return {}

    @cached_property
    def _records(self) -> Mapping[str, ScreeningRecord]:
        records = () if self.validation_set is None else self.validation_set.records
        return {record.key: record for record in records}

    @cached_property
    def _reviews(self) -> Mapping[str, SetReview]:
        reviews = () if self.validation_set is None else self.validation_set.reviews
        return {review.id: review for review in reviews}

    @cached_property
    def _by_review(self) -> Mapping[str, list[ScreeningRecord]]:
        by_review: dict[str, list[ScreeningRecord]] = {}
        for record in self._records.values():
            by_review.setdefault(record.review, []).append(record)
        return by_review

    @property
    def screened(self) -> tuple[str, ...]:
        """Reviews that have records, in set order."""
        return tuple(self._by_review)

    def record(self, key: str) -> ScreeningRecord:
        """Return a record by its item key; raise `KeyError` if there is none."""
        return self._records[key]

    def find(self, key: str) -> ScreeningRecord | None:
        """Return a record by its item key, or None if the set does not have it."""
        return self._records.get(key)

    def records_of(self, review: str) -> Sequence[ScreeningRecord]:
        """Return the records of a review in set order; empty for an unknown review."""
        return self._by_review.get(review, ())

    def review(self, review: str) -> SetReview:
        """Return a review of the set; raise `KeyError` if there is none."""
        return self._reviews[review]

    def paper(self, paper: str) -> ArticleText:
        """Return the text of a paper of the set; raise `KeyError` if there is none."""
        if self.validation_set is None:
            raise KeyError(paper)
        return self.validation_set.papers[paper]

    def has_fulltext(self, paper: str) -> bool:
        """Return whether a paper has a full text."""
        return paper in self.fulltexts

    def fulltext(self, paper: str) -> str:
        """Read the full text of a paper; raise `KeyError` if there is none.

        It is not read earlier: all texts together would not fit into memory.
        """
        return self.fulltexts[paper].read_text("utf-8", errors="replace")


def _kind(cell: InputCell) -> str:
    """Parse a kind; a record without a label may have none."""
    return "unlabelled" if cell is None else word_of(cell, KINDS)


class _RecordRow(RowModel):
    review_pmid: Id
    paper_pmid: Id
    label: Label | None
    kind: Annotated[RecordKind, PlainValidator(_kind)]
    also_near_miss: Label
    reason: Text
    reason_code: Text
    n_links: Count
    n_shared: Count
    similarity: Number | None


RECORDS = columns_of(_RecordRow).needed
CANDIDATES = ("review_pmid", "paper_pmid", "n_links", "n_shared", "drawn")

FILES = ("validation_set.csv", "reviews.jsonl", "papers.jsonl", "summary.json")
"""Files of a set that a run needs."""
MANIFEST = "manifest.json"
"""File with the hashes of the others."""


def read_set(folder: Path) -> ValidationSet:
    """Read the set in a folder that `prepare` has written.

    Raises:
        DatasetError: the folder is not a set, or one of its files is invalid or was
            changed; names file and row.
    """
    for name in FILES:
        if not (folder / name).is_file():
            raise DatasetError(
                f"{folder} has no {name}: name a folder that siftlog prepare screening "
                "has written."
            )
    findings = InputFindings()
    papers = _texts(folder / "papers.jsonl", findings)
    reviews = _reviews(folder / "reviews.jsonl", findings)
    records = _records(folder / "validation_set.csv", findings)
    for record in records:
        for kind, name, texts in (
            ("review", record.review, reviews),
            ("paper", record.paper, papers),
        ):
            if name not in texts:
                raise DatasetError(
                    f"validation_set.csv: the {kind} {name} has no text in "
                    f"{kind}s.jsonl (build the set again)."
                )
    summary = read_json(folder / "summary.json")
    _check(folder)
    return ValidationSet(
        reviews=tuple(reviews[name] for name in sorted(reviews)),
        records=tuple(records),
        papers=papers,
        pools=_part(summary, "set", "pools"),
        near_misses={
            name: value
            for name, value in _part(summary, "near_misses").items()
            if not isinstance(value, dict)
        },
        candidates=_part(summary, "near_misses", "histogram"),
        contamination=_part(summary, "contamination"),
        drift=_part(summary, "topic_drift", "macro"),
        findings=findings.findings(),
    )


def _check(folder: Path) -> None:
    """Refuse files whose hashes differ from the manifest.

    A folder without a manifest was written by hand, and is accepted unchanged.
    """
    manifest = folder / MANIFEST
    if not manifest.is_file():
        return
    written = _part(read_json(manifest), "files")
    input_files = [InputFile(setting=name, path=folder / name) for name in FILES]
    for input_file in input_hashes(input_files):
        if written.get(input_file.setting) != input_file.sha256:
            raise DatasetError(
                f"{input_file.path} is not the file that siftlog prepare screening "
                "wrote there (build the set again)."
            )


def _records(path: Path, findings: InputFindings) -> list[ScreeningRecord]:
    records = []
    seen: set[str] = set()
    for row in read_table(path, _RecordRow, findings=findings, unit="row"):
        record = ScreeningRecord(
            review=row.review_pmid,
            paper=row.paper_pmid,
            kind=row.kind if row.label is not None else "unlabelled",
            also_near_miss=bool(row.also_near_miss),
            reason=row.reason,
            reason_code=row.reason_code,
            n_links=row.n_links,
            n_shared=row.n_shared,
            similarity=row.similarity,
        )
        if row.label is not None and row.kind == "unlabelled":
            raise row.error(f"kind {BLANK}")
        if row.label is not None and record.label != row.label:
            raise row.error(f"label contradicts the kind {record.kind} (correct one)")
        if record.key in seen:
            raise row.error(f"{record.key} occurs a second time (remove one)")
        seen.add(record.key)
        records.append(record)
    return records


class _ReviewRow(TextRow, CriteriaColumns):
    review_pmid: Id


def _reviews(path: Path, findings: InputFindings) -> dict[str, SetReview]:
    return {
        row.review_pmid: SetReview(
            id=row.review_pmid,
            text=row.text,
            # a review prepared with criteria has a question, perhaps an empty one
            criteria=row.criteria if "question" in row.model_fields_set else None,
        )
        for row in read_objects(path, _ReviewRow, findings=findings)
    }


def _texts(path: Path, findings: InputFindings) -> dict[str, ArticleText]:
    return {
        row.pmid: row.text for row in read_objects(path, PaperRow, findings=findings)
    }


def _part(summary: Any, *names: str) -> Mapping[str, Any]:  # noqa: ANN401 - JSON
    """Return a part of the summary, or {} if it is missing."""
    for name in names:
        summary = summary.get(name) if isinstance(summary, dict) else None
    return summary if isinstance(summary, dict) else {}


SAMPLE = Path(str(files("jobs.screening"))) / "sample"

SOURCE_SETTINGS = ("tables", "reviews", "references", "papers", "records")
"""Settings that name the sources of a set."""

LIBRARY_REVIEW = "library"
"""Review id of the records of a library."""

_TITLE_ALONE = (
    "Only the title states the question of a review: there are neither "
    "criteria nor sections of an abstract that state them."
)

FULLTEXTS = (".txt", ".md")
"""Suffixes of full texts; the first one counts if a paper has both."""


def with_sample(settings: ScreeningSettings) -> ScreeningSettings:
    """Return settings with the shipped sample if they name no data."""
    if any(
        getattr(settings, name)
        for name in (*SOURCE_SETTINGS, "validation_set", "library", "decisions")
    ):
        return settings
    return settings.model_copy(
        update={
            "tables": SAMPLE / "tables",
            "excluded": settings.excluded or SAMPLE / "excluded.csv",
            "criteria": settings.criteria or SAMPLE / "criteria.jsonl",
            "fulltext": settings.fulltext or SAMPLE / "fulltext",
            "validation_set": SAMPLE / "set",
            # one of its reviews has no criteria, to show the message
            "title_criteria": True,
        }
    )


def require(settings: ScreeningSettings) -> None:
    """Refuse settings that a run cannot start from.

    Raises:
        UsageError: neither a set nor a library is named, or both are, a library has no
            criteria, or a stage needs full texts and none are named.
    """
    if settings.library:
        if settings.validation_set is not None:
            raise UsageError("Name either --library or --validation-set, not both.")
        if settings.criteria is None and not settings.question.strip():
            raise UsageError(
                "A library needs --criteria, a text file of what to include and "
                "exclude, or --question."
            )
        if settings.criteria_source == "llm":
            raise UsageError(
                "A library has no abstract of a review to state criteria from; leave "
                "out --criteria-source llm."
            )
    elif settings.validation_set is None:
        raise UsageError(
            "A run needs --library, files of records (RIS, PubMed, CSV), or "
            "--validation-set, a folder that siftlog prepare screening has "
            "written; name no data at all to run on the shipped sample."
        )
    if "fulltext" in settings.stages and settings.fulltext is None:
        raise UsageError(
            "Stage fulltext needs --fulltext, a folder of <pmid>.txt or .md; or leave "
            "it out of --stages."
        )


def inputs(settings: ScreeningSettings) -> tuple[InputFile, ...]:
    """Return the files and folders that `load` reads under these settings."""
    names = ["validation_set", "labels", "prompts"]
    if settings.library:
        names.append("criteria")
    if "fulltext" in settings.stages:
        names.append("fulltext")
    named_paths = ((name, getattr(settings, name)) for name in names)
    return (
        *(InputFile(setting=name, path=path) for name, path in named_paths if path),
        *(InputFile(setting="library", path=path) for path in settings.library),
    )


def load(settings: ScreeningSettings) -> ScreeningDataset:
    """Read and validate the named inputs; an imported run may name none.

    Raises:
        DatasetError: an input is invalid; names file and row.
    """
    validation_set = None
    library: Mapping[str, LibraryRecord] = {}
    findings = InputFindings()
    if settings.library:
        library = _library(settings, findings)
        validation_set = _set_of_library(settings, library)
    elif settings.validation_set is not None:
        validation_set = read_set(settings.validation_set)
        if not validation_set.records:
            raise DatasetError(
                f"{settings.validation_set} holds no record: build the set with other "
                "--negatives, --keep-without-negatives or a lower --min-included."
            )
    if validation_set is not None:
        # the sample is drawn before labels are read, so that they change no task
        every = validation_set.records
        validation_set = _limited(validation_set, settings.limit, findings)
        if settings.labels is not None:
            by_key = labelled(settings.labels, every, findings)
            validation_set = replace(
                validation_set,
                records=tuple(
                    by_key.get(record.key, record) for record in validation_set.records
                ),
            )
    fulltexts: Mapping[str, Path] = {}
    if settings.fulltext is not None and "fulltext" in settings.stages:
        fulltexts = _fulltexts(settings.fulltext)
    dataset = ScreeningDataset(
        settings=settings,
        prompts=WORDING.book(settings.prompts),
        validation_set=validation_set,
        fulltexts=fulltexts,
        library=library,
    )
    set_findings = () if validation_set is None else validation_set.findings
    return replace(
        dataset, findings=(*findings.findings(), *set_findings, *_findings(dataset))
    )


def _library(
    settings: ScreeningSettings, findings: InputFindings
) -> Mapping[str, LibraryRecord]:
    tables = tables_of(settings.library)
    renamed: Mapping[str, str] = {}
    if settings.map:
        columns = [name for path in tables for name in csv_columns(path)]
        renamed = column_map(settings.map, tuple(LIBRARY_COLUMNS), columns)
    records = read_library(settings.library, findings, renamed)
    return {record.id: record for record in records}


def _set_of_library(
    settings: ScreeningSettings, library: Mapping[str, LibraryRecord]
) -> ValidationSet:
    """Return the records of a library as those of one review, in file order."""
    criteria = Criteria()
    if settings.criteria is not None:
        criteria = read_criteria_file(settings.criteria)
    question = settings.question.strip() or criteria.question
    return ValidationSet(
        reviews=(
            SetReview(
                id=LIBRARY_REVIEW,
                text=ArticleText(),
                criteria=replace(criteria, question=question),
            ),
        ),
        records=tuple(
            ScreeningRecord(review=LIBRARY_REVIEW, paper=paper, kind="unlabelled")
            for paper in library
        ),
        papers={paper: record.text for paper, record in library.items()},
    )


def admit(dataset: ScreeningDataset) -> None:
    """Refuse reviews with only a title, unless `title_criteria` allows them.

    Raises:
        DatasetError: there is at least one.
    """
    reviews = _with_title_alone(dataset)
    if reviews and not dataset.settings.title_criteria:
        raise DatasetError(
            f"reviews.jsonl: {plural(len(reviews), 'review')} of "
            f"{len(dataset.screened)} can be screened by the title alone, such as "
            f"{reviews[0]}: there are neither criteria nor sections of an abstract "
            "that state them (build the set with --criteria FILE, or accept titles "
            "with --title-criteria)."
        )


def _with_title_alone(dataset: ScreeningDataset) -> list[str]:
    """Return the reviews whose title is all that a model receives.

    If criteria must come from a file, reviews without them are skipped instead.
    """
    settings = dataset.settings
    if settings.criteria_source == "file":
        return []
    sources = (
        (review, describe_review(settings, dataset.review(review)))
        for review in dataset.screened
    )
    return [review for review, description in sources if description.source == "title"]


def _findings(dataset: ScreeningDataset) -> tuple[Finding, ...]:
    findings = InputFindings()
    for review in _with_title_alone(dataset):
        findings.add(
            "criteria_from_title", "warn", "reviews.jsonl", _TITLE_ALONE, example=review
        )
    return findings.findings()


def _limited(
    validation_set: ValidationSet, limit: int, findings: InputFindings
) -> ValidationSet:
    """Draw a stratified sample of a set, by kind and review."""
    sample = draw_sample(
        validation_set.records,
        limit,
        key=lambda record: record.key,
        strata=(lambda record: record.kind, lambda record: record.review),
    )
    report_sample(findings, sample, validation_set.records, "record", "kind and review")
    return replace(validation_set, records=sample)


def _fulltexts(folder: Path) -> dict[str, Path]:
    """Return the full texts of a folder by paper."""
    if not folder.is_dir():
        raise DatasetError(
            f"{folder}: no such folder (name one of <pmid>.txt or .md with --fulltext)."
        )
    paths: dict[str, Path] = {}
    for suffix in FULLTEXTS:
        for path in sorted(folder.glob(f"*{suffix}")):
            if path.is_file():
                paths.setdefault(path.name.removesuffix(suffix), path)
    return paths
