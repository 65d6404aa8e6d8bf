"""Investigation records: a line a paper, its list and its answers by variant.

The older records hold no question. Its identity there is the variant under which the
answer stands and its position; what was expected comes with the answer. Records that
this job wrote carry the questions and are read in full.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import msgspec

from jobs.paper_investigation.dataset import Question
from jobs.paper_investigation.importing.context import (
    UNKNOWN_SKIP,
    StoredPaper,
    StoredQuestion,
    encode,
)
from jobs.paper_investigation.importing.source import (
    Source,
    pipeline_of,
    recorded,
    reply_text,
)
from jobs.paper_investigation.questions import LETTERS, read_question
from jobs.paper_investigation.rows import Row
from runner.job import ImportedAnswer, TaskSpec

FAILED = "extraction_failed"
"""The skip reason of a paper whose extraction has no reply."""

PAPER_FACTS = ("variant_recall", "paper_score")
QUESTION_FACTS = ("correct",)

_P_VALUE = "p="
_SIGNIFICANCE = ", sig="


def read_investigation(source: Source) -> Iterator[ImportedAnswer]:
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


def _list_reply(row: Row) -> str | None:
    """The reply of the extraction, else the list that was read; None: neither."""
    if isinstance(row.fields.get("raw_response"), str):
        return reply_text(row, "raw_response")
    if row.fields.get("predicted_variants") is None:
        return None
    return msgspec.json.encode(row.texts("predicted_variants")).decode()


def _entries(row: Row) -> Iterator[Row]:
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


def _entry(row: Row, variant: str, position: int, response: Mapping[str, Any]) -> Row:
    places = {"variant": variant, "question_id": f"{variant}#{position}"}
    return replace(row, fields={**places, **response})


def _question(entry: Row, pmcid: str) -> Question:
    pipeline = pipeline_of(entry, "source_pipeline")
    if _holds_question(entry):
        asked = entry.fields["question"]
        ids = {"pmcid": pmcid, "question_id": entry.text("question_id")}
        full = read_question(pipeline, replace(entry, fields={**asked, **ids}))
        return replace(full, unknown=())
    question = Question(
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


def _holds_question(entry: Row) -> bool:
    """Whether an answer says what was asked; a null says that nobody knows."""
    return isinstance(entry.fields.get("question"), Mapping)


def _study_expectation(entry: Row, answer: str) -> tuple[str, str]:
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
