"""Computes everything that is measured of a run, before it becomes tables and files.

Differences, tests and verdicts are those of `jobs.comparison`. McNemar's test over the
truth papers ignores that the papers of a review hang together; it is shown beside them
and decides nothing. Findings point out gaps, odd searches, odd matches, and verdicts to
be read with care.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal, TypeAlias

from jobs.comparison.difference import ComparedMetric
from jobs.comparison.models import ModelPair, model_pairs
from jobs.measures import TrivialBaseline
from jobs.metrics import FEW_CLUSTERS, holm, mcnemar, mean, ratio
from jobs.review_benchmark.agent_results import AgentResults, ReviewDraws, measure_agent
from jobs.review_benchmark.benchmark import ReviewBenchmarkCounts
from jobs.review_benchmark.conclusion_similarity import LEAST_PAIRS
from jobs.review_benchmark.inputs import ReviewDataset, matching_options, truth_hash
from jobs.review_benchmark.rebuilt_reviews import ReviewPredictions
from jobs.review_benchmark.settings import ReviewBenchmarkSettings
from jobs.review_benchmark.verdicts import ConclusionVerdicts
from runner.scorecard import Comparable, Finding, ItemValues

PAIRED = ("macro.recall", "macro.precision", "micro.recall", "micro.precision")
"""What a summary compares; each of them is a question, and a family, of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentPair:
    """Two models on the truth papers of the reviews that both have done."""

    left: str
    right: str
    reviews: int
    dropped: int  #: reviews that only one of them has done
    n: int  #: truth papers
    left_alone: int  #: included by the left one only
    right_alone: int
    p: float | None  #: exact McNemar; None where they share no review
    p_holm: float | None = None  #: over all pairs of the run
    metrics: Mapping[str, ComparedMetric]  #: of `PAIRED`, left minus right


def agent_pairs(
    columns: Mapping[str, AgentResults],
    comparables: Mapping[str, Comparable],
    settings: ReviewBenchmarkSettings,
) -> tuple[AgentPair, ...]:
    """Every pair of models, in their order."""
    found = [
        _pair(each, columns[each.left], columns[each.right])
        for each in model_pairs(comparables, PAIRED, settings)
    ]
    corrected = holm([own.p for own in found])
    return tuple(
        replace(own, p_holm=p) for own, p in zip(found, corrected, strict=True)
    )


def _pair(found: ModelPair, left: AgentResults, right: AgentResults) -> AgentPair:
    shared = tuple(review for review in left.benchmarks if review in right.benchmarks)
    included = [
        [match.included for review in shared for match in own.matches[review]]
        for own in (left, right)
    ]
    both = list(zip(*included, strict=True))
    left_alone = sum(a and not b for a, b in both)
    right_alone = sum(b and not a for a, b in both)
    return AgentPair(
        left=found.left,
        right=found.right,
        reviews=len(shared),
        dropped=len(left.benchmarks.keys() ^ right.benchmarks.keys()),
        n=len(both),
        left_alone=left_alone,
        right_alone=right_alone,
        p=mcnemar(left_alone, right_alone).p if both else None,
        metrics=found.metrics,
    )


_FindingText: TypeAlias = tuple[str, Literal["warn", "info"], str, Sequence[str]]
"""Code, severity, sentence, and the cases that there are."""


def agent_findings(
    columns: Mapping[str, AgentResults],
    sheet: ReviewPredictions,
    settings: ReviewBenchmarkSettings,
) -> Iterator[Finding]:
    """The findings about a scoring and each of its agents.

    Args:
        columns: what was measured, by model.
        sheet: what it was measured of.
        settings: of the run.
    """
    reviews = len(sheet.reviews)
    if settings.boot_b and reviews < FEW_CLUSTERS:
        yield Finding(
            code="few_reviews",
            severity="info",
            where="intervals",
            message=f"There are fewer than {FEW_CLUSTERS} reviews, so that intervals "
            "by review are rough.",
            n=reviews,
        )
    for model, own in columns.items():
        for code, severity, message, cases in _finding_texts(own, sheet):
            if cases:
                yield Finding(
                    code=code,
                    severity=severity,
                    where=model,
                    message=message,
                    n=len(cases),
                    example=cases[0],
                )
        yield from _junk(model, own, autojunk=settings.autojunk)


