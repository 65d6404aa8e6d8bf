"""Draws the figures of a scoring as values that the report renders.

A figure plots the first models of a scoring, each in a style of its own, and is made
when it is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from jobs.kit import shared_figures
from jobs.kit.shared_figures import build_figures
from jobs.review_benchmark.agent_results import AgentResults, mean_curve
from jobs.review_benchmark.benchmark import percent
from jobs.review_benchmark.losses import LostAt
from jobs.review_benchmark.results import BenchmarkResults
from jobs.review_benchmark.settings import VerdictKind
from jobs.review_benchmark.verdicts import ConclusionVerdicts
from runner.scorecard import (
    Axis,
    FailedFigure,
    Figure,
    LineSeries,
    Mark,
    Numbers,
    Panel,
    Points,
    ReferenceLine,
    Stack,
)

Model: TypeAlias = shared_figures.ModelSeries[AgentResults]
"""One of the models that are shown; it has done at least one review."""


PlottedAgents: TypeAlias = shared_figures.PlottedModels[BenchmarkResults, AgentResults]


def plotted_agents(results: BenchmarkResults) -> PlottedAgents:
    """The models that figures have room for."""
    columns = {
        name: column for name, column in results.columns.items() if column.rebuilt
    }
    return shared_figures.plotted_models(results, columns)


Point = TypeVar("Point")

MOST_POINTS = 400
"""Of a curve in a picture; more cannot be told apart."""


def by_threshold(plotted: PlottedAgents) -> Figure | None:
    """Mean recall and precision at each score that occurs."""
    panels = tuple(
        _threshold(model, plotted) for model in plotted.models if model.column.overall
    )
    if not panels:
        return None
    dashed = " Dashed: the threshold of this scoring." if _rule(plotted) else ""
    return Figure(
        name="threshold",
        title="Recall and precision against the threshold",
        caption="Means over reviews, from the stored scores, if papers were included "
        "from each threshold on; at a step the value on its left is that of the "
        f"score itself. A review that includes nothing has no precision.{dashed}"
        f"{plotted.rest}",
        columns=min(2, len(panels)),
        panels=panels,
    )


def _rule(plotted: PlottedAgents) -> tuple[ReferenceLine, ...]:
    """The threshold; an import's agents decided by one of their own."""
    if plotted.results.predictions.imported:
        return ()
    return (
        ReferenceLine(way="vertical", at=plotted.results.dataset.settings.least_score),
    )


def _threshold(model: Model, plotted: PlottedAgents) -> Panel:
    # thresholds fall: each value holds down to the next score, that one left out
    steps = thinned(model.column.overall)
    x = tuple(step.threshold for step in steps)
    return Panel(
        title=model.name,
        x=Axis(label="threshold"),
        y=Axis(label="mean over reviews", lo=0, hi=1),
        marks=(
            *_rule(plotted),
            LineSeries(
                x=x,
                y=tuple(step.recall for step in steps),
                label="recall",
                series=0,
                steps=True,
            ),
            LineSeries(
                x=x,
                y=tuple(step.precision for step in steps),
                label="precision",
                series=1,
                steps=True,
            ),
        ),
    )


def by_rank(plotted: PlottedAgents) -> Figure | None:
    """How much of the truth the first candidates hold."""
    models = [model for model in plotted.models if model.column.curves]
    if not models:
        return None
    return Figure(
        name="retrieval",
        title="Recall against the candidates kept",
        caption="Mean over reviews of the share of included studies among the first "
        "candidates, in the order in which they are scored: what a smaller "
        "max_candidates would lose. A review whose list is shorter "
        f"stays.{plotted.rest}",
        panels=(
            Panel(
                x=Axis(label="candidates kept", lo=0),
                y=Axis(label="recall of the search", lo=0, hi=1),
                marks=tuple(map(_rank, models)),
            ),
        ),
    )


