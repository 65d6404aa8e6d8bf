"""Renders JSON for people: as paths, as a tree, found in prose.

A reply is kept as the endpoint sent it, and endpoints differ; this shows any of them
whole, without knowing its form.

What a job makes of a reply is the job's business and stands in the log. This shows a
person what is there: the object in a text that goes furthest and, where it breaks off,
the place and all that stood before it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias

_BLOCK_INDENT = "    "


def readable(body: bytes) -> str:
    """*body* as text: JSON by its paths, anything else as it is."""
    text = body.decode(errors="replace")
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    try:
        return "\n".join(_path_lines("", value))
    except RecursionError:
        return text


def _path_lines(path: str, value: Any) -> Iterator[str]:  # noqa: ANN401 - any JSON
    match value:
        case dict() if value:
            for key, inner in value.items():
                yield from _path_lines(f"{path}.{key}" if path else str(key), inner)
        case list() if value:
            for number, inner in enumerate(value):
                yield from _path_lines(f"{path}[{number}]", inner)
        case str() if "\n" in value:
            yield f"{path}:"
            yield from (f"{_BLOCK_INDENT}{line}" for line in value.split("\n"))
        case str():
            yield f"{path}: {value}"
        case _:
            yield f"{path}: {json.dumps(value)}"


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
    location, _, message = fault.partition(": ")
    fault_path = _deepest(value, location.split(".")) if message else None
    lines = []
    for path, line in islice(_lines((), value), MOST):
        is_wrong = fault_path and path == fault_path
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
class EmbeddedJson:
    """The JSON of a text."""

    value: Any
    broken_at: int | None = None  #: index in the text; None: it is whole
    reason: str = ""  #: why it breaks off there, in a parser's words


def find_json(text: str) -> EmbeddedJson | None:
    """The JSON in *text* that goes furthest, an object if there is one.

    >>> find_json('As asked [1]: {"a": [1, 2').value
    {'a': [1]}
    """
    text = text[:_LONGEST]
    candidates: list[tuple[bool, int, EmbeddedJson]] = []
    end = 0
    for _ in range(_STARTS):
        match = _OPENER.search(text, end)
        if match is None:
            break
        begin, is_object = match.start(), match[0] == "{"
        try:
            value, end = _DECODER.raw_decode(text, begin)
            candidates.append((is_object, end - begin, EmbeddedJson(value=value)))
        except json.JSONDecodeError as error:
            end = begin + 1
            broken = EmbeddedJson(
                value=_as_far(text[begin : error.pos]),
                broken_at=error.pos,
                reason=error.msg,
            )
            candidates.append((is_object, error.pos - begin, broken))
        except (ValueError, RecursionError):
            break  # a number without end, or levels without end
    # of two that go as far the first
    best = max(candidates, key=lambda candidate: candidate[:2], default=None)
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


Path: TypeAlias = tuple[str | int, ...]

#: Names under which endpoints put the model's words; other texts are longer at times.
_NAMES = ("content", "text", "output_text")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyText:
    """A reply and, within it, the model's own words."""

    reply: Any  #: JSON; of a reply that is none: its text
    path: Path
    text: str

    def marked(self, at: int, mark: str) -> Any:  # noqa: ANN401 - any JSON
        """The reply with *mark* put into the words before character *at*."""
        return _put(self.reply, self.path, self.text[:at] + mark + self.text[at:])


def reply_text(body: bytes) -> ReplyText:
    """The words in a reply: the longest text that is called one, else the longest."""
    text = body.decode(errors="replace")
    try:
        reply = json.loads(text)
        texts = list(_texts((), reply))
    except (ValueError, RecursionError):
        return ReplyText(reply=text, path=(), text=text)
    named_texts = [pair for pair in texts if set(_NAMES).intersection(pair[0][-1:])]
    path, words = max(
        named_texts or texts, key=lambda pair: len(pair[1]), default=((), "")
    )
    return ReplyText(reply=reply, path=path, text=words)


def _texts(path: Path, value: Any) -> Iterator[tuple[Path, str]]:  # noqa: ANN401 - any JSON
    match value:
        case dict():
            for key, inner in value.items():
                yield from _texts((*path, key), inner)
        case list():
            for number, inner in enumerate(value):
                yield from _texts((*path, number), inner)
        case str():
            yield path, value
        case _:
            pass


def _put(value: Any, path: Path, text: str) -> Any:  # noqa: ANN401 - any JSON
    if not path:
        return text
    step, *rest = path
    if isinstance(value, dict):
        return {
            key: _put(inner, tuple(rest), text) if key == step else inner
            for key, inner in value.items()
        }
    return [
        _put(inner, tuple(rest), text) if number == step else inner
        for number, inner in enumerate(value)
    ]
