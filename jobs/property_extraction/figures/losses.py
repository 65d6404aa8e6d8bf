"""Where curated values were lost: was their name found, and then their value?"""

from __future__ import annotations

from itertools import pairwise

from jobs.figures import SIDE_BY_SIDE
from jobs.property_extraction.figures.shown import Model, Shown
from runner.scorecard import Axis, Figure, Panel, Stack

STEPS = ("truth", "name found", "value found")


def waterfall(shown: Shown) -> Figure | None:
    """A bar a step: the truth rows that are left, and on them those lost there."""
    models = [model for model in shown.models if _counts(model)[0]]
    if not models:
        return None
    return Figure(
        name="losses",
        title="Where curated values were lost",
        caption="Truth rows; those whose name is predicted in their paper, under an "
        "alias where one acts; and those whose value is too. Lost at the second step: "
        "not found, or otherwise named; at the third: the value is wrong, or there are "
        f"fewer of them.{shown.rest}",
        columns=SIDE_BY_SIDE[len(models)],
        panels=tuple(_panel(model) for model in models),
    )


def _counts(model: Model) -> tuple[int, int, int]:
    """Truth rows, those whose name is found, and those whose value is."""
    own = model.column.first.counts
    named = (own.tp + own.fp) > 0
    truth = own.tp + own.fn
    return int(truth.sum()), int(truth[named].sum()), int(own.tp.sum())


def _panel(model: Model) -> Panel:
    left = _counts(model)
    lost = (0, *(before - after for before, after in pairwise(left)))
    return Panel(
        title=model.name,
        x=Axis(
            names=tuple(f"{step}\n{n:,}" for step, n in zip(STEPS, left, strict=True))
        ),
        y=Axis(label="truth rows", lo=0),
        marks=(
            Stack(values=left, label="left", series=0),
            Stack(values=lost, label="lost at this step", series=1),
        ),
    )
