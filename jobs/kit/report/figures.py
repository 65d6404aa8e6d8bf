"""Draws figures for a paper with matplotlib: SVG, PNG or PDF, always the same bytes.

A figure is as wide as one column of a page (88 mm) or as two (180 mm), with letters of
7 to 9 points at that width, and no title inside: a paper and the report set the title
outside. PDFs embed their fonts as TrueType, and their text can be searched; in SVGs
letters are outlines, which look the same wherever they are opened.

Only objects of its own are used, none of `pyplot`'s state, and under a style of its
own: neither a window system nor a person's matplotlibrc can change a picture.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

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
    NOTE_PT,
    RC,
    PanelPainter,
    legend_label,
    one_line_title,
    safe_text,
)
from runner.job_faults import sentence_of
from runner.score.render import FIGURE_FORMATS, FigureFormat
from runner.scorecard import (
    Axis,
    Bars,
    Category,
    FailedFigure,
    Figure,
    Heatmap,
    Histogram,
    Panel,
    Points,
    ReferenceLine,
    Series,
    Stack,
)

MM = 1 / 25.4
"""Inches."""

COLUMN_IN = 88 * MM
"""Width of a figure in one column of a journal's page."""

PAGE_IN = 180 * MM
"""Width of a figure across both columns."""

LONGEST_IN = 230 * MM
"""Height of a page, less that of a caption."""

ROW_IN = 65 * MM
"""Height of a row of panels; in one column they are not wider than that."""

SVG_DPI = 72
"""Units per inch in an SVG."""

BAR_IN = 0.17
"""Height of a lying bar."""

LINE_IN = 0.125
"""Height of a line of a row's name."""

FRAME_IN = 0.66
"""Height that title, axis and its label take."""

ROOM = 96
"""Characters that fit side by side along the width of a page."""

TICKS = 10
"""Numbers along the width of a page, at most."""

ROUND = (1, 2, 2.5, 5, 10)
"""Steps from one to the next, by powers of ten."""

TITLE = 72
"""Characters of a title along the width of a page."""

TITLE_LINES = 3
"""Lines of a title, at most."""

KEY = 7
"""Characters that the key before an entry of a legend takes."""

LEGEND_IN = 0.15
"""Height of the room around the legend."""

LEGEND_LINE_IN = 0.17
"""Height of a line of the legend."""

MARGIN = 6
"""Characters that the numbers of y take of a panel's width."""

SHORT = 22
"""Characters of a row's name that leave the panel room in one column."""

