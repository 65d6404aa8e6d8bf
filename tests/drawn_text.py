"""Texts of a drawn figure that hide one another."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from matplotlib.figure import Figure as Canvas
from matplotlib.text import Text
from matplotlib.transforms import Bbox

SLACK = 1.0
"""Points by which boxes may overlap: those of letters are taller than the letters."""


def overlapping(canvas: Canvas) -> list[tuple[str, str]]:
    """Return the pairs of texts whose boxes overlap, on a figure that is laid out."""
    renderer = canvas.canvas.get_renderer()  # type: ignore[attr-defined]
    beyond = set(_beyond(canvas))
    texts = [
        text
        for text in canvas.findobj(Text)
        if isinstance(text, Text)
        and text.get_visible()
        and text.get_text().strip()
        and text not in beyond
    ]
    slack = SLACK * canvas.dpi / 72
    boxes = [(text, _inner(text.get_window_extent(renderer), slack)) for text in texts]
    return [
        (one.get_text(), other.get_text())
        for (one, a), (other, b) in combinations(boxes, 2)
        # the boxes of slanted texts overlap where the texts do not
        if one.get_rotation() % 90 == other.get_rotation() % 90 == 0 and a.overlaps(b)
    ]


def _beyond(canvas: Canvas) -> Iterator[Text]:
    """Labels of ticks beyond the ends of their axis, which are not drawn."""
    for axes in canvas.axes:
        for axis in (axes.xaxis, axes.yaxis):
            low, high = sorted(axis.get_view_interval())
            for tick in (*axis.get_major_ticks(), *axis.get_minor_ticks()):
                if not low <= tick.get_loc() <= high:
                    yield tick.label1


def _inner(box: Bbox, slack: float) -> Bbox:
    return Bbox.from_extents(
        box.x0 + slack, box.y0 + slack, box.x1 - slack, box.y1 - slack
    )
