"""Imports result files: investigations, variant extractions, single questions.

The older records have no question. It is identified by the variant of its answer and
its position; expected values come with the answer. Records that this job wrote have the
questions and are read in full.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeVar

import msgspec
from pydantic import BeforeValidator, Field, PlainValidator

from jobs.kit.importer import ImportFile
from jobs.kit.inputs.cells import BLANK, InputCell, Positive, one_of
from jobs.kit.inputs.column_map import describe_columns, rename_keys
from jobs.kit.inputs.files import JsonEntry
from jobs.kit.inputs.rows import InputFindings, RowModel, RowSource
from jobs.paper_investigation.bench import (
    Names,
    Written,
    paper_id,
    read_entries,
    read_question,
    written,
)
from jobs.paper_investigation.data import LETTERS, PaperQuestion
from jobs.paper_investigation.records import (
    UNKNOWN_SKIP,
    Fact,
    StoredPaper,
    StoredQuestion,
    encode,
)
from jobs.paper_investigation.settings import PIPELINES, InvestigationSettings, Pipeline
from runner.job import ImportedAnswer, TaskSpec

Fields = Mapping[str, Any]
FinishReason = Annotated[str, PlainValidator(lambda cell: written(cell) or "stop")]
PipelineName = Annotated[Pipeline, one_of(PIPELINES)]


class ResultRow(RowModel):
    """Fields about an answer in rows of every form."""

    pmcid: Written = ""
    model: Written = ""
    replicate: Positive = 1
    article_title: Written = ""
    pmid: Written = ""
    had_paper: Annotated[bool, PlainValidator(lambda cell: cell is not False)] = Field(
        default=True, validation_alias="had_paper_context"
    )
    skip_reason: Written = ""
    failure: Written = Field("", validation_alias="error")
    finish_reason: FinishReason = "stop"


class ReplyRow(ResultRow):
    """A row with one reply."""

    response: str | None = None


Row = TypeVar("Row", bound=ResultRow)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedFile:
    """A file to import, with the settings of the run."""

    file: ImportFile
    settings: InvestigationSettings

    @property
    def name(self) -> str:
        """Name of the file, for errors and notes."""
        return self.file.path.name

    @property
    def source(self) -> RowSource:
        """The file, for the errors of its rows."""
        return RowSource(file=self.name)

    def entries(self) -> Iterator[JsonEntry]:
        """Yield the file's objects, with their keys renamed as set."""
        renamed = self.file.renamed
        for entry in read_entries(self.file.path, self.settings, InputFindings()):
            fields = rename_keys(entry.fields, renamed)
            yield replace(entry, fields=fields) if renamed else entry

    def rows(self, model: type[Row]) -> Iterator[tuple[Row, Fields]]:
        """Yield the rows, each with all fields of its object."""
        for entry in self.entries():
            yield model.at(self.source, entry.line, entry.fields), entry.fields

    def paper_of(self, row: ResultRow, fields: Fields) -> str:
        """Return the row's paper."""
        if "pmcid" not in fields and not row.pmcid:
            field_words = describe_columns(list(fields), ("pmcid",))
            raise row.error(f"pmcid is missing ({field_words}; pass --map KEY=pmcid)")
        if not row.pmcid:
            raise row.error(f"pmcid {BLANK}")
        return paper_id(row, row.pmcid, self.settings)

    def identity(self, row: ResultRow) -> tuple[str, int]:
        """Return the model of a row's answers, and the replicate."""
        model = self.file.model or row.model
        if not model:
            raise row.error("model is missing (name it with --model)")
        return model, self.file.replicate or row.replicate

    def answer(
        self, row: ResultRow, spec: TaskSpec, text: str | None, error: str = ""
    ) -> ImportedAnswer:
        """Return the answer of a row; *text* is ignored if it failed."""
        model, replicate = self.identity(row)
        return ImportedAnswer(
            spec=spec,
            model=model,
            replicate=replicate,
            text=None if spec.skip or error else text or "",
            finish_reason=row.finish_reason,
            error=error or None,
        )


def recorded(fields: Fields, names: tuple[str, ...]) -> dict[str, Fact]:
    """Return the named fields of a row; they are compared later, never trusted."""
    return {name: fields[name] for name in names if name in fields}


FAILED = "extraction_failed"
"""Skip reason of a paper whose extraction has no reply."""

PAPER_FACTS = ("variant_recall", "paper_score")
QUESTION_FACTS = ("correct",)

