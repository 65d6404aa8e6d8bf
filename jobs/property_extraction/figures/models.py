"""Models side by side: their rates, and whether their quotes can be believed."""

from __future__ import annotations

from jobs.property_extraction.figures.shown import Shown
from jobs.property_extraction.grounding.quote import Level
from jobs.property_extraction.measuring.fate import Fate
from jobs.property_extraction.measuring.rates import WORDS
from jobs.text import one_line, shortened
from runner.scorecard import Axis, Bars, Figure, Panel, Stack

QUOTES = {
    "fabricated": (Level.ABSENT,),
    "nearly there": (Level.NEAR,),
    "in the paper": (Level.EXACT, Level.NORMALISED, Level.ELIDED),
    "no quote": (Level.NO_QUOTE,),
}
"""Levels as the figure has them, the worst at the bottom."""

NAME_CELLS = 36
"""Of a model's name below a bar: a picture has no more, and cuts off the end."""


def rates(shown: Shown) -> Figure | None:
    """Precision, recall and F1 of all rows, with intervals."""
    if not shown.results.papers:
        return None
    marks = []
    for model in shown.models:
        found = [model.column.metric(word) for word in WORDS]
        marks.append(
            Bars(
                values=tuple(own.value for own in found),
                lo=tuple(own.lo for own in found),
                hi=tuple(own.hi for own in found),
                label=model.name,
                series=model.series,
            )
        )
    return Figure(
        name="rates",
        title="Precision, recall and F1",
        caption=f"All rows together. Bars: {shown.drawn}.{shown.rest}",
        panels=(
            Panel(
                x=Axis(names=("precision", "recall", "F1")),
                y=Axis(lo=0, hi=1),
                marks=tuple(marks),
            ),
        ),
    )


def aliases(shown: Shown) -> Figure | None:
    """What aliases do to the true positives."""
    models = [own for own in shown.models if own.column.first.aliases.accepted]
    if not models:
        return None
    sets = dict.fromkeys(own.column.first.aliases.id for own in models)
    return Figure(
        name="aliases",
        title="Values found, by alias set",
        caption="Matched rows of the first replicate without aliases, and under those "
        f"that act: {', '.join(sets)}.{shown.rest}",
        panels=(
            Panel(
                x=Axis(names=("no aliases", "with aliases")),
                y=Axis(label="true positives", lo=0),
                marks=tuple(
                    Bars(
                        values=(
                            model.column.unrenamed.fates.count(Fate.TP),
                            model.column.first.fates.fates.count(Fate.TP),
                        ),
                        label=model.name,
                        series=model.series,
                    )
                    for model in models
                ),
            ),
        ),
    )


def quotes(shown: Shown) -> Figure | None:
    """How many rows of each model have which kind of quote."""
    if not len(shown.results.dataset.papers):
        return None
    return Figure(
        name="quotes",
        title="Whether quotes stand in their papers",
        caption="Predicted rows by their quote: in the paper word for word (ligatures, "
        "dashes and blanks apart, or with parts left out), nearly, or not at all. Rows "
        f"of papers without a text are left out.{shown.rest}",
        panels=(
            Panel(
                x=Axis(
                    names=tuple(
                        shortened(one_line(model.name), NAME_CELLS)
                        for model in shown.models
                    )
                ),
                y=Axis(label="rows", lo=0),
                marks=tuple(
                    Stack(
                        values=tuple(
                            sum(
                                int(
                                    model.column.metric(f"grounding.{level}").value or 0
                                )
                                for level in levels
                            )
                            for model in shown.models
                        ),
                        label=label,
                        series=series,
                    )
                    for series, (label, levels) in enumerate(QUOTES.items())
                ),
            ),
        ),
    )
