"""Stand-alone question results: a line a question, which is in the row itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from jobs.paper_investigation.importing.context import StoredQuestion, encode
from jobs.paper_investigation.importing.source import (
    Source,
    pipeline_of,
    recorded,
    reply_text,
)
from jobs.paper_investigation.questions import read_question
from jobs.paper_investigation.rows import Row
from jobs.paper_investigation.settings import Pipeline
from runner.job import ImportedAnswer, TaskSpec

MCQ_FACTS = ("prediction_parsed", "correct")
STUDY_FACTS = (
    "response_p_value",
    "response_significance",
    "p_value_correct",
    "significance_correct",
    "both_correct",
)

_KIND = re.compile(r"_?(mcq_(?:variant|drug|phenotype))_")


def read_mcq(source: Source) -> Iterator[ImportedAnswer]:
    """The multiple-choice answers of a file; the mode is `questions`."""
    named = _KIND.search(source.path.name)
    for row in source.rows():
        if named:
            kind = {"source_pipeline": named[1]}
        elif "source_pipeline" in row.fields:
            kind = {}
        else:
            raise row.error(
                "the pipeline is not known (name the file *_mcq_drug_*.jsonl, "
                "or _variant_ or _phenotype_)"
            )
        named_row = replace(row, fields={**row.fields, **kind})
        pipeline = pipeline_of(named_row, "source_pipeline")
        yield _answer(source, row, pipeline, MCQ_FACTS)


def read_study(source: Source) -> Iterator[ImportedAnswer]:
    """The study-parameter answers of a file; the mode is `questions`."""
    for row in source.rows():
        yield _answer(source, row, "study_param", STUDY_FACTS)


def _answer(
    source: Source, row: Row, pipeline: Pipeline, facts: tuple[str, ...]
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
