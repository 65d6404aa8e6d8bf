"""What reading in a model's order finds: recall curves, and the reading saved."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from jobs.metrics.columns import Floats
from jobs.metrics.screening import recall_curve
from jobs.screening.figures.shown import Model, Shown, thinned
from jobs.screening.measuring.ranking import ranked
from runner.figure import Axis, Figure, Line, Panel, Points, Rule

MOST_REVIEWS = 40
"""Of single curves, and of rows of a dot plot; beyond, single reviews drown."""

GRID = np.linspace(0, 1, 101)


def recall(shown: Shown) -> Figure | None:
    """One thin curve a review, and the mean of all."""
    panels = tuple(
        panel for model in shown.models if (panel := _curves(model)) is not None
    )
    if not panels:
        return None
    return Figure(
        name="recall",
        title="Recall while reading in the model's order",
        caption="Dotted: single reviews. Solid: their mean at each share of the "
        "records. The diagonal is reading in random order. The curve of a review "
        f"begins at 0.{shown.rest}",
        columns=min(2, len(panels)),
        panels=panels,
    )


def _curves(model: Model) -> Panel | None:
    view = model.column.view
    found: list[tuple[Floats, Floats]] = []
    for own in ranked(view, np.ones(len(view.records), dtype=np.bool_)):
        recalls = recall_curve(own.label)
        if recalls is not None and own.has_both:
            x = np.arange(len(recalls) + 1) / len(recalls)
            found.append((x, np.concatenate(([0.0], recalls))))
    if not found:
        return None
    mean = np.mean([np.interp(GRID, x, y) for x, y in found], axis=0)
    singles = found if len(found) <= MOST_REVIEWS else []
    return Panel(
        title=f"{model.name}, {len(found)} reviews",
        x=Axis(label="share of records read", lo=0, hi=1),
        y=Axis(label="recall", lo=0, hi=1),
        square=True,
        marks=(
            Rule(way="diagonal"),
            *_singles(singles),
            Line(
                x=tuple(GRID.tolist()),
                y=tuple(mean.tolist()),
                label="mean",
                series=0,
            ),
        ),
    )


def _singles(found: list[tuple[Floats, Floats]]) -> Iterator[Line]:
    for number, (x, y) in enumerate(found):
        some = thinned(len(x))
        yield Line(
            x=tuple(x[some].tolist()),
            y=tuple(y[some].tolist()),
            label="" if number else "single reviews",
            series=2,
        )


def saved(shown: Shown) -> Figure | None:
    """The reading saved in each review."""
    reviews = shown.results.sheet.records.reviews
    panels = []
    for model in shown.models:
        own = model.column.strata["all"].by_review["wss95"]
        rows = sorted(
            (value, review)
            for review, value in zip(reviews, own, strict=True)
            if value is not None
        )
        if rows:
            panels.append(_saved(model, rows[-MOST_REVIEWS:], len(rows)))
    if not panels:
        return None
    return Figure(
        name="wss95",
        title="Reading saved by review",
        caption="Work saved over sampling at 95% recall (WSS@95, "
        f"{shown.results.dataset.settings.wss}): the share of records left unread when "
        "95% of the included papers are found, less 5%. It goes by the drawn ratio of "
        f"negatives. The line at 0 is random reading.{shown.rest}",
        columns=min(2, len(panels)),
        panels=tuple(panels),
    )


def _saved(model: Model, rows: list[tuple[float, str]], every: int) -> Panel:
    some = "" if len(rows) == every else f", the best {len(rows)} of {every}"
    return Panel(
        title=f"{model.name}{some}",
        x=Axis(label="WSS@95"),
        y=Axis(names=tuple(review for _, review in rows)),
        height=max(0.6, len(rows) / 20),
        marks=(
            Rule(way="vertical", at=0),
            Points(
                x=tuple(value for value, _ in rows),
                y=tuple(range(len(rows))),
                series=model.series,
            ),
        ),
    )
