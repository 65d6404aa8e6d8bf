"""`benchmark_{id}.json`: all that one agent came to for one review.

Numbers have all their digits but in `summary`, which other programs compare by eye.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from jobs.review_benchmark.artifacts.naming import Places
from jobs.review_benchmark.inputs.written import review_json, study_fields
from jobs.review_benchmark.json_file import json_file
from jobs.review_benchmark.measuring.column import Column
from jobs.review_benchmark.measuring.lost import PaperMatch
from jobs.review_benchmark.measuring.results import Results
from jobs.review_benchmark.rebuilt import Candidate, Rebuilt
from jobs.review_benchmark.record import Record
from jobs.review_benchmark.settings import INPUTS
from jobs.review_benchmark.summary.reasons import failure_reasons
from jobs.review_benchmark.verdicts.effects import Effect
from jobs.review_benchmark.verdicts.measured import Verdicts
from runner.scorecard import Artifact

FORMAT = 1
"""Of the files; another one where a field changes its meaning."""

DIGITS = 4
"""Of recall and precision in the summary."""


def result_files(results: Results, concluded: Sequence[Verdicts]) -> Iterator[Artifact]:
    """A file for each model and review that it has done.

    Args:
        results: what was measured.
        concluded: how conclusions compare, by model; none where nobody concludes.
    """
    verdicts = {own.model: own for own in concluded}
    shared = {
        "settings": results.dataset.settings.model_dump(mode="json", exclude={*INPUTS}),
        # in the settings it is null where the scale decides; agents of an import
        # decided by a threshold of their own, which nobody here knows
        "threshold": None
        if results.sheet.imported
        else results.dataset.settings.least_score,
        "matching": results.matching,
        "database_sha256": results.database,
        "versions": {"siftlog": version("siftlog"), "format": FORMAT},
    }
    places = Places(
        results.columns,
        (review.id for review in results.sheet.reviews),
    )
    for column in results.columns.values():
        for review in column.benchmarks:
            document = _document(results, column, review) | shared
            if column.model in verdicts:
                document["verdict"] = _verdict(verdicts[column.model], review)
            yield json_file(places.result(column.model, review), document)


def _document(results: Results, column: Column, review: str) -> dict[str, Any]:
    settings = results.dataset.settings
    found, own = column.benchmarks[review], column.rebuilt[review]
    numbers = _numbers(column, review, results)
    return {
        "cochrane_id": review,
        "model": column.model,
        **numbers,
        "failure_reasons": list(failure_reasons(found, settings)),
        "recall_distinct": found.recall_distinct,
        "ceiling": found.ceiling,
        "retrieval_recall": found.retrieval_recall,
        "screening_recall": found.screening_recall,
        "nnr": found.nnr,
        "plan_fallback": any(each.is_fallback for each in own.searches),
        "skip": own.skip or None,
        "calls": own.spent.calls,
        "tokens_in": own.spent.tokens_in,
        "tokens_out": own.spent.tokens_out,
        "cost_usd": own.spent.cost_usd,
        "conclusion": own.conclusion or None,
        **_stated(own),
        **_papers(own),
        "summary": numbers
        | {name: round(numbers[name], DIGITS) for name in ("recall", "precision")},
        "matches": [_match(each) for each in column.matches[review]],
        "lost": [_lost(each) for each in column.lost(review)],
        "suspicious": [
            {
                "ground_truth_index": each.index,
                "matched_document_id": each.document,
                "reason": each.reason,
                "message": each.message,
            }
            for each in column.suspicious[review]
        ],
        "truth_sha256": results.truth[review],
        "ground_truth": review_json(results.dataset.review(review)),
    }


def _stated(own: Rebuilt) -> dict[str, Any]:
    """Direction and certainty, as the reply whose conclusion is shown states them."""
    shown = next((each for each in own.conclusions if each.text), None)
    return {
        "conclusion_direction": None if shown is None else shown.direction,
        "conclusion_certainty": None if shown is None else shown.certainty,
    }


def _papers(own: Rebuilt) -> dict[str, Any]:
    """The agent's result in the form that can be imported."""
    seen = {each.document for each in own.candidates}
    unseen = {
        document: record
        for document, record in own.records.items()
        if document not in seen
    }
    found: dict[str, Any] = {
        "library": own.model,
        "included_papers": [
            _paper(own, each) for each in own.candidates if each.included
        ],
        "excluded_papers": [
            _paper(own, each) for each in own.candidates if not each.included
        ],
    }
    if unseen:
        found["database_papers"] = [_record(each) for each in unseen.values()]
    return found


def _paper(own: Rebuilt, candidate: Candidate) -> dict[str, Any]:
    return {
        **_record(own.papers[candidate.document]),
        "relevance_score": candidate.score,
        "rationale": candidate.rationale or None,
        "outcome": candidate.outcome,
    }


def _record(record: Record) -> dict[str, Any]:
    return {
        "document_id": record.document,
        "pmid": record.pmid or None,
        "doi": record.doi or None,
        "title": record.title or None,
        "year": record.year,
        **({"other_titles": record.other_titles} if record.other_titles else {}),
    }


def _numbers(column: Column, review: str, results: Results) -> dict[str, Any]:
    """The fields that results of other programs have too."""
    found = column.benchmarks[review]
    precision = found.precision
    return {
        "total_ground_truth_papers": found.truth,
        "total_agent_included": found.included_rows,
        "papers_found": found.found,
        "papers_found_and_included": found.found_and_included,
        "papers_not_found": found.not_found,
        "papers_found_but_excluded": found.found_but_excluded,
        "recall": found.recall,
        # there a result without included rows has precision 0; the means leave it out
        "precision": 0.0 if precision is None else precision,
        "passed": found.passes(results.dataset.settings.target_recall),
        "match_methods": dict(sorted(found.methods.items())),
        "distinct_documents_matched": found.documents,
    }


def _verdict(own: Verdicts, review: str) -> Mapping[str, Any] | None:
    """None where the authors' conclusion is not known."""
    match = own.matches.get(review)
    if match is None:
        return None
    return {
        "kind": own.kind,
        "similarity": match.similarity,
        "threshold": None if own.threshold is None else own.threshold.value,
        "passed": own.passes(review),
        "directions": list(match.directions),
        "failure": match.failure or None,
        "threshold_source": None if own.threshold is None else own.threshold.source,
        "agent": _effect(match.agent),
        "authors": _effect(match.truth),
        "effect": match.effect and match.effect.outcome,
        "effect_reason": match.effect and match.effect.reason,
    }


def _effect(own: Effect) -> Mapping[str, Any]:
    return {"direction": own.direction, "certainty": own.certainty}


def _lost(own: PaperMatch) -> Mapping[str, Any]:
    near = own.near
    return {
        "ground_truth_index": own.index,
        "title": own.paper.title or own.paper.name,
        "lost_at": own.lost_at,
        "hint": own.resolution,
        "nearest": None
        if near is None
        else {
            "document_id": near.document,
            "title": near.title,
            "ratio": near.ratio,
        },
    }


def _match(own: PaperMatch) -> Mapping[str, Any]:
    return {
        "ground_truth_index": own.index,
        "ground_truth_paper": study_fields(own.paper),
        "matched_document_id": own.document or None,
        "match_method": own.method,
        "match_confidence": own.confidence,
        "found": own.found,
        "was_included": own.included,
        "relevance_score": own.score,
        "rationale": own.rationale or None,
        "lost_at": own.lost_at,
        "resolution": own.resolution or None,
    }