def _finding_texts(
    own: AgentResults, sheet: ReviewPredictions
) -> Sequence[_FindingText]:
    left = [review.id for review in sheet.reviews if review.id not in own.rebuilt]
    searches = [
        (review, searched)
        for review, rebuilt in own.rebuilt.items()
        for searched in rebuilt.searches
    ]
    return (
        (
            "review_not_done",
            "warn",
            "Reviews have no result yet and are in no mean.",
            left,
        ),
        (
            "plan_fallback",
            "warn",
            "Search plans could not be read; the fixed plan was searched.",
            [review for review, searched in searches if searched.is_fallback],
        ),
        (
            "no_hits",
            "info",
            "Queries found no paper.",
            [
                f"{review}: {query.label or 'query'}"
                for review, searched in searches
                for query, hits in zip(searched.queries, searched.hits, strict=True)
                if not hits
            ],
        ),
        (
            "candidates_cut",
            "info",
            "Searches found more papers than max_candidates.",
            [
                f"{review}: {searched.cut:,} more"
                for review, searched in searches
                if searched.cut
            ],
        ),
        (
            "suspicious_match",
            "info",
            "Matches that somebody should look at.",
            [
                f"{review}: {each.message}"
                for review, every in own.suspicious.items()
                for each in every
            ],
        ),
    )


def _junk(model: str, own: AgentResults, *, autojunk: bool) -> Iterator[Finding]:
    """Both counts of each review in which they differ."""
    for review, other in own.otherwise.items():
        counts = (own.benchmarks[review], other)
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
    """A sheet, measured."""

    dataset: ReviewDataset
    sheet: ReviewPredictions
    columns: Mapping[str, AgentResults]  #: by model, in the run's order
    truth: Mapping[str, str]  #: hash of what is looked for, by review
    matching: str  #: how papers were matched, in one line
    database: str | None  #: hash of the papers; None of an import
    findings: tuple[Finding, ...]
    pairs: tuple[AgentPair, ...] = ()  #: only a scorecard compares agents


def measure_agents(
    dataset: ReviewDataset, sheet: ReviewPredictions
) -> BenchmarkResults:
    """Measure every agent."""
    draws = ReviewDraws(settings=dataset.settings)
    reviews = {review.id: review for review in sheet.reviews}
    columns = {
        model: measure_agent(
            model,
            [own for own in sheet.rebuilt if own.model == model],
            reviews,
            dataset.settings,
            draws,
        )
        for model in sheet.models
    }
    database = dataset.database
    return BenchmarkResults(
        dataset=dataset,
        sheet=sheet,
        columns=columns,
        truth={review.id: truth_hash(review) for review in sheet.reviews},
        matching=matching_options(dataset.settings),
        database=None if database is None or sheet.imported else database.content_hash,
        findings=(
            *dataset.findings,
            *sheet.findings,
            *agent_findings(columns, sheet, dataset.settings),
        ),
    )


DIGITS = 8
"""Of the hashes that tell two truths or databases apart."""

_MEASURES: Mapping[str, Callable[[ReviewBenchmarkCounts], float | None]] = {
    "recall": lambda own: own.recall,
    "precision": lambda own: own.precision,
    "retrieval_recall": lambda own: own.retrieval_recall,
    "screening_recall": lambda own: own.screening_recall,
}


def comparable(results: BenchmarkResults, column: AgentResults) -> Comparable:
    """Makers of the values of a model's headline metrics, by path.

    Reviews are named with the hash of their truth, and definitions with matching and
    database: whatever differs in them is not compared.
    """
    made: dict[str, Callable[[], ItemValues]] = {
        f"macro.{name}": partial(_of_reviews, results, column, name)
        for name in _MEASURES
        # whatever an import holds was offered: its recalls are one
        if name in {"recall", "precision"} or not results.sheet.imported
    }
    return {
        **made,
        "micro.recall": partial(_of_papers, results, column),
        "micro.precision": partial(_of_included, results, column),
    }


def _of_reviews(
    results: BenchmarkResults, column: AgentResults, name: str
) -> ItemValues:
    reviews = list(column.benchmarks)
    return ItemValues(
        kind="mean",
        items=[_named(results, review) for review in reviews],
        clusters=reviews,
        cluster="review",
        first=[_MEASURES[name](own) for own in column.benchmarks.values()],
        definition=_definition(results, f"{name}@1(mean over reviews"),
        family=_family(f"macro.{name}"),
    )


def _of_papers(results: BenchmarkResults, column: AgentResults) -> ItemValues:
    """Whether each truth paper is included."""
    matches = [
        (review, match) for review, own in column.matches.items() for match in own
    ]
    return ItemValues(
        kind="mean",
        items=[f"{_named(results, review)}:{match.index}" for review, match in matches],
        clusters=[review for review, _ in matches],
        cluster="review",
        first=[float(match.included) for _, match in matches],
        definition=_definition(results, "recall@1(pooled over reviews"),
        family=_family("micro.recall"),
    )