def _rank(model: Model) -> LineSeries:
    points = thinned(((0, 0.0), *mean_curve(model.column.curves)))
    x: Numbers = tuple(n_candidates for n_candidates, _ in points)
    return LineSeries(
        x=x,
        y=tuple(recall for _, recall in points),
        label=model.name,
        series=model.series,
        steps=True,
    )


def thinned(points: Sequence[Point]) -> Sequence[Point]:
    """About `MOST_POINTS` of a curve's points at most; the last one is among them."""
    stride = math.ceil(len(points) / MOST_POINTS)
    return (*points[:-1:stride], points[-1]) if stride > 1 else points


SEARCHED: Mapping[str, Sequence[LostAt]] = {
    "truth": (),
    "database": ("not_in_database", "near_miss_match", "claimed"),
    "retrieved": ("not_retrieved", "date_filtered"),
    "scored": ("unscored",),
    "included": ("below_threshold", "excluded"),
}
"""The steps of an agent's work, and what is lost at each."""

IMPORTED: Mapping[str, Sequence[LostAt]] = {
    "truth": (),
    "records": SEARCHED["database"],
    "included": ("below_threshold", "excluded"),
}
"""The steps that results made elsewhere tell of."""


def waterfall(plotted: PlottedAgents) -> Figure | None:
    """A bar a step: the studies that are left, and on them those lost there."""
    if not plotted.models:
        return None
    steps = IMPORTED if plotted.results.predictions.imported else SEARCHED
    return Figure(
        name="losses",
        title="Where included studies were lost",
        caption="Studies of all reviews that are left after each step, and those that "
        f"were lost at it.{plotted.rest}",
        columns=min(2, len(plotted.models)),
        panels=tuple(_loss_panel(model, steps) for model in plotted.models),
    )


def _loss_panel(model: Model, steps: Mapping[str, Sequence[LostAt]]) -> Panel:
    by_path = model.column.by_path()
    left = int(by_path["count.truth"].value or 0)
    remaining, lost = [], []
    for causes in steps.values():
        here = sum(int(by_path[f"lost.{cause}"].value or 0) for cause in causes)
        left -= here
        remaining.append(left)
        lost.append(here)
    return Panel(
        title=model.name,
        x=Axis(
            names=tuple(
                f"{step}\n{n:,}" for step, n in zip(steps, remaining, strict=True)
            )
        ),
        y=Axis(label="studies", lo=0),
        marks=(
            Stack(values=tuple(remaining), label="left", series=0),
            Stack(values=tuple(lost), label="lost at this step", series=1),
        ),
    )


MOST_REVIEWS = 40
"""Of rows; beyond, single reviews drown."""

BREADTH = 0.5
"""Of the room of a row, what its models take."""


def recall(plotted: PlottedAgents) -> Figure | None:
    """A row a review: the recall of each model, and from it a bar up to its ceiling."""
    if not plotted.models:
        return None
    lowest: dict[str, float] = {}
    for model in plotted.models:
        for review, benchmark in model.column.benchmarks.items():
            lowest[review] = min(benchmark.recall, lowest.get(review, 1.0))
    # the first row is the one on top
    worst = sorted(lowest, key=lambda review: (lowest[review], review))
    rows = tuple(worst[:MOST_REVIEWS])
    left_out = (
        f" The {len(rows)} of {len(lowest)} reviews with the least recall."
        if len(rows) < len(lowest)
        else ""
    )
    target = plotted.results.dataset.settings.target_recall
    return Figure(
        name="recall-by-review",
        title="Recall by review",
        caption="Share of a review's included studies that were found and included. "
        "The bar to the right of a mark ends at the ceiling: the studies that the "
        f"papers searched have at all. Dashed: the target of {percent(target)}."
        f"{left_out}{plotted.rest}",
        panels=(
            Panel(
                x=Axis(label="recall", lo=0, hi=1),
                y=Axis(names=rows),
                height=max(0.6, len(rows) / 16),
                marks=(
                    ReferenceLine(way="vertical", at=target),
                    *(
                        _points(model, rows, len(plotted.models))
                        for model in plotted.models
                    ),
                ),
            ),
        ),
    )


