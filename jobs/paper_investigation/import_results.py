"""Imports result files: investigations, variant extractions, stand-alone questions.

The older records hold no question. Its identity there is the variant under which the
answer stands and its position; what was expected comes with the answer. Records that
this job wrote carry the questions and are read in full.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from jobs.kit.importer import ImportFile
from jobs.kit.inputs.column_map import describe_columns, rename_keys
from jobs.kit.inputs.rows import InputFindings
from jobs.paper_investigation.bench import LETTERS, paper_id, read_question
from jobs.paper_investigation.data import PaperQuestion
from jobs.paper_investigation.records import (
    UNKNOWN_SKIP,
    Fact,
    StoredPaper,
    StoredQuestion,
    encode,
)
from jobs.paper_investigation.rows import JsonRow, read_rows
from jobs.paper_investigation.settings import PIPELINES, InvestigationSettings, Pipeline
from runner.job import ImportedAnswer, TaskSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedFile:
    """A file to import, with the settings of the run."""

    file: ImportFile
    settings: InvestigationSettings

    @property
    def name(self) -> str:
        """The file, for errors and notes."""
        return self.file.path.name

    def rows(self) -> Iterator[JsonRow]:
        """The file's objects, one at a time, with their keys by the names used here."""
        renamed = self.file.renamed
        encoding = self.settings.encoding_errors
        for row in read_rows(self.file.path, encoding, InputFindings()):
            fields = rename_keys(row.fields, renamed)
            yield replace(row, fields=fields) if renamed else row

    def model_of(self, row: JsonRow) -> str:
        """The model that gave a row's answers."""
        model = self.file.model or row.text("model")
        if not model:
            raise row.error("model is missing (name it with --model)")
        return model

    def replicate_of(self, row: JsonRow) -> int:
        """The replicate that a row belongs to, 1 where nothing says so."""
        replicate = self.file.replicate or row.fields.get("replicate") or 1
        if not isinstance(replicate, int) or replicate < 1:
            raise row.error("replicate is not a number from 1 (correct or remove it)")
        return replicate

    def paper_of(self, row: JsonRow) -> str:
        """The row's paper."""
        if "pmcid" not in row.fields:
            field_words = describe_columns(list(row.fields), ("pmcid",))
            raise row.error(f"pmcid is missing ({field_words}; pass --map KEY=pmcid)")
        return paper_id(row, self.settings)


def reply_text(row: JsonRow, name: str) -> str:
    """A model's reply as it stands, blanks included; "" for null."""
    text = row.fields.get(name)
    if text is None:
        return ""
    if not isinstance(text, str):
        raise row.error(f"{name} is not text (a model's reply is expected)")
    return text


def pipeline_of(row: JsonRow, name: str) -> Pipeline:
    """A field that names a pipeline."""
    text = row.text(name)
    for pipeline in PIPELINES:
        if text == pipeline:
            return pipeline
    raise row.error(f"{name} is {text[:30]!r} (one of {', '.join(PIPELINES)})")


def recorded(row: JsonRow, names: tuple[str, ...]) -> dict[str, Fact]:
    """Those of the named fields that the row has: compared later, never trusted."""
    return {name: row.fields[name] for name in names if name in row.fields}


FAILED = "extraction_failed"
"""The skip reason of a paper whose extraction has no reply."""

PAPER_FACTS = ("variant_recall", "paper_score")
QUESTION_FACTS = ("correct",)

_P_VALUE = "p="
_SIGNIFICANCE = ", sig="


