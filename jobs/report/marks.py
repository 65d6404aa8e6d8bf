"""Each mark of a figure, drawn onto a pair of matplotlib's axes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, assert_never

from matplotlib.axes import Axes

from jobs.report.lettering import label, words
from jobs.report.style import BACKGROUND, FAINT, INK, foreground, look
from jobs.report.wording import number
from runner.scorecard import (
    Axis,
    Band,
    Bars,
    Heatmap,
    Histogram,
    LineSeries,
    Number,
    Panel,
    Points,
    ReferenceLine,
    Stack,
)

BREADTH = 0.8
"""Of the room between two names, what bars side by side may take."""

LIGHT = 0.55
"""From this share of its scale on, a heat map is light and takes dark ink."""

FAR = 0.7
"""From this share of an axis on, the text beside a point stands on its other side."""

CAPS = {"capsize": 2.5, "elinewidth": 1.1, "capthick": 1.1, "fmt": "none"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Pen:
    """Draws the marks of one panel."""

    axes: Axes
    panel: Panel

    def draw(self) -> None:
        """Draw all of them, each kind above those that would hide it."""
        groups = [mark for mark in self.panel.marks if isinstance(mark, Bars)]
        floor = [0.0] * len(self.names)
        for mark in self.panel.marks:
            if isinstance(mark, Bars):
                self._bars(mark, groups.index(mark), len(groups))
            elif isinstance(mark, Stack):
                self._stack(mark, floor)
            else:
                self._draw(mark)

    @property
    def names(self) -> tuple[str, ...]:
        """Of the axis that has some."""
        return self.panel.y.names or self.panel.x.names

    @property
    def lies(self) -> bool:
        """Whether values run along x, since y has names."""
        return bool(self.panel.y.names)

    def _draw(
        self, mark: LineSeries | Points | Histogram | Band | ReferenceLine | Heatmap
    ) -> None:
        match mark:
            case LineSeries():
                self._line(mark)
            case Points():
                self._points(mark)
            case Histogram():
                self._histogram(mark)
            case Band():
                self.axes.fill_between(
                    numbers(mark.x),
                    numbers(mark.lo),
                    numbers(mark.hi),
                    color=look(mark.series).color,
                    alpha=0.18,
                    linewidth=0,
                    label=label(mark.label),
                    zorder=1.5,
                )
            case ReferenceLine():
                self._rule(mark)
            case Heatmap():
                self._heat(mark)
            case _:
                assert_never(mark)

    def _line(self, mark: LineSeries) -> None:
        drawn = look(mark.series)
        self.axes.plot(
            numbers(mark.x),
            numbers(mark.y),
            marker=drawn.marker if mark.marked else "",
            markersize=4.5,
            drawstyle="steps-post" if mark.steps else "default",
            label=label(mark.label),
            **(BACKGROUND if mark.faint else foreground(drawn)),
        )

    def _points(self, mark: Points) -> None:
        drawn = look(mark.series)
        x, y = numbers(mark.x), numbers(mark.y)
        self._intervals(y if self.lies else x, mark.lo, mark.hi, drawn.color)
        self.axes.plot(
            x,
            y,
            color=drawn.color,
            linestyle="",
            marker=drawn.marker,
            markersize=5.5,
            markeredgecolor="white",
            markeredgewidth=0.6,
            label=label(mark.label),
            zorder=3,
        )
        for at_x, at_y, text in zip(x, y, mark.notes, strict=bool(mark.notes)):
            if math.isnan(at_x) or math.isnan(at_y):
                continue
            # towards the middle: beyond the frame it would make the picture smaller
            is_left = _share(at_x, self.panel.x) > FAR
            is_low = _share(at_y, self.panel.y) < 1 - FAR
            right = (6, 5) if is_low else (6, -10)
            self.axes.annotate(
                words(text),
                (at_x, at_y),
                xytext=(-6, -14) if is_left else right,
                textcoords="offset points",
                ha="right" if is_left else "left",
                fontsize=7.5,
                bbox={
                    "facecolor": "white",
                    "edgecolor": "none",
                    "alpha": 0.8,
                    "pad": 1,
                },
                zorder=4,
            )

    def _bars(self, mark: Bars, place: int, of: int) -> None:
        drawn = look(mark.series)
        breadth = BREADTH / of
        begin = (breadth - BREADTH) / 2 + place * breadth
        places = [each + begin for each in range(len(mark.values))]
        heights = [0.0 if value is None else value for value in mark.values]
        self._bar(mark, places, heights, breadth=breadth * 0.92)
        self._intervals(places, mark.lo, mark.hi, INK, zorder=3)
        for at, value in zip(places, mark.values, strict=True):
            if value is None:
                x, y = (0.0, at) if self.lies else (at, 0.0)
                self.axes.annotate(
                    "n/a",
                    (x, y),
                    xytext=(3, 0) if self.lies else (0, 3),
                    textcoords="offset points",
                    ha="left" if self.lies else "center",
                    va="center" if self.lies else "bottom",
                    fontsize=7,
                    color=drawn.color,
                )

    def _stack(self, mark: Stack, floor: list[float]) -> None:
        """Lay a part on the *floor*, and raise it."""
        heights = [0.0 if value is None else value for value in mark.values]
        places = list(map(float, range(len(heights))))
        self._bar(mark, places, heights, breadth=BREADTH, floor=tuple(floor))
        floor[:] = [low + high for low, high in zip(floor, heights, strict=True)]

    def _bar(
        self,
        mark: Bars | Stack,
        places: Sequence[float],
        values: Sequence[float],
        *,
        breadth: float,
        floor: Sequence[float] | None = None,
    ) -> None:
        drawn = look(mark.series)
        given: dict[str, Any] = {
            "color": drawn.color,
            "hatch": drawn.hatch,
            "edgecolor": "white",
            "linewidth": 0.6,
            "label": label(mark.label),
        }
        if self.lies:
            self.axes.barh(places, values, height=breadth, left=floor, **given)
        else:
            self.axes.bar(places, values, width=breadth, bottom=floor, **given)

    def _histogram(self, mark: Histogram) -> None:
        drawn = look(mark.series)
        widths = [high - low for low, high in pairwise(mark.edges)]
        self.axes.bar(
            mark.edges[:-1],
            mark.counts,
            width=widths,
            align="edge",
            facecolor=f"{drawn.color}55",
            edgecolor=drawn.color,
            linewidth=1.0,
            hatch=drawn.hatch,
            label=label(mark.label),
        )

    def _rule(self, mark: ReferenceLine) -> None:
        given: dict[str, Any] = {
            "color": FAINT,
            "linestyle": (0, (4, 3)),
            "linewidth": 1.0,
            "label": label(mark.label),
            "zorder": 2,
        }
        if mark.way == "vertical":
            self.axes.axvline(mark.at, **given)
        elif mark.way == "horizontal":
            self.axes.axhline(mark.at, **given)
        else:
            self.axes.axline((0, 0), slope=1, **given)

    def _heat(self, mark: Heatmap) -> None:
        rows = [numbers(row) for row in mark.rows]
        image = self.axes.imshow(rows, origin="lower", aspect="auto", cmap="cividis")
        self.axes.grid(visible=False)
        low, high = image.get_clim()
        middle = (low or 0.0) + LIGHT * ((high or 0.0) - (low or 0.0))
        for y, row in enumerate(mark.rows):
            for x, value in enumerate(row):
                is_dark = value is not None and value < middle
                self.axes.text(
                    x,
                    y,
                    number(value),
                    ha="center",
                    va="center",
                    fontsize=7.5,
                    color="white" if is_dark else INK,
                )
        figure = self.axes.get_figure(root=True)
        if figure is not None:
            figure.colorbar(image, ax=self.axes, label=words(mark.label))

    def _intervals(
        self,
        places: Sequence[float],
        lo: Sequence[Number],
        hi: Sequence[Number],
        color: str,
        zorder: float = 2.8,
    ) -> None:
        """Interval ends, drawn about their middle: a value may lie outside them."""
        ends = [
            (place, (low + high) / 2, (high - low) / 2)
            for place, low, high in zip(places, lo, hi, strict=bool(lo))
            if low is not None and high is not None
        ]
        if not ends:
            return
        at, middle, half = zip(*ends, strict=True)
        given: dict[str, Any] = {**CAPS, "ecolor": color, "zorder": zorder}
        if self.lies:
            self.axes.errorbar(middle, at, xerr=half, **given)
        else:
            self.axes.errorbar(at, middle, yerr=half, **given)


def _share(place: float, axis: Axis) -> float:
    """How far along its axis a place is; in the middle where the ends are not known."""
    if axis.ends is None:
        return 0.5
    lo, hi = axis.ends
    return (place - lo) / (hi - lo)


def numbers(values: Sequence[Number]) -> list[float]:
    """Numbers for matplotlib, which leaves nan out."""
    return [math.nan if value is None else float(value) for value in values]
