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
from tui.sources.item_text import item_text, marked


class TextKind(enum.Enum):
    """The texts of an attempt."""

    PROMPT = "prompt"
    REPLY = "reply"
    PARSED = "parsed"
    ITEM = "item"  #: the item's text in the prompt, with the reply's quotes


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
    if kind is TextKind.ITEM:
        return _item(conn, attempt)
    is_prompt = kind is TextKind.PROMPT
    seq = attempt.started_seq if is_prompt else attempt.ended_seq
    body = None if seq is None else payload(conn, seq)
    if body is None:
        return NO_TEXT
    if is_prompt:
        return _prompt(conn, body, attempt)
    return (_reply if kind is TextKind.REPLY else _parsed)(body, attempt, sign)


def failure_of(attempt: AttemptRow) -> str | None:
    """Return the error of an attempt, or why its reply was rejected; None: neither."""
    match attempt.outcome:
        case AttemptAnswered(reask=str() as reason):
            return reason
        case AttemptFailed(error=error):
            return error
        case _:
            return attempt.unparsed


def complaint(attempt: AttemptRow) -> str:
    """Return what was wrong with a reply, from its events; empty: nothing."""
    match attempt.outcome:
        case AttemptAnswered(reask=str() as reason):
            problem = f"asked again: {reason}"
        case AttemptFailed(error=error, message=message):
            return f"{error}: {message}"
        case _ if attempt.unparsed is not None:
            problem = f"unparsed: {attempt.unparsed}"
        case _:
            return ""
    return f"{problem} ({attempt.fault})" if attempt.fault else problem


_AROUND = "the rest of the response"
"""Heading of what the endpoint sent beside the model's text."""


def _reply(body: bytes, attempt: AttemptRow, sign: str) -> AttemptText:
    """Return a reply: what the model wrote, then everything around it."""
    about = complaint(attempt)
    text, words = readable(body), reply_text(body)
    content = words.text
    position = (
        _locate_fault(content, attempt.fault, find_json(content)) if about else None
    )
    if position is not None:
        at, reason = position
        content = f"{content[:at]}{sign}[{reason}]{sign}{content[at:]}"
    if not words.path:  # no JSON, or without any text
        displayed = None if position is None else content
        return AttemptText(text=text, about=about, display_text=displayed)
    rest = [_AROUND, words.around] if words.around else []
    displayed = "\n".join([content, *([""] if rest else []), *rest])
    return AttemptText(text=text, about=about, display_text=displayed)


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
    return AttemptText(
        text=_request_text(_whole(conn, request)), about=_parameters(request, attempt)
    )


def _item(conn: sqlite3.Connection, attempt: AttemptRow) -> AttemptText:
    """Return the item's text with what the reply took from it."""
    skeleton = (
        None if attempt.started_seq is None else payload(conn, attempt.started_seq)
    )
    try:
        request = None if skeleton is None else json.loads(skeleton)
    except ValueError:
        request = None
    text = "" if request is None else item_text(_whole(conn, request))
    if not text:
        return NO_TEXT
    body = None if attempt.ended_seq is None else payload(conn, attempt.ended_seq)
    embedded = None if body is None else find_json(reply_text(body).text)
    passages = marked(text, None if embedded is None else embedded.value)
    return AttemptText(text=text, about=passages.about, display_text=passages.text)


def _whole(conn: sqlite3.Connection, request: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return a request with texts in place of their hashes."""
    hashes = {bytes.fromhex(text) for text in _hashes(request)}
    texts = {
        sha256.hex(): part_text(sha256, data)
        for sha256, data in parts(conn, hashes).items()
    }
    return _filled(request, texts)


_INDENT = "    "


def _request_text(request: Any) -> str:  # noqa: ANN401 - any JSON
    """Return a request for people: its messages, its schema, then everything else."""
    if not isinstance(request, dict):
        return readable(json.dumps(request).encode())
    rest = dict(request)
    lines: list[str] = []
    messages, schema = rest.get("messages"), rest.get("schema")
    if isinstance(messages, list) and all(map(_is_message, messages)):
        del rest["messages"]
        for message in messages:
            lines += [message["role"], *_indented("".join(message["parts"])), ""]
    if isinstance(schema, dict) and isinstance(schema.get("sha256"), str):
        del rest["schema"]
        heading = f"schema {schema.get('name')}"
        lines += [heading, *_indented(_pretty(schema["sha256"])), ""]
    if rest:
        others = readable(json.dumps(rest).encode())
        lines += ["parameters", *_indented(others)] if lines else [others]
    return "\n".join(lines)


def _is_message(message: Any) -> bool:  # noqa: ANN401 - any JSON
    match message:
        case {"role": str(), "parts": [*texts]} if len(message) == 2:  # noqa: PLR2004
            return all(isinstance(text, str) for text in texts)
    return False


def _indented(text: str) -> list[str]:
    return [f"{_INDENT}{line}" for line in text.split("\n")]


def _pretty(schema: str) -> str:
    """Return a schema with a line for each of its parts; other texts unchanged."""
    try:
        return json.dumps(json.loads(schema), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return schema


def body_text(conn: sqlite3.Connection, seq: int, *, is_request: bool) -> str:
    """Return the readable payload of an event; empty if it has none."""
    body = payload(conn, seq)
    if body is None:
        return ""
    try:
        if is_request:
            return _request_text(_whole(conn, json.loads(body)))
        return readable(body)
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
