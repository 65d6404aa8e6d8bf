"""JSON as a tree of lines, with what is wrong beside the field that it is about."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice
from typing import Any

MOST = 20_000
"""Lines of a tree; nobody reads further."""
_INDENT = "  "
_DEEPEST = 200


def tree(value: Any, *, fault: str = "", sign: str = "✗") -> str:  # noqa: ANN401 - any JSON
    """*value* by its fields, one a line.

    Args:
        value: JSON.
        fault: what is wrong, as `path: message` with the steps of the path between
            dots; it is put beside that field, or beside what the field is missing in.
        sign: stands before it.

    >>> print(tree({"a": [1, {"b": "x"}]}, fault="a.1.b: not a number"))
    a
      [0]  1
      [1]
        b  "x"  ✗ not a number
    """
    place, _, message = fault.partition(": ")
    found = _deepest(value, place.split(".")) if message else None
    lines = []
    for path, line in islice(_lines((), value), MOST):
        is_wrong = found and path == found
        lines.append(f"{line}  {sign} {message}" if is_wrong else line)
    if len(lines) == MOST:
        lines.append(f"… only the first {MOST:,} lines")
    return "\n".join(lines)


def _deepest(value: Any, steps: list[str]) -> tuple[str, ...]:  # noqa: ANN401 - any JSON
    """As much of a path as there is in *value*."""
    path: list[str] = []
    for step in steps:
        match value:
            case dict() if step in value:
                value = value[step]
            case list() if step.isdecimal() and int(step) < len(value):
                value = value[int(step)]
            case _:
                break
        path.append(step)
    return tuple(path)


def _lines(path: tuple[str, ...], value: Any) -> Iterator[tuple[tuple[str, ...], str]]:  # noqa: ANN401 - any JSON
    """The lines below a value, each with its path; those of a plain one are none."""
    indent = _INDENT * len(path)
    match value:
        case dict() if value or path:
            fields = [(str(key), str(key), inner) for key, inner in value.items()]
        case list() if value or path:
            fields = [(str(n), f"[{n}]", inner) for n, inner in enumerate(value)]
        case _ if not path:
            yield (), _plain(value)
            return
        case _:
            return
    for step, name, inner in fields:
        below = (*path, step)
        if isinstance(inner, dict | list) and inner and len(path) < _DEEPEST:
            yield below, f"{indent}{name}"
            yield from _lines(below, inner)
        else:
            yield below, f"{indent}{name}  {_plain(inner)}"


def _plain(value: Any) -> str:  # noqa: ANN401 - any JSON
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        return "…"
