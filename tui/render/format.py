"""Formats figures and times: short, of constant width, `-` for unknown values.

The commands print sentences and format figures differently (`runner/cli/console.py`); a
screen has columns, whose figures must not change width every second.
"""

from __future__ import annotations

from datetime import UTC, datetime

from store import document
from store.fold_state import US_PER_S
from store.read.usage import dollars

UNKNOWN = "-"
TEN = 9.95
"""From here on a figure with one decimal is rounded to 10.0."""
_UNITS = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def utc(at_us: int) -> str:
    """Format a time to the second, in UTC.

    >>> utc(1_767_225_600_000_000)
    '2026-01-01T00:00:00Z'
    """
    timestamp = datetime.fromtimestamp(at_us // US_PER_S, UTC)
    return timestamp.strftime("%Y-%m-%dT%H:%M:%SZ")


def count(value: int | None) -> str:
    """Format a count.

    >>> count(1204), count(None)
    ('1,204', '-')
    """
    return UNKNOWN if value is None else f"{value:,}"


def amount(value: float | None) -> str:
    """Format a figure in at most five characters, with a unit from a thousand on.

    >>> amount(7.31), amount(820), amount(118_400), amount(3_100), amount(None)
    ('7.3', '820', '118 k', '3.1 k', '-')
    """
    if value is None:
        return UNKNOWN
    for size, unit in _UNITS:
        # a figure that rounds up to a thousand of a unit uses the next one
        if value >= size * 0.9995:
            return f"{_three(value / size)} {unit}"
    return _three(value)


def tight(value: float | None, width: int | None = None) -> str:
    """Format a figure without the blank before its unit, or in full if *width* allows.

    >>> tight(3_100), tight(160_112, 7), tight(1_000_000, 7)
    ('3.1k', '160,112', '1M')
    """
    if value is not None and width is not None and len(f"{value:,.0f}") <= width:
        return f"{value:,.0f}"
    return amount(value).replace(" ", "")


def _three(value: float) -> str:
    """Format with one decimal below ten if needed, else without."""
    is_small = value < TEN and value != int(value)
    return f"{value:.1f}" if is_small else f"{value:.0f}"


def duration(seconds: float | None) -> str:
    """Format a duration in the two largest suitable units.

    >>> duration(125), duration(None)
    ('2 min 05', '-')
    """
    return UNKNOWN if seconds is None else document.duration(seconds)


_SECOND_MS = 995.0
"""From here on a latency is rounded to 1.0 s or more."""


def latency(milliseconds: float | None) -> str:
    """Format the latency of an answer, with two decimals below a second.

    >>> latency(1840), latency(249), latency(None)
    ('1.8 s', '0.25 s', '-')
    """
    if milliseconds is not None and milliseconds < _SECOND_MS:
        return f"{milliseconds / 1000:.2f} s"
    return duration(None if milliseconds is None else milliseconds / 1000)


def percent(share: float | None, *, tenths: bool = False) -> str:
    """Format a share of 1, rounded down: 100 % means all.

    >>> percent(0.9999, tenths=True), percent(0.9999), percent(None)
    ('99.9 %', '99 %', '-')
    """
    if share is None:
        return UNKNOWN
    steps = 1000 if tenths else 100
    # tolerate the error of binary fractions
    whole = int(share * steps + 1e-9)
    return f"{whole / 10:.1f} %" if tenths else f"{whole} %"


def money(usd: float | None) -> str:
    """Format dollars: with cents from one dollar on, finer below; `?` if unknown.

    >>> money(212.4), money(0.0021), money(None)
    ('$212.40', '$0.0021', '?')
    """
    return f"${usd:,.2f}" if usd is not None and usd >= 1 else dollars(usd)


def task_name(task: int) -> str:
    """Return the name of a task, by its plain number.

    >>> task_name(41_882)
    'task 41882'
    """
    return f"task {task}"
