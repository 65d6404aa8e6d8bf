"""Draws the figures of a scoring as values that the report renders.

A figure plots the first models of a scoring, each in a style of its own, and is made
when it is asked for.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from jobs import figures
from jobs.figures import build_figures
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

Model: TypeAlias = figures.ModelSeries[AgentResults]
"""One of the models that are shown; it has done at least one review."""


PlottedAgents: TypeAlias = figures.PlottedModels[BenchmarkResults, AgentResults]


def plotted_agents(results: BenchmarkResults) -> PlottedAgents:
    """The models that figures have room for."""
    there = {name: own for name, own in results.columns.items() if own.rebuilt}
    return figures.plotted_models(results, there)


Point = TypeVar("Point")

MOST_POINTS = 400
"""Of a curve in a picture; more cannot be told apart."""


def by_threshold(shown: PlottedAgents) -> Figure | None:
    """Mean recall and precision at each score that occurs."""
    panels = tuple(
        _threshold(model, shown) for model in shown.models if model.column.overall
    )
    if not panels:
        return None
    dashed = " Dashed: the threshold of this scoring." if _rule(shown) else ""
    return Figure(
        name="threshold",
        title="Recall and precision against the threshold",
        caption="Means over reviews, from the stored scores, if papers were included "
        "from each threshold on; at a step the value on its left is that of the "
        f"score itself. A review that includes nothing has no precision.{dashed}"
        f"{shown.rest}",
        columns=min(2, len(panels)),
        panels=panels,
    )


def _rule(shown: PlottedAgents) -> tuple[ReferenceLine, ...]:
    """The threshold; an import's agents decided by one of their own."""
    if shown.results.sheet.imported:
        return ()
    return (
        ReferenceLine(way="vertical", at=shown.results.dataset.settings.least_score),
    )


def _threshold(model: Model, shown: PlottedAgents) -> Panel:
    # thresholds fall: each value holds down to the next score, that one left out
    own = thinned(model.column.overall)
    x = tuple(step.threshold for step in own)
    return Panel(
        title=model.name,
        x=Axis(label="threshold"),
        y=Axis(label="mean over reviews", lo=0, hi=1),
        marks=(
            *_rule(shown),
            LineSeries(
                x=x,
                y=tuple(each.recall for each in own),
                label="recall",
                series=0,
                steps=True,
            ),
            LineSeries(
                x=x,
                y=tuple(each.precision for each in own),
                label="precision",
                series=1,
                steps=True,
            ),
        ),
    )


def by_rank(shown: PlottedAgents) -> Figure | None:
    """How much of the truth the first candidates hold."""
    there = [model for model in shown.models if model.column.curves]
    if not there:
        return None
    return Figure(
        name="retrieval",
        title="Recall against the candidates kept",
        caption="Mean over reviews of the share of included studies among the first "
        "candidates, in the order in which they are scored: what a smaller "
        f"max_candidates would lose. A review whose list is shorter stays.{shown.rest}",
        panels=(
            Panel(
                x=Axis(label="candidates kept", lo=0),
                y=Axis(label="recall of the search", lo=0, hi=1),
                marks=tuple(map(_rank, there)),
            ),
        ),
    )


def _rank(model: Model) -> LineSeries:
    points = thinned(((0, 0.0), *mean_curve(model.column.curves)))
    x: Numbers = tuple(kept for kept, _ in points)
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


OWN: Mapping[str, Sequence[LostAt]] = {
    "truth": (),
    "database": ("not_in_database", "near_miss_match", "claimed"),
    "retrieved": ("not_retrieved", "date_filtered"),
    "scored": ("unscored",),
    "included": ("below_threshold", "excluded"),
}
"""The steps of an agent's work, and what is lost at each."""

IMPORTED: Mapping[str, Sequence[LostAt]] = {
    "truth": (),
    "records": OWN["database"],
    "included": ("below_threshold", "excluded"),
}
"""The steps that results made elsewhere tell of."""


def waterfall(shown: PlottedAgents) -> Figure | None:
    """A bar a step: the studies that are left, and on them those lost there."""
    if not shown.models:
        return None
    steps = IMPORTED if shown.results.sheet.imported else OWN
    return Figure(
        name="losses",
        title="Where included studies were lost",
        caption="Studies of all reviews that are left after each step, and those that "
        f"were lost at it.{shown.rest}",
        columns=min(2, len(shown.models)),
        panels=tuple(_loss_panel(model, steps) for model in shown.models),
    )


