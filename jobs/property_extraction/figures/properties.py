"""Property by property: what is found of each, and what is made up beside it."""

from __future__ import annotations

from collections import Counter

import numpy as np

from jobs.figures import SIDE_BY_SIDE
from jobs.property_extraction.figures.shown import Model, Shown
from jobs.property_extraction.measuring.counts import Counts
from jobs.property_extraction.measuring.rates import by_name
from jobs.text import one_line, shortened
from runner.scorecard import Axis, Bars, Figure, Panel, Points

MOST_ROWS = 24
"""Properties in one figure; a page has no more. The tables hold all."""

NAME_CELLS = 36
"""Of a property's name: a picture has no more, and cuts off the end."""


def recall(shown: Shown) -> Figure | None:
    """Recall of each property, those with the most truth rows first."""
    n: Counter[str] = Counter()
    rates: dict[str, dict[str, float | None]] = {}
    for model in shown.models:
        counts = model.column.first.counts
        # models differ in truth where papers failed: the most of them stands
        n |= Counter(dict(zip(counts.names, _truth(counts), strict=True)))
        rates[model.name] = dict(
            zip(counts.names, by_name(counts, "recall"), strict=True)
        )
    found = sorted((own for own in n if n[own]), key=lambda own: (-n[own], own))
    if not found:
        return None
    names = found[:MOST_ROWS]
    left = (
        f" Of {len(found):,} properties the {len(names):,} with the most truth rows."
        if len(found) > len(names)
        else ""
    )
    return Figure(
        name="recall-by-property",
        title="Recall by property",
        caption="Share of each property's curated values that is found, of n in all."
        f"{left}{shown.rest}",
        panels=(
            Panel(
                x=Axis(label="recall", lo=0, hi=1),
                y=Axis(
                    names=tuple(
                        f"{shortened(one_line(own), NAME_CELLS)}\nn = {n[own]:,}"
                        for own in names
                    )
                ),
                marks=tuple(
                    Bars(
                        values=tuple(rates[model.name].get(own) for own in names),
                        label=model.name if len(shown.models) > 1 else "",
                        series=model.series,
                    )
                    for model in shown.models
                ),
            ),
        ),
    )


def trade(shown: Shown) -> Figure | None:
    """Precision against recall: a point for all properties that have the same two."""
    panels = tuple(
        panel for model in shown.models if (panel := _points(model)) is not None
    )
    if not panels:
        return None
    return Figure(
        name="precision-recall-by-property",
        title="Precision against recall by property",
        caption="Properties that are both curated and predicted; the number beside a "
        f"point is how many have these two rates.{shown.rest}",
        columns=SIDE_BY_SIDE[len(panels)],
        panels=panels,
    )


def _points(model: Model) -> Panel | None:
    counts = model.column.first.counts
    pairs = Counter(
        (found, right)
        for found, right in zip(
            by_name(counts, "recall"), by_name(counts, "precision"), strict=True
        )
        if found is not None and right is not None
    )
    if not pairs:
        return None
    places = sorted(pairs)
    return Panel(
        title=model.name,
        x=Axis(label="recall", lo=0, hi=1),
        y=Axis(label="precision", lo=0, hi=1),
        square=True,
        marks=(
            Points(
                x=tuple(x for x, _ in places),
                y=tuple(y for _, y in places),
                notes=tuple(f"{pairs[place]:,}" for place in places),
                series=model.series,
            ),
        ),
    )


def _truth(counts: Counts) -> list[int]:
    cells = counts.by_name()
    truth: list[int] = np.asarray(cells.tp + cells.fn).tolist()
    return truth
