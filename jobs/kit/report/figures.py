"""Draws figures with matplotlib: an SVG and a PNG each, always the same bytes.

Only objects of its own are used, none of `pyplot`'s state, and under a style of its
own: neither a window system nor a person's matplotlibrc can change a picture.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import MaxNLocator

from jobs.kit.report.plot_marks import (
    DPI,
    NAME,
    RC,
    ROW_IN,
    WIDTH_IN,
    PanelPainter,
    one_line_title,
    safe_text,
)
from runner.job_faults import sentence_of
from runner.scorecard import Axis, Bars, FailedFigure, Figure, Histogram, Panel, Points

SQUARE_IN = 4.6
"""Width of a figure whose only column is square panels."""

SVG_DPI = 72
"""Units per inch in an SVG."""

BAR_IN = 0.2
"""Height of a lying bar."""

FRAME_IN = 0.75
"""Height that title, axis and its label take."""

ROOM = 92
"""Characters that fit side by side along a full width."""

TICKS = 10
"""Numbers along a full width, at most."""

ROUND = (1, 2, 2.5, 5, 10)
"""Steps from one to the next, by powers of ten."""

SMALL = 7.5
"""Points of the letters beside a row."""

TITLE = 76
"""Characters of a title over a full width."""

KEY = 7
"""Characters that the key before an entry of a legend takes."""


def write_figures(figures: Sequence[Figure], folder: Path) -> tuple[FailedFigure, ...]:
    """Draw all *figures* into *folder*, which is made.

    Returns:
        Those that could not be drawn.
    """
    failed = []
    folder.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(RC)
        for figure in figures:
            try:
                _save(figure, folder)
            except (ArithmeticError, LookupError, TypeError, ValueError) as error:
                fault = sentence_of(error, __name__)
                failed.append(FailedFigure(name=figure.name, fault=fault))
                for suffix in ("svg", "png"):
                    (folder / f"{figure.name}.{suffix}").unlink(missing_ok=True)
    return tuple(failed)


def _save(figure: Figure, folder: Path) -> None:
    canvas = draw_figure(figure)
    _lay_out(canvas)
    canvas.savefig(
        folder / f"{figure.name}.svg",
        format="svg",
        metadata={"Date": None, "Creator": None},
    )
    canvas.savefig(
        folder / f"{figure.name}.png",
        format="png",
        dpi=DPI,
        metadata={"Software": None},
    )


def _lay_out(canvas: Canvas) -> None:
    """Place the panels for both files at once; each `savefig` would do it again.

    With a layout engine, `savefig` also draws everything once more in advance.
    """
    canvas.dpi = SVG_DPI
    FigureCanvasSVG(canvas)  # whose font metrics do not depend on pixels
    engine = canvas.get_layout_engine()
    if engine is not None:
        engine.execute(canvas)
    canvas.set_layout_engine(None)


def draw_figure(figure: Figure) -> Canvas:
    """A figure on a canvas, under matplotlib's present style."""
    columns = min(figure.columns, len(figure.panels))
    rows = [
        figure.panels[begin : begin + columns]
        for begin in range(0, len(figure.panels), columns)
    ]
    room = WIDTH_IN / columns
    heights = [max(_height(panel, room) for panel in row) for row in rows]
    is_narrow = columns == 1 and all(panel.square for panel in figure.panels)
    width = SQUARE_IN if is_narrow else WIDTH_IN
    canvas = Canvas(figsize=(width, sum(heights) + 0.35), layout="constrained")
    FigureCanvasAgg(canvas)
    grid = canvas.add_gridspec(len(rows), columns, height_ratios=heights)
    for y, row in enumerate(rows):
        for x, panel in enumerate(row):
            _panel(canvas.add_subplot(grid[y, x]), panel, room)
    _legend(canvas, int(ROOM * width / WIDTH_IN))
    return canvas


