"""Builds the documents of a scoring: `benchmark_{id}.json`, a summary, the failures.

Numbers have all their digits except in `summary`, which people compare with other
programs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from importlib.metadata import version
from typing import Any

from jobs.kit.text_format import plural, slugs
from jobs.review_benchmark.agent_results import AgentResults
from jobs.review_benchmark.benchmark import failure_reasons, percent
from jobs.review_benchmark.data import AgentRecord
from jobs.review_benchmark.effects import StatedEffect
from jobs.review_benchmark.losses import PaperMatch, by_step
from jobs.review_benchmark.rebuilt_reviews import CandidatePaper, RebuiltReview
from jobs.review_benchmark.results import BenchmarkResults
from jobs.review_benchmark.settings import INPUTS, QUESTION
from jobs.review_benchmark.truth_files import json_file, review_to_json, study_fields
from jobs.review_benchmark.verdicts import ConclusionVerdicts
from runner.scorecard import Artifact, Metric
from store.printable import printable


class ResultPaths:
    """Paths of a scoring's result files: in folders by model if there are several."""

    def __init__(self, models: Iterable[str], reviews: Iterable[str]) -> None:
        self._models = slugs(models)
        self._reviews = slugs(reviews)

    def result(self, model: str, review: str) -> str:
        """Return the path of a model's result for a review."""
        name = f"benchmark_{self._reviews[review]}.json"
        if len(self._models) == 1:
            return f"results/{name}"
        return f"results/{self._models[model]}/{name}"


FORMAT = 1
"""Version of the files; it changes when a field changes its meaning."""

DIGITS = 4
"""Digits of recall and precision in the summary."""


def result_files(
    results: BenchmarkResults, concluded: Sequence[ConclusionVerdicts]
) -> Iterator[Artifact]:
    """Yield a file for each review that each model has completed."""
    verdicts = {model_verdicts.model: model_verdicts for model_verdicts in concluded}
    shared = {
        "settings": results.dataset.settings.model_dump(
            mode="json", exclude={*INPUTS, *QUESTION}
        ),
        # in the settings, null means that the scale decides; agents of an import used
        # other thresholds, which are unknown here
        "threshold": None
        if results.predictions.imported
        else results.dataset.settings.least_score,
        "matching": results.matching,
        "database_sha256": results.database,
        "versions": {"siftlog": version("siftlog"), "format": FORMAT},
    }
    paths = ResultPaths(
        results.columns,
        (review.id for review in results.predictions.reviews),
    )
    for column in results.columns.values():
        for review in column.benchmarks:
            document = _document(results, column, review) | shared
            if column.model in verdicts:
                document["verdict"] = _verdict(verdicts[column.model], review)
            yield json_file(paths.result(column.model, review), document)


def _document(
    results: BenchmarkResults, column: AgentResults, review: str
) -> dict[str, Any]:
    settings = results.dataset.settings
    benchmark, rebuilt_review = column.benchmarks[review], column.rebuilt[review]
    concluded = rebuilt_review.concluded
    numbers = _numbers(column, review, results)
    return {
        "cochrane_id": review,
        "model": column.model,
        **numbers,
        "failure_reasons": list(failure_reasons(benchmark, settings)),
        "recall_distinct": benchmark.recall_distinct,
        "ceiling": benchmark.ceiling,
        "retrieval_recall": benchmark.retrieval_recall,
        "screening_recall": benchmark.screening_recall,
        "nnr": benchmark.nnr,
        "plan_fallback": any(search.is_fallback for search in rebuilt_review.searches),
        "skip": rebuilt_review.skip or None,
        "calls": rebuilt_review.spent.calls,
        "tokens_in": rebuilt_review.spent.tokens_in,
        "tokens_out": rebuilt_review.spent.tokens_out,
        "cost_usd": rebuilt_review.spent.cost_usd,
        "conclusion": concluded.text or None,
        "conclusion_direction": concluded.direction,
        "conclusion_certainty": concluded.certainty,
        **_papers(rebuilt_review),
        "summary": numbers
        | {name: round(numbers[name], DIGITS) for name in ("recall", "precision")},
        "matches": [_match(match) for match in column.matches[review]],
        "lost": [_lost(match) for match in column.lost(review)],
        "suspicious": [
            {
                "ground_truth_index": suspicious_match.index,
                "matched_document_id": suspicious_match.document,
                "reason": suspicious_match.reason,
                "message": suspicious_match.message,
            }
            for suspicious_match in column.suspicious[review]
        ],
        "truth_sha256": results.truth[review],
        "ground_truth": review_to_json(results.dataset.review(review)),
    }


def _papers(rebuilt_review: RebuiltReview) -> dict[str, Any]:
    """Return the agent's result in the form that can be imported."""
    seen = {candidate.document for candidate in rebuilt_review.candidates}
    unseen = {
        document: record
        for document, record in rebuilt_review.records.items()
        if document not in seen
    }
    result: dict[str, Any] = {"library": rebuilt_review.model}
    for name, is_included in (("included_papers", True), ("excluded_papers", False)):
        result[name] = [
            _paper_json(rebuilt_review, candidate)
            for candidate in rebuilt_review.candidates
            if candidate.included == is_included
        ]
    if unseen:
        result["database_papers"] = [_record(record) for record in unseen.values()]
    return result


