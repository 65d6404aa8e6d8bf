"""Renders JSON for people: as paths, as a tree, found in prose.

Replies are stored as received, and endpoints differ; this shows any of them in full,
without knowing its form.

The job's parser result is in the log. This shows the raw content: the longest JSON
object in a text and, if it breaks off, the position and everything before it.
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
    """Return *body* as text: JSON by its paths, anything else unchanged."""
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
"""Maximum lines of a tree."""
_INDENT = "  "
_DEEPEST = 200


def tree(value: Any, *, fault: str = "", sign: str = "✗") -> str:  # noqa: ANN401 - any JSON
    """Render *value* by its fields, one per line.

    Args:
        value: JSON.
        fault: an error as `path: message` with a dotted path; it is shown beside that
            field, or beside the parent of a missing one.
        sign: precedes the message.

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
    """Return the longest prefix of a path that exists in *value*."""
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
    """Yield the lines below a value, each with its path; none for a scalar."""
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
"""Maximum brackets tried as a start: prose cites [1], [2] before the answer."""
_LONGEST = 1_000_000
"""Maximum characters searched."""
_DECODER = json.JSONDecoder()
_OPENER = re.compile(r"[{\[]")
#: Structural tokens of JSON; a single quote is an unclosed string.
_OUTLINE = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],"]', re.DOTALL)
_CLOSERS = {"{": "}", "[": "]"}


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedJson:
    """JSON found in a text."""

    value: Any
    broken_at: int | None = None  #: index in the text; None: complete
    reason: str = ""  #: the parser's error message


def find_json(text: str) -> EmbeddedJson | None:
    """Return the longest JSON value in *text*, preferably an object.

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
            break  # a huge number, or too many levels
    # the first of equally long ones
    best = max(candidates, key=lambda candidate: candidate[:2], default=None)
    return best and best[2]


def _as_far(begun: str) -> Any:  # noqa: ANN401 - any JSON
    """Parse JSON that breaks off, without its incomplete last item."""
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

#: Names of fields with the model's text; other texts may be longer.
_NAMES = ("content", "text", "output_text")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplyText:
    """A reply and the model's text in it."""

    reply: Any  #: JSON, or the text of another reply
    path: Path
    text: str

    @property
    def around(self) -> str:
        """Return the rest of the document in readable form; empty if there is none."""
        if not self.path or (len(self.path) == 1 and len(self.reply) == 1):
            return ""
        return readable(json.dumps(_put(self.reply, self.path, "…")).encode())


def reply_text(body: bytes) -> ReplyText:
    """Find the model's text in a reply: by field name, else the longest."""
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