def _of_included(results: BenchmarkResults, column: AgentResults) -> ItemValues:
    """What each review adds to the pooled precision."""
    reviews = list(column.benchmarks)
    return ItemValues(
        kind="ratio",
        items=[_named(results, review) for review in reviews],
        clusters=reviews,
        cluster="review",
        first=[float(own.credited) for own in column.benchmarks.values()],
        second=[float(own.included_rows) for own in column.benchmarks.values()],
        definition=_definition(results, "precision@1(pooled over reviews"),
        family=_family("micro.precision"),
    )


def _family(path: str) -> str:
    return path if path in PAIRED else ""


def _named(results: BenchmarkResults, review: str) -> str:
    return f"{review}@{results.truth[review][:DIGITS]}"


def _definition(results: BenchmarkResults, begun: str) -> str:
    database = "none" if results.database is None else results.database[:DIGITS]
    return f"{begun}; {results.matching}; database={database})"


CHANCE = "chance, with the agent's share of inclusions"


def trivial_baselines(column: AgentResults) -> Iterator[TrivialBaseline]:
    """Baselines over the reviews that have candidates."""
    pairs = [
        (own, column.rebuilt[review].candidates)
        for review, own in column.benchmarks.items()
        if column.rebuilt[review].candidates
    ]
    n = len(pairs)
    every = "include every candidate"
    for of, key, name, value, how in (
        (
            "macro.recall",
            "include_all",
            every,
            mean(own.retrieval_recall for own, _ in pairs),
            "studies among the candidates / studies, mean over reviews",
        ),
        (
            "macro.recall",
            "random",
            CHANCE,
            mean(
                own.retrieval_recall
                * sum(each.included for each in offered)
                / len(offered)
                for own, offered in pairs
            ),
            "that, times included candidates / candidates, mean over reviews",
        ),
        (
            "macro.precision",
            "include_all",
            every,
            mean(ratio(own.retrieved, len(offered)) for own, offered in pairs),
            "studies among the candidates / candidates, mean over reviews",
        ),
    ):
        yield TrivialBaseline(of=of, key=key, name=name, value=value, n=n, how=how)


def verdict_findings(
    dataset: ReviewDataset, found: Sequence[ConclusionVerdicts]
) -> Iterator[Finding]:
    """Labels without a conclusion, labels that draw no line, and alike conclusions."""
    if dataset.labels:
        yield from _labels(dataset, found)
    alike = list(dict.fromkeys(pair for own in found for pair in own.alike))
    if alike:
        yield Finding(
            code="alike_conclusions",
            severity="info",
            where="verdicts",
            message="Conclusions of different reviews are as alike as the threshold.",
            n=len(alike),
            example=" and ".join(alike[0]),
        )


def not_available(found: Sequence[ConclusionVerdicts]) -> Iterator[str]:
    """Why an agent has no similarity, or no threshold, with what would help."""
    for own in found:
        if own.kind == "direction":
            if own.compared and not own.judged:
                yield (
                    f"{own.model}: verdicts; no conclusion can be judged by the stated "
                    "direction of effect (verdicts.csv says why; give the truth a "
                    "conclusion_direction, or name a --judge-model with --verdict "
                    "judge)"
                )
        elif not own.compared:
            yield (
                f"{own.model}: verdicts; nothing compares its conclusions by "
                f"{own.kind} (verdicts.csv says why; --verdict direction needs no call)"
            )
        elif own.threshold is None:
            yield (
                f"{own.model}: a threshold of verdicts; it takes {LEAST_PAIRS} "
                f"mismatched pairs, and there are {len(own.mismatched)} (label "
                "conclusions: --verdict-labels FILE)"
            )


def _labels(
    dataset: ReviewDataset, found: Sequence[ConclusionVerdicts]
) -> Iterator[Finding]:
    there = {(own.model, review) for own in found for review in own.compared}
    unused = [
        label for label in dataset.labels if (label.model, label.review) not in there
    ]
    where = "" if (path := dataset.settings.verdict_labels) is None else path.name
    if unused:
        yield Finding(
            code="labels_unused",
            severity="warn",
            where=where,
            message="Labels name conclusions that the run does not have.",
            n=len(unused),
            example=f"{unused[0].review} of {unused[0].model}",
        )
    if not any(own.threshold and own.threshold.source == "labels" for own in found):
        yield Finding(
            code="labels_of_one_kind",
            severity="warn",
            where=where,
            message="Labels draw no threshold unless some are 0 and some are 1.",
            n=len(dataset.labels),
        )
