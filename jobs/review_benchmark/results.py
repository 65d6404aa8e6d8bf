"""Computes all results of a run, before they become tables and files.

Differences, tests and verdicts are those of `jobs.kit.comparison`. McNemar's test over
the truth papers ignores the dependence of papers within a review; it is reported in
addition and decides nothing. Findings point out gaps, suspicious searches and matches,
and verdicts that need care.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Literal

import numpy as np

from jobs.kit.baselines import TrivialBaseline
from jobs.kit.comparison.models import ModelPair
from jobs.kit.metrics import FEW_CLUSTERS, Ratio, Resamples, mean, ratio
from jobs.kit.score import ItemFrame, ItemMetric, comparable
from jobs.review_benchmark.agent_results import AgentCounts, AgentResults, measure_agent
from jobs.review_benchmark.benchmark import ReviewBenchmarkCounts
from jobs.review_benchmark.conclusion_similarity import LEAST_PAIRS
from jobs.review_benchmark.inputs import ReviewDataset, matching_options, truth_hash
from jobs.review_benchmark.rebuilt_reviews import ReviewPredictions
from jobs.review_benchmark.settings import ReviewBenchmarkSettings
from jobs.review_benchmark.verdicts import ConclusionVerdicts
from runner.scorecard import Comparable, Finding

PAIRED = ("macro.recall", "macro.precision", "micro.recall", "micro.precision")
"""Metrics that a summary compares; each is a separate question and family."""


def _finding(
    code: str,
    severity: Literal["warn", "info"],
    where: str,
    message: str,
    cases: Sequence[str],
) -> Iterator[Finding]:
    """Yield one finding about all cases; none if there are no cases."""
    if cases:
        yield Finding(
            code=code,
            severity=severity,
            where=where,
            message=message,
            n=len(cases),
            example=cases[0],
        )


def agent_findings(
    columns: Mapping[str, AgentResults],
    predictions: ReviewPredictions,
    settings: ReviewBenchmarkSettings,
) -> Iterator[Finding]:
    """Yield the findings about a scoring and each of its agents."""
    reviews = len(predictions.reviews)
    if settings.boot_b and reviews < FEW_CLUSTERS:
        yield Finding(
            code="few_reviews",
            severity="info",
            where="intervals",
            message=f"There are fewer than {FEW_CLUSTERS} reviews, so that intervals "
            "by review are rough.",
            n=reviews,
        )
    for model, column in columns.items():
        yield from _of_agent(model, column, predictions)
        yield from _junk(model, column, autojunk=settings.autojunk)


def _of_agent(
    model: str, column: AgentResults, predictions: ReviewPredictions
) -> Iterator[Finding]:
    searches = [
        (review, searched)
        for review, rebuilt in column.rebuilt.items()
        for searched in rebuilt.searches
    ]
    yield from _finding(
        "review_not_done",
        "warn",
        model,
        "Reviews have no result yet and are in no mean.",
        [r.id for r in predictions.reviews if r.id not in column.rebuilt],
    )
    yield from _finding(
        "plan_fallback",
        "warn",
        model,
        "Search plans could not be read; the fixed plan was searched.",
        [review for review, searched in searches if searched.is_fallback],
    )
    yield from _finding(
        "no_hits",
        "info",
        model,
        "Queries found no paper.",
        [
            f"{review}: {query.label or 'query'}"
            for review, searched in searches
            for query, hits in zip(searched.queries, searched.hits, strict=True)
            if not hits
        ],
    )
    yield from _finding(
        "candidates_cut",
        "info",
        model,
        "Searches found more papers than max_candidates.",
        [
            f"{review}: {cut:,} more"
            for review, searched in searches
            if (cut := searched.search_hits.cut)
        ],
    )
    yield from _finding(
        "suspicious_match",
        "info",
        model,
        "Matches that a person should check.",
        [
            f"{review}: {suspicious_match.message}"
            for review, every in column.suspicious.items()
            for suspicious_match in every
        ],
    )


def _junk(model: str, column: AgentResults, *, autojunk: bool) -> Iterator[Finding]:
    """Yield a finding with both counts of each review in which they differ."""
    for review, other in column.otherwise.items():
        counts = (column.benchmarks[review], other)
        on, off = counts if autojunk else reversed(counts)
        yield Finding(
            code="autojunk_matters",
            severity="warn",
            where=f"{review} of {model}",
            message="Long titles are matched otherwise without autojunk: "
            f"found {on.found} with it and {off.found} without, "
            f"included {on.found_and_included} and {off.found_and_included}.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchmarkResults:
    """Results of all agents of a run."""

    dataset: ReviewDataset
    predictions: ReviewPredictions
    columns: Mapping[str, AgentResults]  #: by model, in the run's order
    truth: Mapping[str, str]  #: hash of the studies to find, by review
    matching: str  #: matching settings, in one line
    database: str | None  #: hash of the papers; None for an import
    findings: tuple[Finding, ...]
    pairs: tuple[ModelPair, ...] = ()  #: only a scorecard compares agents


def draws_of(
    settings: ReviewBenchmarkSettings,
) -> Callable[[tuple[str, ...]], Resamples]:
    """Return a function with the same sequence of draws for each set of reviews."""

    @cache
    def draws(reviews: tuple[str, ...]) -> Resamples:
        return Resamples(
            reviews,
            settings.boot_b,
            settings.boot_seed,
            level=settings.level,
            cluster="review",
            form=settings.interval,
        )

    return draws


def measure_agents(
    dataset: ReviewDataset, predictions: ReviewPredictions
) -> BenchmarkResults:
    """Compute the results of every agent."""
    draws = draws_of(dataset.settings)
    reviews = {review.id: review for review in predictions.reviews}
    columns = {
        model: measure_agent(
            model, predictions.of(model), reviews, dataset.settings, draws
        )
        for model in predictions.models
    }
    database = dataset.database
    return BenchmarkResults(
        dataset=dataset,
        predictions=predictions,
        columns=columns,
        truth={review.id: truth_hash(review) for review in predictions.reviews},
        matching=matching_options(dataset.settings),
        database=None
        if database is None or predictions.imported
        else database.content_hash,
        findings=(
            *dataset.findings,
            *predictions.findings,
            *agent_findings(columns, predictions, dataset.settings),
        ),
    )


DIGITS = 8
"""Digits of the hashes that distinguish two truths or databases."""

_MEASURES: Mapping[str, Callable[[ReviewBenchmarkCounts], float | None]] = {
    "recall": lambda benchmark: benchmark.recall,
    "precision": lambda benchmark: benchmark.precision,
    "retrieval_recall": lambda benchmark: benchmark.retrieval_recall,
    "screening_recall": lambda benchmark: benchmark.screening_recall,
}


def compared(results: BenchmarkResults, column: AgentResults) -> Comparable:
    """Return the values of a model's headline metrics, computed lazily, by path.

    Reviews are named with the hash of their truth, and definitions with matching and
    database: values with different ones are not compared.
    """
    reviews = partial(_reviews, results)
    metrics: list[ItemMetric[AgentResults]] = [
        ItemMetric(
            f"macro.{name}",
            reviews,
            partial(_by_review, rate),
            definition=_definition(results, f"{name}@1(mean over reviews"),
        )
        for name, rate in _MEASURES.items()
        # an import offers all its records: recalls of a search mean nothing
        if name in {"recall", "precision"} or not results.predictions.imported
    ]
    metrics += [
        ItemMetric(
            "micro.recall",
            partial(_papers, results),
            definition=_definition(results, "recall@1(pooled over reviews"),
        ),
        ItemMetric(
            "micro.precision",
            reviews,
            _included,
            definition=_definition(results, "precision@1(pooled over reviews"),
        ),
    ]
    return comparable(
        (replace(m, family=m.path if m.path in PAIRED else "") for m in metrics),
        column,
        {},
    )


def _reviews(results: BenchmarkResults, column: AgentResults) -> ItemFrame:
    """Return the reviews that the agent has completed."""
    reviews = list(column.benchmarks)
    keys = [_versioned_review(results, review) for review in reviews]
    return ItemFrame.of(keys, reviews, cluster="review")


def _by_review(
    rate: Callable[[ReviewBenchmarkCounts], float | None], column: AgentResults
) -> list[float | None]:
    return [*map(rate, column.benchmarks.values())]


def _included(column: AgentResults) -> Ratio:
    """Return each review's part of the pooled precision."""
    benchmarks = column.benchmarks.values()
    return Ratio(
        [benchmark.credited for benchmark in benchmarks],
        [benchmark.included_rows for benchmark in benchmarks],
    )


