"""A line plot in characters: x the runs, y a share from 0 to 1."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from string import ascii_letters

HEIGHT = 11
"""Lines of the axis, both ends included: between tenths they are whole hundredths."""

WIDTH = 60
"""Columns for runs."""

STEP = 12
"""Columns from run to run, at most."""

TIED, BETWEEN = "*", "·"
"""Where several models stand, and what joins the points of one."""


def plot(runs: Sequence[str], series: Mapping[str, Mapping[str, float]]) -> str:
    """Draw the values of some models.

    Args:
        runs: the places along x, in order; only the last that fit are drawn.
        series: by model the value of each run that it has one in; only as many as
            there are letters are drawn.
    """
    drawn = list(runs[-WIDTH:])
    places = {run: place for place, run in enumerate(drawn)}
    step = min(STEP, (WIDTH - 1) // max(len(drawn) - 1, 1))
    points = {
        letter: [
            (places[run] * step, value)
            for run, value in values.items()
            if run in places
        ]
        for letter, values in zip(ascii_letters, series.values(), strict=False)
    }
    values = [value for own in points.values() for _, value in own]
    least = low(values)
    rows = [[" "] * (step * max(len(drawn) - 1, 0) + 1) for _ in range(HEIGHT)]
    for own in points.values():
        for column, value in _between(own):
            rows[_line(value, least)][column] = BETWEEN
    for letter, own in points.items():
        for column, value in own:
            line = rows[_line(value, least)]
            line[column] = letter if line[column] in f" {BETWEEN}" else TIED
    axis = [1.0 - (1.0 - least) * line / (HEIGHT - 1) for line in range(HEIGHT)]
    lines = [
        f"{value:5.2f} |{''.join(row)}".rstrip()
        for value, row in zip(axis, rows, strict=True)
    ]
    legend = "  ".join(
        f"{letter} {model}" for letter, model in zip(points, series, strict=False)
    )
    return "\n".join([*lines, f"{'':6}+{'-' * len(rows[0])}", f"{'':7}{legend}"])


def low(values: Sequence[float]) -> float:
    """The lower end of the axis: a whole tenth below all values."""
    least = min(values, default=0.0)
    return min(max(int(least * 10) / 10, 0.0), 0.9)


def _line(value: float, least: float) -> int:
    return round((1.0 - value) / (1.0 - least) * (HEIGHT - 1))


def _between(points: Sequence[tuple[int, float]]) -> Iterator[tuple[int, float]]:
    """The columns between neighbouring points, with the values of a straight line."""
    for (left, start), (right, end) in pairwise(points):
        for column in range(left + 1, right):
            share = (column - left) / (right - left)
            yield column, start + share * (end - start)