METADATA: Mapping[FigureFormat, Mapping[str, None]] = {
    "svg": {"Date": None, "Creator": None},
    "png": {"Software": None},
    "pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
"""Metadata that matplotlib would add about itself and the time."""


def write_figures(
    figures: Sequence[Figure],
    folder: Path,
    formats: Sequence[FigureFormat] = FIGURE_FORMATS,
) -> tuple[FailedFigure, ...]:
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
                _save(figure, folder, formats)
            except (ArithmeticError, LookupError, TypeError, ValueError) as error:
                fault = sentence_of(error, __name__)
                failed.append(FailedFigure(name=figure.name, fault=fault))
                for suffix in formats:
                    (folder / f"{figure.name}.{suffix}").unlink(missing_ok=True)
    return tuple(failed)


def _save(figure: Figure, folder: Path, formats: Sequence[FigureFormat]) -> None:
    canvas = draw_figure(figure)
    _lay_out(canvas)
    for suffix in formats:
        options: dict[str, Any] = {"dpi": DPI} if suffix == "png" else {}
        canvas.savefig(
            folder / f"{figure.name}.{suffix}",
            format=suffix,
            metadata=dict(METADATA[suffix]),
            **options,
        )


def _lay_out(canvas: Canvas) -> None:
    """Place the panels for all files at once; each `savefig` would do it again.

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
    is_narrow = columns == 1 and all(map(_fits_column, figure.panels))
    width = COLUMN_IN if is_narrow else PAGE_IN
    room = width / columns
    heights = [
        max(_height(panel, room) for panel in row)
        + LINE_IN * max(len(_title_lines(panel.title, room)) - 1 for panel in row)
        for row in rows
    ]
    names = _legend_names(figure)
    legend = _legend_columns(names, int(ROOM * width / PAGE_IN))
    lines = -(-len(names) // legend)
    legend_height = LEGEND_IN + LEGEND_LINE_IN * lines if names else 0.0
    height = min(sum(heights) + legend_height, LONGEST_IN)
    canvas = Canvas(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(canvas)
    grid = canvas.add_gridspec(len(rows), columns, height_ratios=heights)
    for y, row in enumerate(rows):
        for x, panel in enumerate(row):
            axes = canvas.add_subplot(grid[y, x])
            _panel(axes, panel, room)
            if x and panel.y.names and panel.y == row[x - 1].y:
                axes.set_yticklabels([])  # as those of the panel on the left
                axes.set_ylabel("")
    _legend(canvas, names, legend)
    return canvas


def _fits_column(panel: Panel) -> bool:
    """Whether a panel can be read in one column of a page."""
    if panel.row_notes:
        return False
    if panel.y.names:
        return max(map(_longest, panel.y.names)) <= SHORT
    return not panel.x.names or _is_roomy(panel.x.names, COLUMN_IN)


def _height(panel: Panel, width: float) -> float:
    """Return a panel's height in inches: as declared, or as its bars need."""
    if any(isinstance(mark, Heatmap) for mark in panel.marks):
        return width
    if not panel.y.names:
        # a square takes the whole width, so that its title needs height of its own
        square = min(COLUMN_IN, width) + LINE_IN
        return panel.height * (square if panel.square else ROW_IN)
    bars = sum(isinstance(mark, Bars) for mark in panel.marks)
    points = [mark for mark in panel.marks if isinstance(mark, Points)]
    rows = Counter(round(y) for mark in points for y in mark.y if y is not None)
    # a point is half as high as a bar
    side_by_side = max(1.0, bars, max(rows.values(), default=0) / 2)
    lines = 1 + max(name.count("\n") for name in panel.y.names)
    step = max(BAR_IN * (side_by_side + 0.6), LINE_IN * (lines + 0.6))
    return FRAME_IN + len(panel.y.names) * step


def _panel(axes: Axes, panel: Panel, width: float) -> None:
    PanelPainter(axes=axes, panel=panel).draw()
    if panel.title:
        axes.set_title("\n".join(_title_lines(panel.title, width)))
    axes.set_xlabel(safe_text(panel.x.label))
    axes.set_ylabel(safe_text(panel.y.label))
    is_counted = _is_counted(panel)
    if is_counted and not panel.y.names:
        axes.yaxis.set_major_locator(MaxNLocator(nbins=5, integer=True))
    _x_axis(axes, panel.x, width, is_counted=is_counted and bool(panel.y.names))
    _y_axis(axes, panel.y)
    _row_notes(axes, panel.row_notes)
    if panel.square:
        axes.set_aspect("equal", adjustable="box")


def _title_lines(title: str, width: float) -> list[str]:
    """The lines of a panel's title: names of models are long, and differ anywhere.

    Args:
        title: of a panel.
        width: of the panel in inches.
    """
    room = int(TITLE * width / PAGE_IN)
    whole = one_line_title(title, room * TITLE_LINES)
    lines: list[str] = []
    while len(whole) > room and len(lines) < TITLE_LINES - 1:
        # after the last mark that ends a part of a name, if it is not far
        end = max(whole.rfind(mark, room // 2, room) for mark in "/-_ .:") + 1 or room
        lines.append(whole[:end].rstrip())
        whole = whole[end:]
    return [*lines, one_line_title(whole, room)]


def _is_counted(panel: Panel) -> bool:
    """Whether values are counts, so that no number between two is of use."""
    if any(isinstance(mark, Histogram) for mark in panel.marks):
        return True
    bars = [mark for mark in panel.marks if isinstance(mark, Bars | Stack)]
    values = [value for mark in bars for value in mark.values if value is not None]
    return bool(values) and all(isinstance(value, int) for value in values)


def _x_axis(axes: Axes, axis: Axis, width: float, *, is_counted: bool) -> None:
    if not axis.names:
        axes.set_xlim(*_ends(axis))
        # of long numbers fewer fit than matplotlib believes
        most = max(2, int(TICKS * width / PAGE_IN))
        axes.xaxis.set_major_locator(MaxNLocator(most, steps=ROUND, integer=is_counted))
        return
    names = [_name(name) for name in axis.names]
    axes.set_xticks(range(len(names)), names)
    if not _is_roomy(names, width):
        axes.tick_params(axis="x", labelrotation=35)
        for text in axes.get_xticklabels():
            text.set_horizontalalignment("right")
            text.set_rotation_mode("anchor")
    axes.grid(visible=False, axis="x")
    axes.set_xlim(-0.6, len(names) - 0.4)


def _is_roomy(names: Sequence[str], width: float) -> bool:
    """Whether names fit side by side along the *width* of a panel in inches."""
    return sum(_longest(name) + 2 for name in names) <= ROOM * width / PAGE_IN - MARGIN


def _y_axis(axes: Axes, axis: Axis) -> None:
    if not axis.names:
        axes.set_ylim(*_ends(axis))
        return
    names = [_name(name) for name in axis.names]
    axes.set_yticks(range(len(names)), names)
    # a line between rows: each may hold many points
    axes.set_yticks([row + 0.5 for row in range(len(names) - 1)], minor=True)
    axes.tick_params(axis="y", which="minor", length=0)
    axes.grid(visible=False, axis="y")
    axes.grid(visible=True, axis="y", which="minor")
    axes.set_ylim(len(names) - 0.4, -0.6)


def _name(name: str) -> str:
    """A name at an axis; each of its lines is cut in its middle."""
    return "\n".join(one_line_title(line, NAME) for line in name.split("\n"))


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
            fontsize=NOTE_PT,
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


def _legend_names(figure: Figure) -> list[str]:
    """Entries of the legend: models in their order, categories, and what else is."""
    ranks: dict[str, tuple[int, int]] = {}
    for panel in figure.panels:
        for mark in panel.marks:
            if isinstance(mark, Heatmap):
                continue
            series = None if isinstance(mark, ReferenceLine) else mark.series
            if name := legend_label(mark.label):
                ranks.setdefault(name, _rank(series))
    return sorted(ranks, key=lambda name: ranks[name])


def _rank(series: Series) -> tuple[int, int]:
    match series:
        case None:
            return 2, 0
        case Category(index):
            return 1, index
        case _:
            return 0, series


def _legend_columns(names: Sequence[str], room: int) -> int:
    """Return how many entries fit side by side; *room* is characters."""
    longest = max(map(len, names), default=0) + KEY
    return max(1, min(len(names), room // longest))


def _legend(canvas: Canvas, names: Sequence[str], columns: int) -> None:
    """One for all panels, below them, where it hides nothing."""
    entries: dict[str, Artist] = {}
    for axes in canvas.axes:
        handles, labels = axes.get_legend_handles_labels()
        for handle, label in zip(handles, labels, strict=True):
            entries.setdefault(label, handle)
    visible = [name for name in names if name in entries]
    if visible:
        canvas.legend(
            [entries[name] for name in visible],
            visible,
            loc="outside lower center",
            ncols=columns,
            handlelength=2.8,
        )
