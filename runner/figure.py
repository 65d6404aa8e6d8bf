"""Figures as values: what is drawn and what it means, without anything that draws.

A job says with these what a reader should see; `siftlog.reports` writers decide how it
looks. Everything is plain numbers and text, so a figure is made without numerical or
drawing libraries, and two equal scorings have equal figures.

Colour never carries a meaning alone: marks of one series share colour, line style and
marker, and every series that needs telling apart has a label. None among the numbers is
undefined: a gap in a line, a place without a bar. A curve of a million points is
thinned by the job, which knows where it bends.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, TypeAlias

Number: TypeAlias = float | int | None
"""A coordinate; None is undefined and is left out."""

Numbers: TypeAlias = tuple[Number, ...]

_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,79}")
"""Names become file names."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """One direction of a panel."""

    label: str = ""  #: with the unit
    lo: float | None = None  #: None: as the marks need
    hi: float | None = None
    names: tuple[str, ...] = ()
    """Names of the places 0, 1, 2, ...; a line break in one begins a second line, such
    as the n below a label."""

    @property
    def ends(self) -> tuple[float, float] | None:
        """Both ends, never the same place; None where the marks decide one of them."""
        if self.lo is None or self.hi is None:
            return None
        # a count of nothing runs from 0 to 0
        return self.lo, self.hi if self.hi > self.lo else self.lo + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Points joined by a line."""

    x: Numbers
    y: Numbers
    label: str = ""
    series: int = 0
    steps: bool = False  #: each value holds until the next x
    marked: bool = False  #: a marker on each point
    faint: bool = False  #: one of many, which together are the background


@dataclass(frozen=True, slots=True, kw_only=True)
class Points:
    """Single points; *lo* and *hi* are interval ends along the axis of values.

    The axis of values is y, or x where y has names.
    """

    x: Numbers
    y: Numbers
    label: str = ""
    series: int = 0
    lo: Numbers = ()
    hi: Numbers = ()
    notes: tuple[str, ...] = ()  #: a text beside each point


@dataclass(frozen=True, slots=True, kw_only=True)
class Bars:
    """A bar for each name of the named axis; several `Bars` stand side by side."""

    values: Numbers
    label: str = ""
    series: int = 0
    lo: Numbers = ()
    hi: Numbers = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stack:
    """A part of the bar of each name; several lie on one another, in their order."""

    values: Numbers
    label: str
    series: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """Counts between edges, of which there is one more."""

    edges: tuple[float, ...]
    counts: tuple[float, ...]
    label: str = ""
    series: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """The area between two lines, such as an interval at every x."""

    x: Numbers
    lo: Numbers
    hi: Numbers
    label: str = ""
    series: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A thin line for reference: at one value, or where x = y."""

    way: Literal["vertical", "horizontal", "diagonal"]
    at: float = 0.0  #: no meaning on the diagonal
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Heat:
    """A number in every cell of a grid of two named axes; the first row is on top."""

    rows: tuple[Numbers, ...]
    label: str  #: what a cell's number is


Mark: TypeAlias = Line | Points | Bars | Stack | Histogram | Band | Rule | Heat


@dataclass(frozen=True, slots=True, kw_only=True)
class Panel:
    """One pair of axes with what is drawn between them."""

    marks: tuple[Mark, ...]
    x: Axis
    y: Axis
    title: str = ""
    height: float = 1.0  #: against the other panels of the figure
    square: bool = False  #: both axes as long, as for two rates


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A picture for the report and the folder `figures/`.

    Raises:
        ValueError: the name could not be a file's, or there is nothing to draw.
    """

    name: str  #: of its files: lower case, digits, `_` and `-`
    title: str
    caption: str  #: what is shown, how to read it, and over what the intervals are
    panels: tuple[Panel, ...]
    columns: int = 1  #: panels beside one another

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"a figure cannot be called {self.name!r}")
        if not self.panels:
            raise ValueError(f"the figure {self.name!r} has no panel")


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedFigure:
    """Stands for a figure whose code raised: the report has a finding in its place."""

    name: str  #: of the figure, or of the function that should have made it
    fault: str  #: class, line and beginning of the message
