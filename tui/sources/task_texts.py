"""Reads the texts of an attempt: prompt, reply, and parsed result."""

from __future__ import annotations

import enum
import json
import re
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from store.events import AttemptAnswered, AttemptFailed
from store.json_text import (
    EmbeddedJson,
    ReplyText,
    find_json,
    readable,
    reply_text,
    tree,
)
from store.read.tasks import AttemptRow, part_text, parts
from store.tables import payload


class TextKind(enum.Enum):
    """The texts of an attempt."""

    PROMPT = "prompt"
    REPLY = "reply"
    PARSED = "parsed"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptText:
    """A text of an attempt; it may contain anything."""

    text: str  #: unchanged; empty: there is none
    about: str = ""  #: details, in one line
    display_text: str | None = None  #: with a mark at the error; None: unchanged


NO_TEXT = AttemptText(text="")


def read_text(
    conn: sqlite3.Connection, attempt: AttemptRow, kind: TextKind, sign: str
) -> AttemptText:
    """Return one of an attempt's texts in readable form.

    Args:
        conn: a reader.
        attempt: the attempt.
        kind: the kind of text.
        sign: marks the position of an error.
    """
    is_prompt = kind is TextKind.PROMPT
    seq = attempt.started_seq if is_prompt else attempt.ended_seq
    body = None if seq is None else payload(conn, seq)
    if body is None:
        return NO_TEXT
    if is_prompt:
        return _prompt(conn, body, attempt)
    return (_reply if kind is TextKind.REPLY else _parsed)(body, attempt, sign)


def complaint(attempt: AttemptRow) -> str:
    """Return why a reply was refused, from its events; empty if it was not."""
    match attempt.outcome:
        case AttemptAnswered(reask=str() as reason):
            problem = f"refused: {reason}"
        case AttemptFailed(error=error, message=message):
            return f"{error}: {message}"
        case _ if attempt.unparsed is not None:
            problem = f"unparsed: {attempt.unparsed}"
        case _:
            return ""
    return f"{problem} ({attempt.fault})" if attempt.fault else problem


def _reply(body: bytes, attempt: AttemptRow, sign: str) -> AttemptText:
    about = complaint(attempt)
    text = readable(body)
    if not about:
        return AttemptText(text=text)
    words = reply_text(body)
    fault_position = _locate_fault(words.text, attempt.fault, find_json(words.text))
    if fault_position is None:
        return AttemptText(text=text, about=about)
    at, reason = fault_position
    marked = words.marked(at, f"{sign}[{reason}]{sign}")
    is_plain = isinstance(marked, str)
    display_text = marked if is_plain else readable(json.dumps(marked).encode())
    return AttemptText(text=text, about=about, display_text=display_text)


_POSITION = re.compile(r"line (\d+), column (\d+): (.*)", re.DOTALL)


def _locate_fault(
    text: str, fault: str | None, embedded: EmbeddedJson | None
) -> tuple[int, str] | None:
    """Return position and reason of an error, from the log or the JSON."""
    match = _POSITION.fullmatch(fault or "")
    if match is not None:
        lines = text.split("\n")[: int(match[1])]
        at = sum(len(line) + 1 for line in lines[:-1]) + int(match[2]) - 1
        return min(at, len(text)), match[3]
    if embedded is None or embedded.broken_at is None:
        return None
    return embedded.broken_at, embedded.reason


def _parsed(body: bytes, attempt: AttemptRow, sign: str) -> AttemptText:
    words: ReplyText = reply_text(body)
    about = complaint(attempt)
    embedded = find_json(words.text)
    if embedded is None:
        return AttemptText(text="", about=about)
    if embedded.broken_at is not None:
        character = f"{embedded.broken_at + 1:,}"
        breaks = f"JSON breaks off at character {character}: {embedded.reason}"
        about = " · ".join(filter(None, (about, breaks)))
    text = tree(embedded.value)
    display_text = tree(embedded.value, fault=attempt.fault or "", sign=sign)
    return AttemptText(text=text, about=about, display_text=display_text)


def _prompt(
    conn: sqlite3.Connection, skeleton: bytes, attempt: AttemptRow
) -> AttemptText:
    """Return a request with its texts in place of their hashes."""
    try:
        request = json.loads(skeleton)
    except ValueError:
        return AttemptText(text=readable(skeleton))
    return AttemptText(text=_whole(conn, request), about=_parameters(request, attempt))


def _whole(conn: sqlite3.Connection, request: Any) -> str:  # noqa: ANN401 - any JSON
    hashes = {bytes.fromhex(text) for text in _hashes(request)}
    texts = {
        sha256.hex(): part_text(sha256, data)
        for sha256, data in parts(conn, hashes).items()
    }
    return readable(json.dumps(_filled(request, texts)).encode())


def body_text(conn: sqlite3.Connection, seq: int, *, is_request: bool) -> str:
    """Return the readable payload of an event; empty if it has none."""
    body = payload(conn, seq)
    if body is None:
        return ""
    try:
        return _whole(conn, json.loads(body)) if is_request else readable(body)
    except ValueError:
        return readable(body)


def _parameters(request: Any, attempt: AttemptRow) -> str:  # noqa: ANN401 - any JSON
    """Describe a request's parameters and its reply format in a line."""
    if not isinstance(request, dict):
        return ""
    labels = [
        f"{name.replace('_', ' ')} {_number(value)}"
        for name, value in request.items()
        if isinstance(value, int | float | str) and name not in {"model", "query"}
    ]
    schema = request.get("schema")
    if isinstance(schema, dict):
        labels.append(f"schema {schema.get('name')}")
    headers = getattr(attempt.outcome, "headers", None) or {}
    name = headers.get("x-request-id") or headers.get("request-id")
    return " · ".join([*labels, *([f"request {name}"] if name else [])])


def _number(value: float | str) -> str:
    match value:
        case int():
            return f"{value:,}"
        case float():
            return f"{value:g}"
        case _:
            return value


_HEX = 64
"""Length of a SHA-256 in hexadecimal."""


def _hashes(value: Any) -> set[str]:  # noqa: ANN401 - any JSON
    match value:
        case dict():
            return set().union(*map(_hashes, value.values()))
        case list():
            return set().union(*map(_hashes, value))
        case str() if len(value) == _HEX and not value.strip("0123456789abcdef"):
            return {value}
        case _:
            return set()


def _filled(value: Any, texts: Mapping[str, str]) -> Any:  # noqa: ANN401 - any JSON
    match value:
        case dict():
            return {key: _filled(inner, texts) for key, inner in value.items()}
        case list():
            return [_filled(inner, texts) for inner in value]
        case str():
            return texts.get(value, value)
        case _:
            return value
