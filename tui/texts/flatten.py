"""JSON as lines that a person can read: a path and its value, texts as blocks.

A reply is kept as the endpoint sent it, and endpoints differ; this shows any of them
whole, without knowing its form.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

_INDENT = "    "


def readable(body: bytes) -> str:
    """*body* as text: JSON by its paths, anything else as it is."""
    text = body.decode(errors="replace")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    try:
        return "\n".join(_lines("", value))
    except RecursionError:
        return text


def _lines(path: str, value: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON
    match value:
        case dict() if value:
            for key, inner in value.items():
                yield from _lines(f"{path}.{key}" if path else str(key), inner)
        case list() if value:
            for number, inner in enumerate(value):
                yield from _lines(f"{path}[{number}]", inner)
        case str() if "\n" in value:
            yield f"{path}:"
            yield from (f"{_INDENT}{line}" for line in value.split("\n"))
        case str():
            yield f"{path}: {value}"
        case _:
            yield f"{path}: {json.dumps(value)}"
