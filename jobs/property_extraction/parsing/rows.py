"""The rows of a paper, from the replies about its pieces and a second look at quotes.

Pure: what a paper's rows are depends on the replies and its text alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from jobs.property_extraction.answered import Extraction, Found, Requoted
from jobs.property_extraction.grounding.folding import fold
from jobs.property_extraction.grounding.quote import Level, Paper, ground
from jobs.property_extraction.row import Prediction

WITHDRAWN: Final = "withdrawn"
ABSENT: Final = "absent"
"""Flags of rows that a second request was about."""

UNGROUNDED: Final = frozenset({Level.ABSENT, Level.NO_QUOTE})
"""Levels that a second request asks about."""


def mentions(extractions: Sequence[Extraction]) -> dict[Found, int]:
    """The distinct rows of a paper in the order of its parts, and how often each is.

    Parts overlap, and a paper repeats its values, so a row that an earlier part states
    is no new row, whatever its quote. It counts as often as in the part that has it
    most. Within a part, rows that differ in any field are different rows.
    """
    found: dict[Found, int] = {}
    stated: dict[tuple[str, ...], Found] = {}
    for extraction in extractions:
        own = Counter(
            row if row in found else stated.get(_content(row), row)
            for row in extraction.rows
        )
        for row, n in own.items():
            found[row] = max(n, found.get(row, 0))
            stated.setdefault(_content(row), row)
    return found


def repeated(extractions: Sequence[Extraction]) -> int:
    """Rows of later parts that an earlier part states too."""
    stated = sum(len(set(extraction.rows)) for extraction in extractions)
    return stated - len(mentions(extractions))


def _content(row: Found) -> tuple[str, ...]:
    """What a row says, by which rows of several parts are one: all but its quote."""
    texts = (row.name, row.value, row.unit, row.material, row.condition)
    return tuple(fold(text).text for text in texts)


def ungrounded(paper: Paper, rows: Sequence[Found]) -> tuple[Found, ...]:
    """The rows whose quote is missing, or not in the paper."""
    return tuple(row for row in rows if ground(paper, row.quote).level in UNGROUNDED)


def predictions(
    refno: str,
    extractions: Sequence[Extraction],
    *,
    first: int = 1,
    asked: Sequence[Found] = (),
    requoted: Requoted | None = None,
    paper: Paper | None = None,
) -> tuple[Prediction, ...]:
    """The rows of one paper, as one model states them in one replicate.

    Args:
        refno: of the paper.
        extractions: of its pieces, in their order.
        first: number of the first row; the others follow.
        asked: rows that a second request was about, in the order of their numbers.
        requoted: what the reply to it says; None: nothing was asked, or it is lacking.
        paper: in which new quotes are looked up; needed with *requoted*.
    """
    second = (
        {}
        if requoted is None or paper is None
        else {
            row: _second_look(row, number, requoted, paper)
            for number, row in enumerate(asked, start=1)
        }
    )
    return tuple(
        _prediction(refno, row, n, number, second)
        for number, (row, n) in enumerate(mentions(extractions).items(), start=first)
    )


def _second_look(
    row: Found, number: int, requoted: Requoted, paper: Paper
) -> tuple[str, str]:
    """Quote and flag of a row after the second request."""
    if number in requoted.withdrawn:
        return row.quote, WITHDRAWN
    quote = requoted.quotes.get(number, "")
    if ground(paper, quote).level in UNGROUNDED:
        return row.quote, ABSENT
    return quote, ""


def _prediction(
    refno: str,
    row: Found,
    n: int,
    number: int,
    second: Mapping[Found, tuple[str, str]],
) -> Prediction:
    quote, flag = second.get(row, (row.quote, ""))
    return Prediction(
        refno=refno,
        name=row.name,
        value=row.value,
        unit=row.unit,
        material=row.material,
        condition=row.condition,
        quote=quote,
        mentions=n,
        row=number,
        flag=flag,
    )
