"""Draws the marks of a figure onto matplotlib's axes, in one style.

Any two colours of a palette differ by 20 or more in CIE L*a*b*, for readers with and
without each kind of dichromacy; colours of models have a contrast of 3 to white. Line
style, marker and hatching change with the colour.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple, assert_never

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.ft2font import FT2Font
from matplotlib.text import Annotation

from jobs.kit.text_format import UNDEFINED
from runner.scorecard import (
    Axis,
    Band,
    Bars,
    Category,
    Heatmap,
    Histogram,
    LineSeries,
    Number,
    Panel,
    Points,
    ReferenceLine,
    Series,
    Stack,
)
from runner.table_rendering import format_number
from store.printable import LINE as READABLE
from store.printable import printable, shortened

DPI = 300
"""Resolution of raster pictures, as journals require."""

NOTE_PT = 7
"""Points of letters beside a point, a bar or a row."""

INK = "#222222"
FAINT = "#8a8a8a"


class SeriesStyle(NamedTuple):
    """Style that distinguishes a series."""

    color: str
    line: Any  #: matplotlib's line style
    marker: str
    hatch: str


MODEL_STYLES = (
    SeriesStyle("#2F99F0", "-", "o", ""),
    SeriesStyle("#8D2904", (0, (5, 1.6)), "s", "//"),
    SeriesStyle("#077B4D", (0, (1.2, 1.2)), "^", ".."),
    SeriesStyle("#B5559A", (0, (6, 1.5, 1.2, 1.5)), "D", "xx"),
    SeriesStyle("#02326A", (0, (3, 1, 1, 1, 1, 1)), "v", "\\\\"),
    SeriesStyle("#A08308", (0, (8, 2)), "P", "++"),
    SeriesStyle("#423133", (0, (2, 2)), "X", "--"),
)
"""Styles of models. More models get further combinations of colour and marker."""

CATEGORY_STYLES = (
    SeriesStyle("#3B3561", "-", "o", ""),
    SeriesStyle("#C9A227", (0, (5, 1.6)), "s", "//"),
    SeriesStyle("#8C83C9", (0, (6, 1.5, 1.2, 1.5)), "^", ".."),
    SeriesStyle("#A4243B", (0, (1.2, 1.2)), "D", "xx"),
    SeriesStyle("#7FB7BE", (0, (3, 1, 1, 1, 1, 1)), "v", "\\\\"),
)
"""Styles of parts, kinds and states; no model has them."""

PLAIN_STYLE = SeriesStyle("#5B5B5B", "-", "o", "")
"""Style of series that are neither a model nor a category."""

BACKGROUND: dict[str, Any] = {
    "color": FAINT,
    "alpha": 0.45,
    "linestyle": "-",
    "linewidth": 0.7,
    "zorder": 2.3,
}
"""Style of faint lines: a line in front of a hundred of them is still visible."""

RC: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": FAINT,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.labelsize": 8,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 7.5,
    "axes.titleweight": "bold",
    "axes.unicode_minus": True,
    "figure.constrained_layout.h_pad": 0.07,
    "figure.constrained_layout.w_pad": 0.07,
    "figure.facecolor": "white",
    "font.family": ["DejaVu Sans"],
    "font.size": 8,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.7,
    "hatch.linewidth": 0.5,
    "legend.borderaxespad": 0.2,
    "legend.fontsize": 7.5,
    "legend.frameon": False,
    "path.simplify": True,
    "savefig.facecolor": "white",
    # embedded as TrueType: journals refuse matplotlib's Type 3
    "pdf.fonttype": 42,
    # ids inside an SVG come from this and the content, not from chance
    "svg.hashsalt": "siftlog",
    # letters as outlines: the same picture wherever it is opened
    "svg.fonttype": "path",
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": INK,
    "xtick.labelsize": 7.5,
    "ytick.color": INK,
    "ytick.labelsize": 7.5,
}


def series_style(series: Series) -> SeriesStyle:
    """Return the style of a series, the same in every figure."""
    match series:
        case None:
            return PLAIN_STYLE
        case Category(index):
            return CATEGORY_STYLES[index % len(CATEGORY_STYLES)]
        case _:
            style = MODEL_STYLES[series % len(MODEL_STYLES)]
            # the eighth model has the first colour and the second marker
            shifted = series + series // len(MODEL_STYLES)
            other = MODEL_STYLES[shifted % len(MODEL_STYLES)]
            return style._replace(line=other.line, marker=other.marker)


def foreground(style: SeriesStyle) -> dict[str, Any]:
    """Return the style of a line in the foreground."""
    return {
        "color": style.color,
        "linestyle": style.line,
        "linewidth": 1.6,
        "zorder": 2.5,
    }


LINE = 60
"""Characters of a line of text; more would leave the picture no room."""

NAME = 36
"""Characters of a name at an axis."""

LABEL = 44
"""Characters of a series' name in a legend."""