_P_VALUE = "p="
_SIGNIFICANCE = ", sig="


def _responses(result: InputCell) -> InputCell:
    responses = result.get("responses") if isinstance(result, Mapping) else None
    if not isinstance(responses, list):
        raise ValueError("has no list of responses")  # noqa: TRY004 - for pydantic
    return responses


class _InvestigationRow(ResultRow):
    """A paper with its list of variants and all answers about them."""

    ground_truth_variants: Names = ()
    predicted_variants: Names | None = None
    raw_response: str | None = None
    variant_results: dict[
        str, Annotated[list[dict[str, Any]], BeforeValidator(_responses)]
    ]
    other_questions: tuple[dict[str, Any], ...] = ()

    @property
    def reply(self) -> str | None:
        """The reply of the extraction, else the parsed list; None: neither."""
        if self.raw_response is not None or self.predicted_variants is None:
            return self.raw_response
        return msgspec.json.encode(self.predicted_variants).decode()


class _EntryRow(ResultRow):
    """One answer in such a record."""

    source_pipeline: PipelineName
    question_id: Written
    variant: Written
    annotation_id: Written = ""
    expected_answer: Written = ""
    question: Any = None
    model_response: str | None = None

    @property
    def holds_question(self) -> bool:
        """Whether it has the question; a null means unknown."""
        return isinstance(self.question, Mapping)


def read_investigation(source: ImportedFile) -> Iterator[ImportedAnswer]:
    """Yield a family of answers for each record of the file."""
    for row, fields in source.rows(_InvestigationRow):
        pmcid = source.paper_of(row, fields)
        entries = tuple(_entries(row))
        text = row.reply
        paper = StoredPaper(
            mode="investigate",
            truth=row.ground_truth_variants,
            title=row.article_title or None,
            pmid=row.pmid or None,
            fixed_links=not any(entry.holds_question for entry, _ in entries),
            recorded=recorded(fields, PAPER_FACTS),
        )
        reason = row.skip_reason or UNKNOWN_SKIP
        has_failed = text is None and reason == FAILED
        skip = None if text is not None or has_failed else reason
        spec = TaskSpec(stage="extract", key=pmcid, skip=skip, context=encode(paper))
        first = source.answer(row, spec, text, "unknown" if has_failed else "")
        yield first
        for entry, facts in entries:
            question = _question(entry, pmcid)
            stored = StoredQuestion(question=question, recorded=facts)
            spec = TaskSpec(
                stage="question",
                key=f"{pmcid}/{question.key}",
                context=encode(stored),
            )
            yield replace(
                first,
                spec=spec,
                text=None if entry.failure else entry.model_response or "",
                finish_reason=entry.finish_reason,
                error=entry.failure or None,
                descends=True,
            )


def _entries(row: _InvestigationRow) -> Iterator[tuple[_EntryRow, dict[str, Fact]]]:
    """Yield each answer once, with its variant and position.

    A question of several variants is listed under each of them, marked `shared`; one
    that counts for no recalled variant, or has no reply, under `other_questions`.
    """
    seen: set[tuple[str, str]] = set()
    for variant, responses in row.variant_results.items():
        for position, response in enumerate(responses, start=1):
            entry = _entry(row, variant, position, response)
            identity = (entry.source_pipeline, entry.question_id)
            if identity not in seen:
                seen.add(identity)
                yield entry, recorded(response, QUESTION_FACTS)
    for position, response in enumerate(row.other_questions, start=1):
        entry = _entry(row, response.get("variant", ""), position, response)
        yield entry, recorded(response, QUESTION_FACTS)


def _entry(row: RowModel, variant: str, position: int, response: Fields) -> _EntryRow:
    ids = {"variant": variant, "question_id": f"{variant}#{position}"}
    return _EntryRow.at(row.source, row.line, {**ids, **response})


def _question(entry: _EntryRow, pmcid: str) -> PaperQuestion:
    pipeline = entry.source_pipeline
    if entry.holds_question:
        ids = {"pmcid": pmcid, "question_id": entry.question_id}
        return read_question(
            pipeline, entry.source, entry.line, {**entry.question, **ids}
        )
    question = PaperQuestion(
        pipeline=pipeline,
        question_id=entry.question_id,
        pmcid=pmcid,
        variant=entry.variant,
        annotation_id=entry.annotation_id,
    )
    answer = entry.expected_answer
    if not answer:
        raise entry.error(f"expected_answer {BLANK}")
    if not question.is_mcq:
        p_value, significance = _study_expectation(entry, answer)
        return replace(
            question, expected_p_value=p_value, expected_significance=significance
        )
    letter = answer.lower()
    if letter not in LETTERS:
        raise entry.error(f"expected_answer is {answer[:20]!r} (one of a, b, c, d)")
    return replace(question, correct=letter)


