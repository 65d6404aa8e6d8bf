"""Where studies were lost: how many are left after each step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobs.review_benchmark.figures.shown import Model, Shown
from jobs.review_benchmark.measuring.lost import LostAt
from runner.scorecard import Axis, Figure, Panel, Stack

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


def waterfall(shown: Shown) -> Figure | None:
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
        panels=tuple(_panel(model, steps) for model in shown.models),
    )


def _panel(model: Model, steps: Mapping[str, Sequence[LostAt]]) -> Panel:
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