def _papers(results: BenchmarkResults, column: AgentResults) -> ItemFrame:
    """Return the truth papers, labelled by whether they are included."""
    matches = [
        (review, match)
        for review, review_matches in column.matches.items()
        for match in review_matches
    ]
    return ItemFrame.of(
        [
            f"{_versioned_review(results, review)}:{match.index}"
            for review, match in matches
        ],
        [review for review, _ in matches],
        cluster="review",
        truth=np.ones(len(matches), dtype=np.int64),
        label=np.array([match.included for _, match in matches], dtype=np.int64),
    )


def _versioned_review(results: BenchmarkResults, review: str) -> str:
    return f"{review}@{results.truth[review][:DIGITS]}"


def _definition(results: BenchmarkResults, begun: str) -> str:
    database = "none" if results.database is None else results.database[:DIGITS]
    return f"{begun}; {results.matching}; database={database})"


CHANCE = "chance, with the agent's share of inclusions"


def trivial_baselines(counted: AgentCounts) -> Iterator[TrivialBaseline]:
    """Yield the baselines over the reviews that have candidates."""
    pairs = [
        (benchmark, counted.included[review], counted.offered[review])
        for review, benchmark in counted.benchmarks.items()
        if counted.offered[review]
    ]
    n = len(pairs)
    every = "include every candidate"
    for of, key, name, value, formula in (
        (
            "macro.recall",
            "include_all",
            every,
            mean(benchmark.retrieval_recall for benchmark, _, _ in pairs),
            "studies among the candidates / studies, mean over reviews",
        ),
        (
            "macro.recall",
            "random",
            CHANCE,
            mean(
                benchmark.retrieval_recall * included / offered
                for benchmark, included, offered in pairs
            ),
            "that, times included candidates / candidates, mean over reviews",
        ),
        (
            "macro.precision",
            "include_all",
            every,
            mean(
                ratio(benchmark.retrieved, offered) for benchmark, _, offered in pairs
            ),
            "studies among the candidates / candidates, mean over reviews",
        ),
    ):
        yield TrivialBaseline(
            of=of, key=key, name=name, value=value, n=n, formula=formula
        )


