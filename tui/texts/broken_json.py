"""JSON in the words of a model: found in prose, read as far as it goes, if need be.

What a job makes of a reply is the job's business and stands in the log. This shows a
person what is there: the object in a text that goes furthest and, where it breaks off,
the place and all that stood before it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

_STARTS = 40
"""Brackets tried as the beginning: prose cites [1], [2] before the answer comes."""
_LONGEST = 1_000_000
"""Characters looked at."""
_DECODER = json.JSONDecoder()
_OPENER = re.compile(r"[{\[]")
#: What makes the outline of JSON; a quote alone is a text that is not closed.
_OUTLINE = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],"]', re.DOTALL)
_CLOSERS = {"{": "}", "[": "]"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The JSON of a text."""

    value: Any
    broken_at: int | None = None  #: index in the text; None: it is whole
    why: str = ""  #: why it breaks off there, in a parser's words


def find_json(text: str) -> Found | None:
    """The JSON in *text* that goes furthest, an object if there is one.

    >>> find_json('As asked [1]: {"a": [1, 2').value
    {'a': [1]}
    """
    text = text[:_LONGEST]
    found: list[tuple[bool, int, Found]] = []
    end = 0
    for _ in range(_STARTS):
        match = _OPENER.search(text, end)
        if match is None:
            break
        begin, is_object = match.start(), match[0] == "{"
        try:
            value, end = _DECODER.raw_decode(text, begin)
            found.append((is_object, end - begin, Found(value=value)))
        except json.JSONDecodeError as error:
            end = begin + 1
            broken = Found(
                value=_as_far(text[begin : error.pos]),
                broken_at=error.pos,
                why=error.msg,
            )
            found.append((is_object, error.pos - begin, broken))
        except (ValueError, RecursionError):
            break  # a number without end, or levels without end
    # of two that go as far the first
    best = max(found, key=lambda each: each[:2], default=None)
    return best and best[2]


def _as_far(begun: str) -> Any:  # noqa: ANN401 - any JSON
    """What JSON that breaks off has said in full: its last, half-said item goes."""
    opened: list[str] = []
    end, closers = 0, ""
    for token in _OUTLINE.finditer(begun):
        sign = token[0]
        if sign == '"':
            break
        if sign in "{[":
            opened.append(_CLOSERS[sign])
        elif sign in "}]":
            if not opened or opened.pop() != sign:
                break
        elif sign != ",":
            continue
        end = token.start() if sign == "," else token.end()
        closers = "".join(reversed(opened))
    try:
        return json.loads(begun[:end] + closers)
    except (ValueError, RecursionError):
        return None