def _paper_json(
    rebuilt_review: RebuiltReview, candidate: CandidatePaper
) -> dict[str, Any]:
    return {
        **_record(rebuilt_review.papers[candidate.document]),
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
    """Return the fields that results of other programs have too."""
    benchmark = column.benchmarks[review]
    precision = benchmark.precision
    return {
        "total_ground_truth_papers": benchmark.truth,
        "total_agent_included": benchmark.included_rows,
        "papers_found": benchmark.found,
        "papers_found_and_included": benchmark.found_and_included,
        "papers_not_found": benchmark.not_found,
        "papers_found_but_excluded": benchmark.found_but_excluded,
        "recall": benchmark.recall,
        # there, precision is 0 without included rows; the means leave out such results
        "precision": 0.0 if precision is None else precision,
        "passed": benchmark.passes(results.dataset.settings.target_recall),
        "match_methods": dict(sorted(benchmark.methods.items())),
        "distinct_documents_matched": benchmark.documents,
    }


def _verdict(verdicts: ConclusionVerdicts, review: str) -> Mapping[str, Any] | None:
    """Return a review's verdict; None if the authors' conclusion is unknown."""
    match = verdicts.matches.get(review)
    if match is None:
        return None
    threshold = verdicts.threshold
    return {
        "kind": verdicts.kind,
        "similarity": match.similarity,
        "threshold": threshold and threshold.value,
        "passed": verdicts.passes(review),
        "directions": list(match.directions),
        "failure": match.failure or None,
        "threshold_source": threshold and threshold.source,
        "agent": _effect(match.agent),
        "authors": _effect(match.truth),
        "effect": match.effect and match.effect.outcome,
        "effect_reason": match.effect and match.effect.reason,
    }


def _effect(effect: StatedEffect) -> Mapping[str, Any]:
    return {"direction": effect.direction, "certainty": effect.certainty}


def _lost(match: PaperMatch) -> Mapping[str, Any]:
    near = match.near
    return {
        "ground_truth_index": match.index,
        "title": match.paper.title or match.paper.name,
        "lost_at": match.lost_at,
        "hint": match.resolution,
        "nearest": near
        and {"document_id": near.document, "title": near.title, "ratio": near.ratio},
    }


def _match(match: PaperMatch) -> Mapping[str, Any]:
    return {
        "ground_truth_index": match.index,
        "ground_truth_paper": study_fields(match.paper),
        "matched_document_id": match.document or None,
        "match_method": match.method,
        "match_confidence": match.confidence,
        "found": match.has_record,
        "was_included": match.included,
        "relevance_score": match.score,
        "rationale": match.rationale or None,
        "lost_at": match.lost_at,
        "resolution": match.resolution or None,
    }


_MARKDOWN = str.maketrans({sign: f"\\{sign}" for sign in r"\`*_[]<>#|~&"})
"""Escapes of the characters that Markdown and its HTML interpret."""


def documents(
    results: BenchmarkResults, models: Mapping[str, Sequence[Metric]], summary: str
) -> Iterator[Artifact]:
    """Yield `summary.json`, `summary.txt` and `failure_report.md`."""
    yield json_file("summary.json", _summary(results, models))
    yield Artifact(name="summary.txt", text=summary)
    lines = (line for paragraph in _failures(results) for line in (paragraph, ""))
    yield Artifact(name="failure_report.md", text="\n".join(lines))


def _summary(
    results: BenchmarkResults, models: Mapping[str, Sequence[Metric]]
) -> dict[str, Any]:
    settings = results.dataset.settings
    return {
        "models": {
            model: {
                "metrics": {
                    metric.path: _metric(metric)
                    for metric in models[model]
                    if not metric.path.startswith("review.")
                },
                "reviews": {
                    review: {
                        "passed": benchmark.passes(settings.target_recall),
                        "recall": benchmark.recall,
                        "precision": benchmark.precision,
                        "ceiling": benchmark.ceiling,
                        "failure_reasons": list(failure_reasons(benchmark, settings)),
                    }
                    for review, benchmark in column.benchmarks.items()
                },
            }
            for model, column in results.columns.items()
        },
        "target_recall": settings.target_recall,
        "matching": results.matching,
        "truth_sha256": dict(results.truth),
        "database_sha256": results.database,
    }


def _metric(metric: Metric) -> dict[str, Any]:
    return {
        "value": metric.value,
        "n": metric.n,
        "n_defined": metric.n if metric.n_defined is None else metric.n_defined,
        "lo": metric.lo,
        "hi": metric.hi,
        "std": metric.std,
    }


def _failures(results: BenchmarkResults) -> Iterator[str]:
    """Yield paragraphs, headings and lists; text from outside is escaped."""
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
            for review, benchmark in column.benchmarks.items()
            if not benchmark.passes(target)
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
    benchmark = column.benchmarks[review]
    titles = {
        scored_review.id: scored_review.title
        for scored_review in results.predictions.reviews
    }
    yield f"### {_plain(review)}: {_plain(titles[review])}"
    reached = (
        f"Recall {benchmark.recall:.1%}; these papers allow {benchmark.ceiling:.1%}"
    )
    reasons = failure_reasons(benchmark, results.dataset.settings)
    yield "\n".join(f"- {_plain(sentence)}" for sentence in (reached, *reasons))
    for step, papers in by_step(column.lost(review)):
        yield f"`{step}` ({len(papers)}):"
        yield "\n".join(map(_paper_lines, papers))


def _paper_lines(match: PaperMatch) -> str:
    name = f"{match.paper.ref_id}: " if match.paper.ref_id else ""
    title = match.paper.title or match.paper.name
    rationale = f" Rationale: {match.rationale}" if match.rationale else ""
    return f"- {_plain(name + title)}\n  {_plain(match.resolution + '.' + rationale)}"


def _plain(text: str) -> str:
    """Return a text from outside on one line, without terminal or Markdown syntax."""
    return printable(" ".join(text.split())).translate(_MARKDOWN)