def _loss_panel(model: Model, steps: Mapping[str, Sequence[LostAt]]) -> Panel:
    known = model.column.by_path()
    left = int(known["count.truth"].value or 0)
    kept, lost = [], []
    for causes in steps.values():
        here = sum(int(known[f"lost.{cause}"].value or 0) for cause in causes)
        left -= here
        kept.append(left)
        lost.append(here)
    return Panel(
        title=model.name,
        x=Axis(
            names=tuple(f"{step}\n{n:,}" for step, n in zip(steps, kept, strict=True))
        ),
        y=Axis(label="studies", lo=0),
        marks=(
            Stack(values=tuple(kept), label="left", series=0),
            Stack(values=tuple(lost), label="lost at this step", series=1),
        ),
    )


MOST_REVIEWS = 40
"""Of rows; beyond, single reviews drown."""

BREADTH = 0.5
"""Of the room of a row, what its models take."""


def recall(shown: PlottedAgents) -> Figure | None:
    """A row a review: the recall of each model, and from it a bar up to its ceiling."""
    if not shown.models:
        return None
    lowest: dict[str, float] = {}
    for model in shown.models:
        for review, found in model.column.benchmarks.items():
            lowest[review] = min(found.recall, lowest.get(review, 1.0))
    # the first row is the one on top
    worst = sorted(lowest, key=lambda review: (lowest[review], review))
    rows = tuple(worst[:MOST_REVIEWS])
    left_out = (
        f" The {len(rows)} of {len(lowest)} reviews with the least recall."
        if len(rows) < len(lowest)
        else ""
    )
    target = shown.results.dataset.settings.target_recall
    return Figure(
        name="recall-by-review",
        title="Recall by review",
        caption="Share of a review's included studies that were found and included. "
        "The bar to the right of a mark ends at the ceiling: the studies that the "
        f"papers searched have at all. Dashed: the target of {percent(target)}."
        f"{left_out}{shown.rest}",
        panels=(
            Panel(
                x=Axis(label="recall", lo=0, hi=1),
                y=Axis(names=rows),
                height=max(0.6, len(rows) / 16),
                marks=(
                    ReferenceLine(way="vertical", at=target),
                    *(
                        _points(model, rows, len(shown.models))
                        for model in shown.models
                    ),
                ),
            ),
        ),
    )


def _points(model: Model, rows: tuple[str, ...], models: int) -> Points:
    """The marks of one model; those of a review lie below one another."""
    there = [
        (place, found)
        for place, review in enumerate(rows)
        if (found := model.column.benchmarks.get(review)) is not None
    ]
    aside = BREADTH * (model.series - (models - 1) / 2) / models
    return Points(
        x=tuple(found.recall for _, found in there),
        y=tuple(place + aside for place, _ in there),
        lo=tuple(found.recall for _, found in there),
        hi=tuple(found.ceiling for _, found in there),
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


def likeness(
    shown: PlottedAgents, concluded: Sequence[ConclusionVerdicts]
) -> Figure | None:
    """The share of matched and of mismatched pairs above each similarity."""
    known = {own.model: own for own in concluded if own.compared}
    there = [known[model.name] for model in shown.models if model.name in known]
    if not there:
        return None
    return Figure(
        name="verdicts",
        title="Conclusions of the same review and of others",
        caption="Share of the pairs of conclusions that are more alike than each "
        "similarity: matched are an agent's and the authors' of one review, mismatched "
        "those of two. The further apart the lines, the more a verdict says. Dashed: "
        f"the threshold, if there is one.{shown.rest}",
        columns=min(2, len(there)),
        panels=tuple(map(_similarity_panel, there)),
    )


def _similarity_panel(own: ConclusionVerdicts) -> Panel:
    marks: list[Mark] = []
    if own.threshold is not None:
        marks.append(ReferenceLine(way="vertical", at=own.threshold.value))
    pairs = {"matched": own.compared.values(), "mismatched": own.mismatched.values()}
    for series, (name, likenesses) in enumerate(pairs.items()):
        if likenesses:
            label = f"{name} ({len(likenesses):,})"
            marks.append(_above(likenesses, label, series))
    return Panel(
        title=own.model,
        x=Axis(label=f"similarity ({_BY[own.kind]})", hi=1),
        y=Axis(label="share of pairs above", lo=0, hi=1),
        marks=tuple(marks),
    )


def _above(likenesses: Collection[float], label: str, series: int) -> LineSeries:
    """A step down at each similarity that occurs."""
    ordered = sorted(likenesses)
    steps = {
        similarity: 1 - place / len(ordered)
        for place, similarity in enumerate(ordered, start=1)
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
            return likeness(models, self.concluded)

        draws = (recall, waterfall, by_threshold, by_rank, verdicts)
        return build_figures(lambda: plotted_agents(self.results), draws)
