"""What reading in a model's order finds: recall curves, and the reading saved."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from jobs.figures import SIDE_BY_SIDE, thinned_points
from jobs.metrics.columns import Floats
from jobs.metrics.screening import recall_curve
from jobs.screening.figures.shown import Model, Shown
from jobs.screening.measuring.ranking import ranked
from jobs.text import plural
from runner.scorecard import Axis, Figure, LineSeries, Panel, Points, ReferenceLine

MOST_CURVES = 200
"""Of single reviews; beyond, they are one surface and say nothing."""

MOST_ROWS = 40
"""Of a dot plot; a page has no more."""

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
        caption="Thin: single reviews, where there are no more than "
        f"{MOST_CURVES}. Bold: their mean at each share of the records. The dashed "
        f"diagonal is reading in random order.{shown.rest}",
        columns=SIDE_BY_SIDE[len(panels)],
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
    singles = found if len(found) <= MOST_CURVES else []
    return Panel(
        title=f"{model.name}, {plural(len(found), 'review')}",
        x=Axis(label="share of records read", lo=0, hi=1),
        y=Axis(label="recall", lo=0, hi=1),
        square=True,
        marks=(
            ReferenceLine(way="diagonal"),
            *_singles(singles),
            LineSeries(x=tuple(GRID.tolist()), y=tuple(mean.tolist()), label="mean"),
        ),
    )


def _singles(found: list[tuple[Floats, Floats]]) -> Iterator[LineSeries]:
    for number, (x, y) in enumerate(found):
        some = thinned_points(len(x))
        yield LineSeries(
            x=tuple(x[some].tolist()),
            y=tuple(y[some].tolist()),
            label="" if number else "single reviews",
            faint=True,
        )


def saved(shown: Shown) -> Figure | None:
    """The reading saved in each review."""
    reviews = shown.results.sheet.records.reviews
    by_model = [
        (model, model.column.strata["all"].by_review["wss95"]) for model in shown.models
    ]
    # where it is defined depends on the labels alone, and one order for all models
    # makes a review a row across the panels
    _, first = by_model[0]
    order = sorted((value, at) for at, value in enumerate(first) if value is not None)
    if not order:
        return None
    rows = [at for _, at in order[:MOST_ROWS]]
    left = len(order) - len(rows)
    every = [own[at] or 0.0 for _, own in by_model for at in rows]
    which = f" Of {len(order):,} reviews, those that save least." if left else ""
    return Figure(
        name="wss95",
        title="Reading saved by review",
        caption="Work saved over sampling at 95% recall (WSS@95, "
        f"{shown.results.dataset.settings.wss}): the share of records left unread when "
        "95% of the included papers are found, less 5%. It goes by this set's ratio of "
        "negatives. The dashed line at 0 is reading in random order. Reviews in the "
        f"order of the first model.{which}{shown.rest}",
        columns=SIDE_BY_SIDE[len(by_model)],
        panels=tuple(
            Panel(
                title=model.name,
                x=Axis(label="WSS@95", lo=min(0.0, *every), hi=max(0.0, *every)),
                y=Axis(names=tuple(reviews[at] for at in rows)),
                marks=(
                    ReferenceLine(way="vertical"),
                    Points(
                        x=tuple(own[at] for at in rows),
                        y=tuple(range(len(rows))),
                        series=model.series,
                    ),
                ),
            )
            for model, own in by_model
        ),
    )