def _study_expectation(entry: RowModel, answer: str) -> tuple[str, str]:
    """Return both parts of `p=<value>, sig=<text>`.

    The value often begins with "=", and may contain a comma, so only the first mark and
    the last separator count.
    """
    p_value, separator, significance = answer.rpartition(_SIGNIFICANCE)
    if not separator or not p_value.startswith(_P_VALUE):
        raise entry.error(
            f"expected_answer is {answer[:40]!r} (p=<value>, sig=<text> is expected)"
        )
    return p_value.removeprefix(_P_VALUE).strip(), significance.strip()


FACTS = ("predicted", "true_positives", "false_negatives", "recall", "parse_failure")


class _ExtractionRow(ResultRow):
    """A paper with its list of variants."""

    ground_truth: Names = ()
    predicted: Names = ()
    raw_response: str | None = None


def read_extraction(source: ImportedFile) -> Iterator[ImportedAnswer]:
    """Yield the extraction of each paper in the file; the mode is `extract`."""
    for row, fields in source.rows(_ExtractionRow):
        text = row.raw_response
        if "raw_response" not in fields:
            text = msgspec.json.encode(row.predicted).decode()
        paper = StoredPaper(
            mode="extract",
            truth=row.ground_truth,
            title=row.article_title or None,
            pmid=row.pmid or None,
            had_paper=row.had_paper,
            recorded=recorded(fields, FACTS),
        )
        # a reply to a prompt without the paper is a reply; no reply and no paper is a
        # skip
        skip = "no_paper_text" if not row.had_paper and not text else None
        is_absent = bool(row.skip_reason) and fields.get("raw_response") is None
        has_failed = is_absent and row.skip_reason == FAILED
        if is_absent and not has_failed:
            skip = row.skip_reason
        spec = TaskSpec(
            stage="extract",
            key=source.paper_of(row, fields),
            skip=skip,
            context=encode(paper),
        )
        yield source.answer(row, spec, text, "unknown" if has_failed else "")


MCQ_FACTS = ("prediction_parsed", "correct")
STUDY_FACTS = (
    "response_p_value",
    "response_significance",
    "p_value_correct",
    "significance_correct",
    "both_correct",
)

_KIND = re.compile(r"_?(mcq_(?:variant|drug|phenotype))_")


class _ChoiceReplyRow(ReplyRow):
    source_pipeline: PipelineName | None = None


def read_mcq(source: ImportedFile) -> Iterator[ImportedAnswer]:
    """Yield the multiple-choice answers of a file; the mode is `questions`."""
    match = _KIND.search(source.name)
    for row, fields in source.rows(_ChoiceReplyRow):
        pipeline = row.source_pipeline
        if match:
            pipeline = next(name for name in PIPELINES if name == match[1])
        if pipeline is None:
            raise row.error(
                "the pipeline is not known (name the file *_mcq_drug_*.jsonl, "
                "or _variant_ or _phenotype_)"
            )
        yield _answer(source, row, fields, pipeline, MCQ_FACTS)


def read_study(source: ImportedFile) -> Iterator[ImportedAnswer]:
    """Yield the study-parameter answers of a file; the mode is `questions`."""
    for row, fields in source.rows(ReplyRow):
        yield _answer(source, row, fields, "study_param", STUDY_FACTS)


def _answer(
    source: ImportedFile,
    row: ReplyRow,
    fields: Fields,
    pipeline: Pipeline,
    facts: tuple[str, ...],
) -> ImportedAnswer:
    pmcid = source.paper_of(row, fields)
    question = read_question(pipeline, row.source, row.line, fields)
    stored = StoredQuestion(
        question=question,
        had_paper=row.had_paper,
        recorded=recorded(fields, facts),
    )
    spec = TaskSpec(
        stage="question",
        key=f"{pmcid}/{question.key}",
        skip=row.skip_reason or None,
        context=encode(stored),
    )
    return source.answer(row, spec, row.response, row.failure)