def read_investigation(source: ImportedFile) -> Iterator[ImportedAnswer]:
    """A family of answers for each record of the file."""
    for row in source.rows():
        pmcid, model = source.paper_of(row), source.model_of(row)
        replicate = source.replicate_of(row)
        entries = tuple(_entries(row))
        text = _list_reply(row)
        paper = StoredPaper(
            mode="investigate",
            truth=row.texts("ground_truth_variants"),
            title=row.text("article_title") or None,
            pmid=row.text("pmid") or None,
            fixed_links=not any(_holds_question(entry) for entry in entries),
            recorded=recorded(row, PAPER_FACTS),
        )
        reason = row.text("skip_reason") or UNKNOWN_SKIP
        has_failed = text is None and reason == FAILED
        skip = None if text is not None or has_failed else reason
        yield ImportedAnswer(
            spec=TaskSpec(stage="extract", key=pmcid, skip=skip, context=encode(paper)),
            model=model,
            replicate=replicate,
            text=text,
            finish_reason=row.text("finish_reason") or "stop",
            error="unknown" if has_failed else None,
        )
        for entry in entries:
            error = entry.text("error") or None
            question = _question(entry, pmcid)
            stored = StoredQuestion(
                question=question, recorded=recorded(entry, QUESTION_FACTS)
            )
            yield ImportedAnswer(
                spec=TaskSpec(
                    stage="question",
                    key=f"{pmcid}/{question.key}",
                    context=encode(stored),
                ),
                model=model,
                replicate=replicate,
                text=None if error else reply_text(entry, "model_response"),
                finish_reason=entry.text("finish_reason") or "stop",
                error=error,
                descends=True,
            )


def _list_reply(row: JsonRow) -> str | None:
    """The reply of the extraction, else the list that was read; None: neither."""
    if isinstance(row.fields.get("raw_response"), str):
        return reply_text(row, "raw_response")
    if row.fields.get("predicted_variants") is None:
        return None
    return msgspec.json.encode(row.texts("predicted_variants")).decode()


def _entries(row: JsonRow) -> Iterator[JsonRow]:
    """Each answer once, with the variant and position it stands under.

    A question of several variants stands under each of them, marked `shared`; one that
    counts for no recalled variant, or has no reply, under `other_questions`.
    """
    seen: set[tuple[str, str]] = set()
    results = row.fields.get("variant_results")
    if not isinstance(results, Mapping):
        raise row.error("variant_results is not an object (variant -> its answers)")
    for variant, result in results.items():
        responses = result.get("responses") if isinstance(result, Mapping) else None
        if not isinstance(responses, list):
            raise row.error(f"variant_results of {variant!r} has no list of responses")
        for position, response in enumerate(responses, start=1):
            if not isinstance(response, Mapping):
                raise row.error(f"response {position} of {variant!r} is not an object")
            entry = _entry(row, variant, position, response)
            identity = (entry.text("source_pipeline"), entry.text("question_id"))
            if identity not in seen:
                seen.add(identity)
                yield entry
    others = row.fields.get("other_questions", [])
    if not isinstance(others, list) or not all(isinstance(o, Mapping) for o in others):
        raise row.error("other_questions is not a list of objects")
    for position, response in enumerate(others, start=1):
        yield _entry(row, response.get("variant", ""), position, response)


def _entry(
    row: JsonRow, variant: str, position: int, response: Mapping[str, Any]
) -> JsonRow:
    ids = {"variant": variant, "question_id": f"{variant}#{position}"}
    return replace(row, fields={**ids, **response})


def _question(entry: JsonRow, pmcid: str) -> PaperQuestion:
    pipeline = pipeline_of(entry, "source_pipeline")
    if _holds_question(entry):
        question_fields = entry.fields["question"]
        ids = {"pmcid": pmcid, "question_id": entry.text("question_id")}
        full = read_question(
            pipeline, replace(entry, fields={**question_fields, **ids})
        )
        return replace(full, unknown=())
    question = PaperQuestion(
        pipeline=pipeline,
        question_id=entry.text("question_id"),
        pmcid=pmcid,
        variant=entry.text("variant"),
        annotation_id=entry.text("annotation_id"),
    )
    answer = entry.required("expected_answer")
    if not question.is_mcq:
        p_value, significance = _study_expectation(entry, answer)
        return replace(
            question, expected_p_value=p_value, expected_significance=significance
        )
    letter = answer.lower()
    if letter not in LETTERS:
        raise entry.error(f"expected_answer is {answer[:20]!r} (one of a, b, c, d)")
    return replace(question, correct=letter)


def _holds_question(entry: JsonRow) -> bool:
    """Whether an answer says what was asked; a null says that nobody knows."""
    return isinstance(entry.fields.get("question"), Mapping)