def verdict_findings(
    dataset: ReviewDataset, concluded: Sequence[ConclusionVerdicts]
) -> Iterator[Finding]:
    """Yield findings about unused labels, useless labels and alike conclusions."""
    if dataset.labels:
        yield from _labels(dataset, concluded)
    similar_pairs = dict.fromkeys(
        pair for verdicts in concluded for pair in verdicts.similar_reviews
    )
    yield from _finding(
        "alike_conclusions",
        "info",
        "verdicts",
        "Conclusions of different reviews are as alike as the threshold.",
        [" and ".join(pair) for pair in similar_pairs],
    )


def not_available(concluded: Sequence[ConclusionVerdicts]) -> Iterator[str]:
    """Yield why an agent has no similarity, or no threshold, and the remedy."""
    for verdicts in concluded:
        if verdicts.kind == "direction":
            if verdicts.compared and not verdicts.judged:
                yield (
                    f"{verdicts.model}: verdicts; no conclusion can be judged by "
                    "the stated direction of effect (verdicts.csv says why; give "
                    "the truth a conclusion_direction, or name a --judge-model "
                    "with --verdict judge)"
                )
        elif not verdicts.compared:
            yield (
                f"{verdicts.model}: verdicts; nothing compares its conclusions by "
                f"{verdicts.kind} (verdicts.csv says why; --verdict direction "
                "needs no call)"
            )
        elif verdicts.threshold is None:
            yield (
                f"{verdicts.model}: a threshold of verdicts; it takes {LEAST_PAIRS} "
                f"mismatched pairs, and there are {len(verdicts.mismatched)} (label "
                "conclusions: --verdict-labels FILE)"
            )


def _labels(
    dataset: ReviewDataset, concluded: Sequence[ConclusionVerdicts]
) -> Iterator[Finding]:
    compared = {
        (verdicts.model, review)
        for verdicts in concluded
        for review in verdicts.compared
    }
    where = "" if (path := dataset.settings.verdict_labels) is None else path.name
    yield from _finding(
        "labels_unused",
        "warn",
        where,
        "Labels name conclusions that the run does not have.",
        [
            f"{label.review} of {label.model}"
            for label in dataset.labels
            if (label.model, label.review) not in compared
        ],
    )
    if not any(
        verdicts.threshold and verdicts.threshold.source == "labels"
        for verdicts in concluded
    ):
        yield Finding(
            code="labels_of_one_kind",
            severity="warn",
            where=where,
            message="Labels draw no threshold unless some are 0 and some are 1.",
            n=len(dataset.labels),
        )
