"""Recall review by review, and how much of what is missing no agent could find."""

from __future__ import annotations

from jobs.review_benchmark.figures.shown import Model, Shown
from jobs.review_benchmark.summary.reasons import percent
from runner.scorecard import Axis, Figure, Panel, Points, ReferenceLine

MOST_REVIEWS = 40
"""Of rows; beyond, single reviews drown."""

BREADTH = 0.5
"""Of the room of a row, what its models take."""


def recall(shown: Shown) -> Figure | None:
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