def _points(model: Model, rows: tuple[str, ...], models: int) -> Points:
    """The marks of one model; those of a review lie below one another."""
    row_benchmarks = [
        (index, benchmark)
        for index, review in enumerate(rows)
        if (benchmark := model.column.benchmarks.get(review)) is not None
    ]
    aside = BREADTH * (model.series - (models - 1) / 2) / models
    return Points(
        x=tuple(benchmark.recall for _, benchmark in row_benchmarks),
        y=tuple(index + aside for index, _ in row_benchmarks),
        lo=tuple(benchmark.recall for _, benchmark in row_benchmarks),
        hi=tuple(benchmark.ceiling for _, benchmark in row_benchmarks),
        label=model.name,
        series=model.series,
    )


_BY: Mapping[VerdictKind, str] = {
    "direction": "tfidf",
    "tfidf": "tfidf",
    "judge": "judge",
    "embedding": "embedding",
}
"""What gives the similarity, by the kind of verdict."""


def verdict_similarity(
    plotted: PlottedAgents, concluded: Sequence[ConclusionVerdicts]
) -> Figure | None:
    """The share of matched and of mismatched pairs above each similarity."""
    verdicts_by_model = {
        verdicts.model: verdicts for verdicts in concluded if verdicts.compared
    }
    plotted_verdicts = [
        verdicts_by_model[model.name]
        for model in plotted.models
        if model.name in verdicts_by_model
    ]
    if not plotted_verdicts:
        return None
    return Figure(
        name="verdicts",
        title="Conclusions of the same review and of others",
        caption="Share of the pairs of conclusions that are more alike than each "
        "similarity: matched are an agent's and the authors' of one review, mismatched "
        "those of two. The further apart the lines, the more a verdict says. Dashed: "
        f"the threshold, if there is one.{plotted.rest}",
        columns=min(2, len(plotted_verdicts)),
        panels=tuple(map(_similarity_panel, plotted_verdicts)),
    )


def _similarity_panel(verdicts: ConclusionVerdicts) -> Panel:
    marks: list[Mark] = []
    if verdicts.threshold is not None:
        marks.append(ReferenceLine(way="vertical", at=verdicts.threshold.value))
    pairs = {
        "matched": verdicts.compared.values(),
        "mismatched": verdicts.mismatched.values(),
    }
    for series, (name, likenesses) in enumerate(pairs.items()):
        if likenesses:
            label = f"{name} ({len(likenesses):,})"
            marks.append(_above(likenesses, label, series))
    return Panel(
        title=verdicts.model,
        x=Axis(label=f"similarity ({_BY[verdicts.kind]})", hi=1),
        y=Axis(label="share of pairs above", lo=0, hi=1),
        marks=tuple(marks),
    )


def _above(likenesses: Collection[float], label: str, series: int) -> LineSeries:
    """A step down at each similarity that occurs."""
    ordered = sorted(likenesses)
    steps = {
        similarity: 1 - rank / len(ordered)
        for rank, similarity in enumerate(ordered, start=1)
    }
    points = thinned(((min(0.0, ordered[0]), 1.0), *steps.items()))
    return LineSeries(
        x=tuple(x for x, _ in points),
        y=tuple(y for _, y in points),
        label=label,
        series=series,
        steps=True,
    )


@dataclass(frozen=True, slots=True)
class BenchmarkFigures:
    """The figures that the input has something for, in the order of the report."""

    results: BenchmarkResults
    concluded: Sequence[ConclusionVerdicts]

    def __iter__(self) -> Iterator[Figure | FailedFigure]:
        def verdicts(models: PlottedAgents) -> Figure | None:
            return verdict_similarity(models, self.concluded)

        draws = (recall, waterfall, by_threshold, by_rank, verdicts)
        return build_figures(lambda: plotted_agents(self.results), draws)