MISSING = "\N{REPLACEMENT CHARACTER}"


def safe_text(text: str, most: int = LINE) -> str:
    """*text* as a picture can show it, with *most* characters in a line.

    What the font has no glyph for is replaced.
    """
    supported = _glyphs()
    safe = printable(text, line=most)
    return "".join(c if c == "\n" or ord(c) in supported else MISSING for c in safe)


def legend_label(text: str) -> str | None:
    """The name of a series for a legend; None without one."""
    # matplotlib keeps what begins with an underscore out of its legends
    return one_line_title(text.lstrip("_"), LABEL) or None


def one_line_title(text: str, most: int) -> str:
    """*text* on one line of *most* characters, cut in its middle.

    Two models whose names begin alike stay apart.
    """
    return shortened(safe_text(text.replace("\n", " "), READABLE), most)


@cache
def _glyphs() -> frozenset[int]:
    """Characters of the font that matplotlib brings with it."""
    font = Path(mpl.get_data_path(), "fonts", "ttf", "DejaVuSans.ttf")
    return frozenset(FT2Font(str(font)).get_charmap())


MARKER_PT = {"s": 5.0, "P": 7.0, "X": 7.0, "^": 6.0, "v": 6.0}
"""Sizes of markers that look as large as a circle of 5.5 points."""

BREADTH = 0.8
"""Share of the room between two names for bars side by side."""

LIGHT = 0.55
"""From this share of its scale on, a heat map is light and takes dark ink."""

FAR = 0.7
"""From this share of an axis on, the text beside a point stands on its other side."""

