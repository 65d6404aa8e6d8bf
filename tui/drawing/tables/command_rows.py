"""Requests as lines of a list, and one of them in full. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from store.asked import Answer, Asked
from store.sums import US_PER_S
from tui.drawing.clip import clip, one_line
from tui.drawing.format import UNKNOWN, duration
from tui.drawing.glyphs import Glyphs
from tui.drawing.words import utc

_CELLS = (19, 18, 9, 8)
"""Of all columns but the last, which takes what is left."""
_HEADS = ("asked, UTC", "by", "answer", "after", "what")
_MOMENT = slice(0, 19)
"""Of a moment in UTC, without the Z: the column says it."""
_SENTENCES = {
    Answer.WAITING: "Nobody has answered it yet.",
    Answer.WITHDRAWN: "It was withdrawn; the run's next process notes that.",
    Answer.ACCEPTED: "It is being carried out.",
    Answer.APPLIED: "It was carried out.",
    Answer.REJECTED: "It was refused.",
}


def heads(width: int) -> str:
    """The names of the columns."""
    return _line("  ", _HEADS, width)


def row(request: Asked, width: int, glyphs: Glyphs, *, is_current: bool) -> str:
    """A request on one line."""
    cells = (
        _moment(request.asked_us),
        _who(request),
        request.answer.value,
        _after(request, request.answered_us or request.accepted_us),
        request.words,
    )
    return _line(f"{glyphs.cursor if is_current else ' '} ", cells, width)


def about(request: Asked) -> str:
    """A request in full: what was asked, under which condition, what came of it."""
    condition = request.expected_state
    said = request.said
    parts = (
        f"{request.words}, asked by {_who(request)}",
        f" on condition that the run is {condition}" if condition else "",
        f". {_SENTENCES[request.answer]}",
        f" {said}." if said else "",
        " W withdraws it." if can_be_withdrawn(request) else "",
    )
    return "".join(parts)


def can_be_withdrawn(request: Asked) -> bool:
    """Whether taking it back can still come in time."""
    return request.answer is Answer.WAITING and request.kind != "withdraw"


def summary(requests: Sequence[Asked], *, is_alive: bool) -> str:
    """How many there are and how many wait, and whether anybody will answer them."""
    waiting = sum(request.answer is Answer.WAITING for request in requests)
    said = f"{len(requests):,} asked"
    if not waiting:
        return said
    whom = "" if is_alive else "; no process works on the run, the next one reads them"
    return f"{said}, {waiting:,} without an answer{whom}"


def _line(mark: str, cells: Sequence[str], width: int) -> str:
    fitted = (clip(cell, size) for cell, size in zip(cells[:-1], _CELLS, strict=True))
    return one_line(f"{mark}{'  '.join(fitted)}  {cells[-1]}", width)


def _who(request: Asked) -> str:
    host = "" if request.host is None else f"@{request.host}"
    return f"{request.author}{host}"


def _moment(at_us: int | None) -> str:
    return UNKNOWN if at_us is None else utc(at_us)[_MOMENT].replace("T", " ")


def _after(request: Asked, at_us: int | None) -> str:
    """How long the answer took; clocks of two machines may differ."""
    if at_us is None or request.asked_us is None:
        return UNKNOWN
    return duration(max(0.0, (at_us - request.asked_us) / US_PER_S))
