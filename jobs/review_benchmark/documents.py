"""Builds the documents of a scoring: `benchmark_{id}.json`, a summary, the failures.

Numbers have all their digits but in `summary`, which other programs compare by eye.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from jobs.review_benchmark.agent_results import AgentResults
from jobs.review_benchmark.benchmark import failure_reasons, percent
from jobs.review_benchmark.data import AgentRecord
from jobs.review_benchmark.effects import StatedEffect
from jobs.review_benchmark.losses import LOST_AT, PaperMatch
from jobs.review_benchmark.rebuilt_reviews import CandidatePaper, RebuiltReview
from jobs.review_benchmark.results import BenchmarkResults
from jobs.review_benchmark.settings import INPUTS
from jobs.review_benchmark.truth_files import json_file, review_to_json, study_fields
from jobs.review_benchmark.verdicts import ConclusionVerdicts
from jobs.text import plural, slugs
from runner.scorecard import Artifact, Metric
from store.printable import printable


class ResultPaths:
    """The result files of a scoring: in folders by model where there are several."""

    def __init__(self, models: Iterable[str], reviews: Iterable[str]) -> None:
        self._models = slugs(models)
        self._reviews = slugs(reviews)

    def result(self, model: str, review: str) -> str:
        """The file of what a model made of a review."""
        name = f"benchmark_{self._reviews[review]}.json"
        if len(self._models) == 1:
            return f"results/{name}"
        return f"results/{self._models[model]}/{name}"


FORMAT = 1
"""Of the files; another one where a field changes its meaning."""

DIGITS = 4
"""Of recall and precision in the summary."""


def result_files(
    results: BenchmarkResults, concluded: Sequence[ConclusionVerdicts]
) -> Iterator[Artifact]:
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
    places = ResultPaths(
        results.columns,
        (review.id for review in results.sheet.reviews),
    )
    for column in results.columns.values():
        for review in column.benchmarks:
            document = _document(results, column, review) | shared
            if column.model in verdicts:
                document["verdict"] = _verdict(verdicts[column.model], review)
            yield json_file(places.result(column.model, review), document)


def _document(
    results: BenchmarkResults, column: AgentResults, review: str
) -> dict[str, Any]:
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
        "ground_truth": review_to_json(results.dataset.review(review)),
    }


def _stated(own: RebuiltReview) -> dict[str, Any]:
    """Direction and certainty, as the reply whose conclusion is shown states them."""
    shown = next((each for each in own.conclusions if each.text), None)
    return {
        "conclusion_direction": None if shown is None else shown.direction,
        "conclusion_certainty": None if shown is None else shown.certainty,
    }


def _papers(own: RebuiltReview) -> dict[str, Any]:
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
            _paper_json(own, each) for each in own.candidates if each.included
        ],
        "excluded_papers": [
            _paper_json(own, each) for each in own.candidates if not each.included
        ],
    }
    if unseen:
        found["database_papers"] = [_record(each) for each in unseen.values()]
    return found


def _paper_json(own: RebuiltReview, candidate: CandidatePaper) -> dict[str, Any]:
    return {
        **_record(own.papers[candidate.document]),
        "relevance_score": candidate.score,
        "rationale": candidate.rationale or None,
        "outcome": candidate.outcome,
    }


def _record(record: AgentRecord) -> dict[str, Any]:
    return {
        "document_id": record.document,
        "pmid": record.pmid or None,
        "doi": record.doi or None,
        "title": record.title or None,
        "year": record.year,
        **({"other_titles": record.other_titles} if record.other_titles else {}),
    }


def _numbers(
    column: AgentResults, review: str, results: BenchmarkResults
) -> dict[str, Any]:
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


def _verdict(own: ConclusionVerdicts, review: str) -> Mapping[str, Any] | None:
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


def _effect(own: StatedEffect) -> Mapping[str, Any]:
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


_MARKDOWN = str.maketrans({sign: f"\\{sign}" for sign in r"\`*_[]<>#|~&"})
"""What Markdown and the HTML in it act on."""


def documents(
    results: BenchmarkResults, models: Mapping[str, Sequence[Metric]], summary: str
) -> Iterator[Artifact]:
    """`summary.json`, `summary.txt` and `failure_report.md`.

    Args:
        results: what was measured.
        models: all metrics, by model.
        summary: the text that a terminal shows, in full.
    """
    yield json_file("summary.json", _summary(results, models))
    yield Artifact(name="summary.txt", text=summary)
    lines = (line for each in _failures(results) for line in (each, ""))
    yield Artifact(name="failure_report.md", text="\n".join(lines))


def _summary(
    results: BenchmarkResults, models: Mapping[str, Sequence[Metric]]
) -> dict[str, Any]:
    settings = results.dataset.settings
    return {
        "models": {
            model: {
                "metrics": {
                    own.path: _metric(own)
                    for own in models[model]
                    if not own.path.startswith("review.")
                },
                "reviews": {
                    review: {
                        "passed": found.passes(settings.target_recall),
                        "recall": found.recall,
                        "precision": found.precision,
                        "ceiling": found.ceiling,
                        "failure_reasons": list(failure_reasons(found, settings)),
                    }
                    for review, found in column.benchmarks.items()
                },
            }
            for model, column in results.columns.items()
        },
        "target_recall": settings.target_recall,
        "matching": results.matching,
        "truth_sha256": dict(results.truth),
        "database_sha256": results.database,
    }


def _metric(own: Metric) -> dict[str, Any]:
    return {
        "value": own.value,
        "n": own.n,
        "n_defined": own.n if own.n_defined is None else own.n_defined,
        "lo": own.lo,
        "hi": own.hi,
        "std": own.std,
    }


def _failures(results: BenchmarkResults) -> Iterator[str]:
    """A paragraph, heading or list each; every text from outside is made plain."""
    target = results.dataset.settings.target_recall
    yield "# Reviews that failed"
    yield (
        f"A review passes at a recall of {percent(target)}. What was lost is listed by "
        "the step at which it was lost, with what can be done about it."
    )
    for model, column in results.columns.items():
        yield f"## {_plain(model)}"
        failed = [
            review
            for review, found in column.benchmarks.items()
            if not found.passes(target)
        ]
        yield (
            f"{len(failed)} of {plural(len(column.benchmarks), 'review')} failed."
            if failed
            else f"All of {plural(len(column.benchmarks), 'review')} passed."
        )
        for review in failed:
            yield from _failed(results, column, review)


def _failed(
    results: BenchmarkResults, column: AgentResults, review: str
) -> Iterator[str]:
    found = column.benchmarks[review]
    titles = {own.id: own.title for own in results.sheet.reviews}
    yield f"### {_plain(review)}: {_plain(titles[review])}"
    reached = f"Recall {found.recall:.1%}; these papers allow {found.ceiling:.1%}"
    reasons = failure_reasons(found, results.dataset.settings)
    yield "\n".join(f"- {_plain(each)}" for each in (reached, *reasons))
    lost = column.lost(review)
    for step in LOST_AT:
        papers = [own for own in lost if own.lost_at == step]
        if papers:
            yield f"`{step}` ({len(papers)}):"
            yield "\n".join(map(_paper_lines, papers))


def _paper_lines(own: PaperMatch) -> str:
    name = f"{own.paper.ref_id}: " if own.paper.ref_id else ""
    title = own.paper.title or own.paper.name
    said = f" It says: {own.rationale}" if own.rationale else ""
    return f"- {_plain(name + title)}\n  {_plain(own.resolution + '.' + said)}"


def _plain(text: str) -> str:
    """A text from outside that neither a terminal nor Markdown acts on, on one line."""
    return printable(" ".join(text.split())).translate(_MARKDOWN)
