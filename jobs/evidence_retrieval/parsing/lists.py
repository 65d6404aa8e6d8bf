"""Lists of sentences in replies: JSON of several forms, or a line of text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_RATED = re.compile(r"([^()]*)\(([^()]*)\)")


def entries(value: object) -> Iterable[tuple[object, object]] | None:
    """The number and relevance of each sentence listed, unread; None: no list.

    A relevance is None where none is given.
    """
    if isinstance(value, list):
        return map(_entry, value)
    if isinstance(value, str):
        return line_entries(value)
    return None


def line_entries(line: str) -> Iterable[tuple[object, object]] | None:
    """The same for a line such as `3 (80), 5` or `none`."""
    stripped = line.strip(" \t\r*_.")
    if not stripped:
        return None
    return () if stripped.casefold() == "none" else _items(stripped)


def _items(line: str) -> Iterator[tuple[object, object]]:
    for item in re.split("[,;]", line):
        rated = _RATED.fullmatch(item.strip())
        yield (rated[1], rated[2]) if rated else (item, None)


def _entry(value: object) -> tuple[object, object]:
    if isinstance(value, dict):
        return value.get("n"), value.get("relevance")
    if isinstance(value, list) and len(value) == 1:
        return value[0], None
    return value, None