CAPS = {"capsize": 2.5, "elinewidth": 1.1, "capthick": 1.1, "fmt": "none"}


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelPainter:
    """Draws the marks of one panel."""

    axes: Axes
    panel: Panel

    def draw(self) -> None:
        """Draw all of them, each kind above those that would hide it."""
        groups = [mark for mark in self.panel.marks if isinstance(mark, Bars)]
        floor = [0.0] * len(self.names)
        self._undefined(self.empty_rows, FAINT)
        for mark in self.panel.marks:
            match mark:
                case Bars():
                    self._bars(mark, groups.index(mark), len(groups))
                case Stack():
                    self._stack(mark, floor)
                case LineSeries():
                    self._line(mark)
                case Points():
                    self._points(mark)
                case Histogram():
                    self._histogram(mark)
                case Band():
                    self._band(mark)
                case ReferenceLine():
                    self._rule(mark)
                case Heatmap():
                    self._heat(mark)
                case _:
                    assert_never(mark)

    @property
    def names(self) -> tuple[str, ...]:
        """Names on the axis that has some."""
        return self.panel.y.names or self.panel.x.names

    @property
    def lies(self) -> bool:
        """Whether values run along x, since y has names."""
        return bool(self.panel.y.names)

    def _band(self, mark: Band) -> None:
        self.axes.fill_between(
            numbers(mark.x),
            numbers(mark.lo),
            numbers(mark.hi),
            color=series_style(mark.series).color,
            alpha=0.18,
            linewidth=0,
            label=legend_label(mark.label),
            zorder=1.5,
        )

    def _line(self, mark: LineSeries) -> None:
        mark_style = series_style(mark.series)
        self.axes.plot(
            numbers(mark.x),
            numbers(mark.y),
            marker=mark_style.marker if mark.marked else "",
            markersize=4.5,
            drawstyle="steps-post" if mark.steps else "default",
            label=legend_label(mark.label),
            **(BACKGROUND if mark.faint else foreground(mark_style)),
        )

    def _points(self, mark: Points) -> None:
        mark_style = series_style(mark.series)
        x, y = numbers(mark.x), numbers(mark.y)
        self._intervals(y if self.lies else x, mark.lo, mark.hi, mark_style.color)
        if self.lies:
            self._undefined(
                (
                    at
                    for at, value in zip(y, mark.x, strict=True)
                    if value is None and round(at) not in self.empty_rows
                ),
                mark_style.color,
            )
        self.axes.plot(
            x,
            y,
            color=mark_style.color,
            linestyle="",
            marker=mark_style.marker,
            markersize=MARKER_PT.get(mark_style.marker, 5.5),
            markeredgecolor="white",
            markeredgewidth=0.6,
            # without a point, what is not clipped would leave the panel no room
            clip_on=not any(map(math.isfinite, x)),
            label=legend_label(mark.label),
            zorder=3,
        )
        for at_x, at_y, text in zip(x, y, mark.notes, strict=bool(mark.notes)):
            if math.isnan(at_x) or math.isnan(at_y):
                continue
            noted = [(note.xy, note.get_text()) for note in self._notes]
            if ((at_x, at_y), safe_text(text)) in noted:
                continue  # as where two curves begin
            # towards the middle: beyond the frame it would make the picture smaller
            is_left = _share(at_x, self.panel.x) > FAR
            is_low = _share(at_y, self.panel.y) < 1 - FAR
            right = (6, 5) if is_low else (6, -10)
            self.axes.annotate(
                safe_text(text),
                (at_x, at_y),
                xytext=(-6, -14) if is_left else right,
                textcoords="offset points",
                ha="right" if is_left else "left",
                fontsize=NOTE_PT,
                bbox={
                    "facecolor": "white",
                    "edgecolor": "none",
                    "alpha": 0.8,
                    "pad": 1,
                },
                zorder=4,
            )

    @property
    def _notes(self) -> list[Annotation]:
        """The texts beside points that were drawn before."""
        return [text for text in self.axes.texts if isinstance(text, Annotation)]

    def _bars(self, mark: Bars, slot: int, of: int) -> None:
        mark_style = series_style(mark.series)
        breadth = BREADTH / of
        begin = (breadth - BREADTH) / 2 + slot * breadth
        positions = [index + begin for index in range(len(mark.values))]
        heights = [0.0 if value is None else value for value in mark.values]
        self._bar(mark, positions, heights, breadth=breadth * 0.92)
        self._intervals(positions, mark.lo, mark.hi, INK, zorder=3)
        undefined = zip(positions, mark.values, strict=True)
        self._undefined(
            (at for at, value in undefined if value is None), mark_style.color
        )

    @property
    def empty_rows(self) -> frozenset[int]:
        """Rows of a panel whose points all have no value."""
        points = [mark for mark in self.panel.marks if isinstance(mark, Points)]
        values: dict[int, list[Number]] = {}
        for mark in points if self.lies else ():
            for x, y in zip(mark.x, mark.y, strict=True):
                if y is not None:
                    values.setdefault(round(y), []).append(x)
        return frozenset(row for row, of_row in values.items() if {*of_row} == {None})

    def _undefined(self, positions: Iterable[float], color: str) -> None:
        """Say so where there is no value."""
        for at in positions:
            x, y = (0.0, at) if self.lies else (at, 0.0)
            self.axes.annotate(
                UNDEFINED,
                (x, y),
                xytext=(3, 0) if self.lies else (0, 3),
                textcoords="offset points",
                ha="left" if self.lies else "center",
                va="center" if self.lies else "bottom",
                fontsize=NOTE_PT,
                color=color,
            )

    def _stack(self, mark: Stack, floor: list[float]) -> None:
        """Lay a part on the *floor*, and raise it."""
        heights = [0.0 if value is None else value for value in mark.values]
        positions = list(map(float, range(len(heights))))
        self._bar(mark, positions, heights, breadth=BREADTH, floor=tuple(floor))
        floor[:] = [low + high for low, high in zip(floor, heights, strict=True)]

    def _bar(
        self,
        mark: Bars | Stack,
        positions: Sequence[float],
        values: Sequence[float],
        *,
        breadth: float,
        floor: Sequence[float] | None = None,
    ) -> None:
        mark_style = series_style(mark.series)
        style: dict[str, Any] = {
            "color": mark_style.color,
            "hatch": mark_style.hatch,
            "edgecolor": "white",
            "linewidth": 0.6,
            "label": legend_label(mark.label),
        }
        if self.lies:
            self.axes.barh(positions, values, height=breadth, left=floor, **style)
        else:
            self.axes.bar(positions, values, width=breadth, bottom=floor, **style)

    def _histogram(self, mark: Histogram) -> None:
        mark_style = series_style(mark.series)
        widths = [high - low for low, high in pairwise(mark.edges)]
        self.axes.bar(
            mark.edges[:-1],
            mark.counts,
            width=widths,
            align="edge",
            facecolor=f"{mark_style.color}55",
            edgecolor=mark_style.color,
            linewidth=1.0,
            hatch=mark_style.hatch,
            label=legend_label(mark.label),
        )

    def _rule(self, mark: ReferenceLine) -> None:
        style: dict[str, Any] = {
            "color": FAINT,
            "linestyle": (0, (4, 3)),
            "linewidth": 1.0,
            "label": legend_label(mark.label),
            "zorder": 2,
        }
        if mark.way == "vertical":
            self.axes.axvline(mark.at, **style)
        elif mark.way == "horizontal":
            self.axes.axhline(mark.at, **style)
        else:
            self.axes.axline((0, 0), slope=1, **style)

    def _heat(self, mark: Heatmap) -> None:
        rows = [numbers(row) for row in mark.rows]
        image = self.axes.imshow(
            rows, origin="lower", aspect="equal", cmap="cividis", zorder=1
        )
        self.axes.grid(visible=False)
        low, high = image.get_clim()
        middle = (low or 0.0) + LIGHT * ((high or 0.0) - (low or 0.0))
        for y, row in enumerate(mark.rows):
            for x, value in enumerate(row):
                is_dark = value is not None and value < middle
                self.axes.text(
                    x,
                    y,
                    format_number(value),
                    ha="center",
                    va="center",
                    fontsize=NOTE_PT,
                    color="white" if is_dark else INK,
                )
        figure = self.axes.get_figure(root=True)
        if figure is not None:
            label = safe_text(mark.label)
            figure.colorbar(image, ax=self.axes, label=label, fraction=0.046, pad=0.03)

    def _intervals(
        self,
        positions: Sequence[float],
        lo: Sequence[Number],
        hi: Sequence[Number],
        color: str,
        zorder: float = 2.8,
    ) -> None:
        """Interval ends, drawn about their middle: a value may lie outside them."""
        ends = [
            (position, (low + high) / 2, (high - low) / 2)
            for position, low, high in zip(positions, lo, hi, strict=bool(lo))
            if low is not None and high is not None
        ]
        if not ends:
            return
        at, middle, half = zip(*ends, strict=True)
        style: dict[str, Any] = {**CAPS, "ecolor": color, "zorder": zorder}
        if self.lies:
            self.axes.errorbar(middle, at, xerr=half, **style)
        else:
            self.axes.errorbar(at, middle, yerr=half, **style)


def _share(position: float, axis: Axis) -> float:
    """Return the share of the axis before *position*; 0.5 without known ends."""
    if axis.ends is None:
        return 0.5
    lo, hi = axis.ends
    return (position - lo) / (hi - lo)


def numbers(values: Sequence[Number]) -> list[float]:
    """Numbers for matplotlib, which leaves nan out."""
    return [math.nan if value is None else float(value) for value in values]