def _study_expectation(entry: JsonRow, answer: str) -> tuple[str, str]:
    """Both parts of `p=<value>, sig=<text>`.

    The value itself often begins with "=", and may hold a comma, so only the leading
    mark and the last separator count.
    """
    p_value, separator, significance = answer.rpartition(_SIGNIFICANCE)
    if not separator or not p_value.startswith(_P_VALUE):
        raise entry.error(
            f"expected_answer is {answer[:40]!r} (p=<value>, sig=<text> is expected)"
        )
    return p_value.removeprefix(_P_VALUE).strip(), significance.strip()


FACTS = ("predicted", "true_positives", "false_negatives", "recall", "parse_failure")


def read_extraction(source: ImportedFile) -> Iterator[ImportedAnswer]:
    """The extraction of each paper in the file; the mode is `extract`."""
    for row in source.rows():
        had_paper = row.fields.get("had_paper_context") is not False
        text = _text(row)
        paper = StoredPaper(
            mode="extract",
            truth=row.texts("ground_truth"),
            title=row.text("article_title") or None,
            pmid=row.text("pmid") or None,
            had_paper=had_paper,
            recorded=recorded(row, FACTS),
        )
        # a reply to a prompt without the paper is one; no reply and no paper is a skip
        skip = "no_paper_text" if not had_paper and not text else None
        stated = row.text("skip_reason")
        is_absent = bool(stated) and row.fields.get("raw_response") is None
        has_failed = is_absent and stated == FAILED
        if is_absent and not has_failed:
            skip = stated
        yield ImportedAnswer(
            spec=TaskSpec(
                stage="extract",
                key=source.paper_of(row),
                skip=skip,
                context=encode(paper),
            ),
            model=source.model_of(row),
            replicate=source.replicate_of(row),
            text=None if skip or has_failed else text,
            finish_reason=row.text("finish_reason") or "stop",
            error="unknown" if has_failed else None,
        )


def _text(row: JsonRow) -> str:
    if "raw_response" in row.fields:
        return reply_text(row, "raw_response")
    return msgspec.json.encode(row.texts("predicted")).decode()


MCQ_FACTS = ("prediction_parsed", "correct")
STUDY_FACTS = (
    "response_p_value",
    "response_significance",
    "p_value_correct",
    "significance_correct",
    "both_correct",
)

_KIND = re.compile(r"_?(mcq_(?:variant|drug|phenotype))_")


def read_mcq(source: ImportedFile) -> Iterator[ImportedAnswer]:
    """The multiple-choice answers of a file; the mode is `questions`."""
    match = _KIND.search(source.name)
    for row in source.rows():
        if match:
            kind = {"source_pipeline": match[1]}
        elif "source_pipeline" in row.fields:
            kind = {}
        else:
            raise row.error(
                "the pipeline is not known (name the file *_mcq_drug_*.jsonl, "
                "or _variant_ or _phenotype_)"
            )
        labelled_row = replace(row, fields={**row.fields, **kind})
        pipeline = pipeline_of(labelled_row, "source_pipeline")
        yield _answer(source, row, pipeline, MCQ_FACTS)


def read_study(source: ImportedFile) -> Iterator[ImportedAnswer]:
    """The study-parameter answers of a file; the mode is `questions`."""
    for row in source.rows():
        yield _answer(source, row, "study_param", STUDY_FACTS)


def _answer(
    source: ImportedFile, row: JsonRow, pipeline: Pipeline, facts: tuple[str, ...]
) -> ImportedAnswer:
    pmcid = source.paper_of(row)
    question = replace(read_question(pipeline, row), unknown=())
    stored = StoredQuestion(
        question=question,
        had_paper=row.fields.get("had_paper_context") is not False,
        recorded=recorded(row, facts),
    )
    skip, error = row.text("skip_reason") or None, row.text("error") or None
    return ImportedAnswer(
        spec=TaskSpec(
            stage="question",
            key=f"{pmcid}/{question.key}",
            skip=skip,
            context=encode(stored),
        ),
        model=source.model_of(row),
        replicate=source.replicate_of(row),
        text=None if skip or error else reply_text(row, "response"),
        error=error,
        finish_reason=row.text("finish_reason") or "stop",
    )