def _height(panel: Panel, width: float) -> float:
    """Of a panel in inches: as it says, or what its lying bars need."""
    if not panel.y.names:
        return panel.height * (min(SQUARE_IN, width) if panel.square else ROW_IN)
    bars = sum(isinstance(mark, Bars) for mark in panel.marks)
    points = [mark for mark in panel.marks if isinstance(mark, Points)]
    rows = Counter(round(y) for mark in points for y in mark.y if y is not None)
    # a point is half as high as a bar
    side_by_side = max(1.0, bars, max(rows.values(), default=0) / 2)
    return FRAME_IN + len(panel.y.names) * BAR_IN * (side_by_side + 0.6)


def _panel(axes: Axes, panel: Panel, width: float) -> None:
    PanelPainter(axes=axes, panel=panel).draw()
    if panel.title:
        axes.set_title(one_line_title(panel.title, int(TITLE * width / WIDTH_IN)))
    axes.set_xlabel(safe_text(panel.x.label))
    axes.set_ylabel(safe_text(panel.y.label))
    if _counts(panel):
        axes.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    _x_axis(axes, panel.x, width)
    _y_axis(axes, panel.y)
    _row_notes(axes, panel.row_notes)
    if panel.square:
        axes.set_aspect("equal", adjustable="box")


def _counts(panel: Panel) -> bool:
    """Whether y counts something, so that no number between two is of use."""
    bars = [mark for mark in panel.marks if isinstance(mark, Bars)]
    if panel.y.names or not bars:
        return any(isinstance(mark, Histogram) for mark in panel.marks)
    return all(isinstance(value, int) for mark in bars for value in mark.values)


def _x_axis(axes: Axes, axis: Axis, width: float) -> None:
    if not axis.names:
        axes.set_xlim(*_ends(axis))
        if width < WIDTH_IN:
            # of long numbers fewer fit than matplotlib believes
            most = int(TICKS * width / WIDTH_IN)
            axes.xaxis.set_major_locator(MaxNLocator(most, steps=ROUND))
        return
    names = [safe_text(name, NAME) for name in axis.names]
    is_long = sum(_longest(name) + 2 for name in names) > ROOM * width / WIDTH_IN
    axes.set_xticks(range(len(names)), names)
    if is_long:
        axes.tick_params(axis="x", labelrotation=35)
        for text in axes.get_xticklabels():
            text.set_horizontalalignment("right")
            text.set_rotation_mode("anchor")
    axes.grid(visible=False, axis="x")
    axes.set_xlim(-0.6, len(names) - 0.4)


def _y_axis(axes: Axes, axis: Axis) -> None:
    if not axis.names:
        axes.set_ylim(*_ends(axis))
        return
    names = [safe_text(name, NAME) for name in axis.names]
    axes.set_yticks(range(len(names)), names)
    axes.grid(visible=False, axis="y")
    axes.set_ylim(len(names) - 0.4, -0.6)


def _row_notes(axes: Axes, notes: Sequence[str]) -> None:
    """Texts beside the frame, each on its row."""
    for row, note in enumerate(notes):
        axes.annotate(
            safe_text(note),
            (1.0, row),
            xycoords=("axes fraction", "data"),
            xytext=(4, 0),
            textcoords="offset points",
            va="center",
            fontsize=SMALL,
            annotation_clip=False,
        )


def _ends(axis: Axis) -> tuple[float | None, float | None]:
    """The limits of an axis, a little beyond round ones so that no marker is cut."""
    if axis.ends is None:
        return axis.lo, axis.hi
    lo, hi = axis.ends
    margin = 0.02 * (hi - lo)
    return lo - (margin if lo else margin / 2), hi + margin


def _longest(name: str) -> int:
    return max(map(len, name.split("\n")))


def _legend(canvas: Canvas, room: int) -> None:
    """One for all panels, below them, where it hides nothing; *room* is characters."""
    entries: dict[str, Artist] = {}
    for axes in canvas.axes:
        handles, names = axes.get_legend_handles_labels()
        for handle, name in zip(handles, names, strict=True):
            entries.setdefault(name, handle)
    if entries:
        canvas.legend(
            list(entries.values()),
            list(entries),
            loc="outside lower center",
            ncols=min(len(entries), max(1, room // (max(map(len, entries)) + KEY))),
            handlelength=2.8,
        )
