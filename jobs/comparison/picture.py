"""The picture of quality against cost and against latency."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from jobs.comparison.expense import Expense
from jobs.comparison.front import Front, Place
from runner.errors import UsageError
from runner.scorecard import Axis, Figure, LineSeries, Mark, Panel, Points

NAME = "front"
FORMS = (".png", ".svg")
ROOM = 1.1
"""The end of an axis, by the place of what is farthest: notes stay inside."""

_AXES: Mapping[str, Callable[[Expense], float | None]] = {
    "USD per {unit}": lambda expense: expense.usd,
    "median latency, s": lambda expense: expense.seconds,
}


def check_form(file: Path) -> None:
    """Find out early what could not be drawn.

    Raises:
        UsageError: by its name *file* is neither PNG nor SVG.
    """
    if file.suffix.lower() not in FORMS:
        raise UsageError(f"{file}: name it .png or .svg.")


def figure(front: Front | None, level: float) -> Figure:
    """Each side as a point; the steps join those that none beats on both axes.

    Raises:
        UsageError: no side has a cost or a latency.
    """
    if front is None:
        raise UsageError(
            "The sides define their headline metric in different ways; there is no "
            "quality to draw."
        )
    panels = tuple(
        _panel(front, label.format(unit=front.unit), of, level)
        for label, of in _AXES.items()
        if any(of(place.expense) is not None for place in front.places)
    )
    if not panels:
        raise UsageError(
            "No side has a cost or a latency to draw: the answers were made elsewhere, "
            "or their prices are unknown."
        )
    return Figure(
        name=NAME,
        title=f"{front.path} against cost and latency",
        caption=(
            f"Over {front.n} items that all sides have; intervals at {level:.10g} by "
            f"{front.cluster}. The line joins the best to be had for each amount."
        ),
        panels=panels,
        columns=len(panels),
    )


def write(drawn: Figure, file: Path) -> None:
    """Draw *drawn* into *file*, whose ending says how."""
    # about its cache of fonts it would speak to the terminal, from its import on
    logging.getLogger("matplotlib").setLevel(logging.ERROR)
    # which takes half a second
    from jobs.report import figures  # noqa: PLC0415

    with TemporaryDirectory(prefix="siftlog-") as folder:
        figures.write([drawn], Path(folder))
        file.write_bytes(
            (Path(folder) / f"{drawn.name}{file.suffix.lower()}").read_bytes()
        )


def _panel(
    front: Front, label: str, of: Callable[[Expense], float | None], level: float
) -> Panel:
    far = ROOM * max(of(place.expense) or 0.0 for place in front.places)
    steps = _steps(front, of)
    if steps:
        steps.append((far, steps[-1][1]))
    marks: list[Mark] = [
        LineSeries(
            x=tuple(x for x, _ in steps),
            y=tuple(y for _, y in steps),
            steps=True,
            faint=True,
        )
    ]
    marks += [
        Points(
            x=(of(place.expense),),
            y=(place.quality.value,),
            lo=(place.quality.interval.lo,),
            hi=(place.quality.interval.hi,),
            label=_label(place),
            series=series,
            notes=("dominated" if place.dominated else "",),
        )
        for series, place in enumerate(front.places)
    ]
    return Panel(
        title=f"{front.n} items, {100 * level:.4g}% intervals by {front.cluster}",
        x=Axis(label=label, lo=0, hi=far),
        y=Axis(label=front.path),
        marks=tuple(marks),
    )


def _label(place: Place) -> str:
    return "  ".join(place.side.key)


def _steps(
    front: Front, of: Callable[[Expense], float | None]
) -> list[tuple[float, float]]:
    """The best quality to be had for each amount, cheapest first."""
    sign = -1 if front.lower_is_better else 1
    points = [
        (x, y)
        for place in front.places
        if (x := of(place.expense)) is not None
        and (y := place.quality.value) is not None
    ]
    best: list[tuple[float, float]] = []
    for x, y in sorted(points, key=lambda point: (point[0], -sign * point[1])):
        if not best or sign * y > sign * best[-1][1]:
            best.append((x, y))
    return best
