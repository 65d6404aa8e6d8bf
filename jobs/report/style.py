"""How figures look: one style, whatever the machine's own settings of matplotlib are.

The colours are those of Okabe and Ito ("Color Universal Design", 2008), which readers
with every kind of colour vision tell apart, less their yellow, which is too pale for a
line on white. Line style, marker and hatching change with the colour.
"""

from __future__ import annotations

from typing import Any, NamedTuple

WIDTH_IN = 7.2
"""Of a figure: two columns of a journal's page."""

ROW_IN = 3.1
"""Height of a row of panels."""

DPI = 144

INK = "#222222"
FAINT = "#8a8a8a"


class Look(NamedTuple):
    """What distinguishes a series."""

    color: str
    line: Any  #: matplotlib's line style
    marker: str
    hatch: str


LOOKS = (
    Look("#0072B2", "-", "o", ""),
    Look("#D55E00", (0, (5, 1.6)), "s", "//"),
    Look("#009E73", (0, (1.2, 1.2)), "^", ".."),
    Look("#CC79A7", (0, (6, 1.5, 1.2, 1.5)), "D", "xx"),
    Look("#56B4E9", (0, (3, 1, 1, 1, 1, 1)), "v", "\\\\"),
    Look("#E69F00", (0, (8, 2)), "P", "++"),
    Look("#5B5B5B", (0, (2, 2)), "X", "--"),
)

BACKGROUND: dict[str, Any] = {
    "color": FAINT,
    "alpha": 0.45,
    "linestyle": "-",
    "linewidth": 0.7,
    "zorder": 2.3,
}
"""Of faint lines: a hundred of them still let the line before them be seen."""

RC: dict[Any, Any] = {
    "axes.axisbelow": True,
    "axes.edgecolor": FAINT,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.labelsize": 9,
    "axes.linewidth": 0.8,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 8.5,
    "axes.titleweight": "bold",
    "axes.unicode_minus": True,
    "figure.constrained_layout.h_pad": 0.07,
    "figure.constrained_layout.w_pad": 0.07,
    "figure.facecolor": "white",
    "font.family": ["DejaVu Sans"],
    "font.size": 8.5,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.7,
    "hatch.linewidth": 0.5,
    "legend.borderaxespad": 0.2,
    "legend.fontsize": 8,
    "legend.framealpha": 0.9,
    "legend.edgecolor": "#d0d0d0",
    "legend.fancybox": False,
    "path.simplify": True,
    "savefig.facecolor": "white",
    # ids inside an SVG come from this and the content, not from chance
    "svg.hashsalt": "siftlog",
    # letters as outlines: the same picture wherever it is opened
    "svg.fonttype": "path",
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": INK,
    "xtick.labelsize": 8,
    "ytick.color": INK,
    "ytick.labelsize": 8,
}


def look(series: int) -> Look:
    """How a series is drawn; after the last look they begin again."""
    return LOOKS[series % len(LOOKS)]


def foreground(drawn: Look) -> dict[str, Any]:
    """How a line is drawn that says something of its own."""
    return {
        "color": drawn.color,
        "linestyle": drawn.line,
        "linewidth": 1.6,
        "zorder": 2.5,
    }
