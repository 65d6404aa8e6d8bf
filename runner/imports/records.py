"""Defines what a reply of another tool is read into, whatever form its file has.

A reader yields one `ForeignReply` for each reply of a file, in file order, and holds no
more than one at a time. What a form carries and a record cannot hold is named in
`dropped`, so that the import can count it.
"""

from __future__ import annotations

import gzip
import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from sys import float_info
from typing import Any, BinaryIO, Final, Literal, TypeVar

import msgspec

from runner.errors import DatasetError
from runner.json_entries import BOM, lines_of
from runner.messages import (
    IMAGE_URI,
    ImagePart,
    Message,
    Part,
    TextPart,
    Usage,
    wellformed,
)
from store.served_by import ServedBy

T = TypeVar("T")

GZIP: Final = b"\x1f\x8b"
"""The first bytes of a compressed file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignReply:
    """A reply that another tool recorded, or the failure of a call."""

    item: str  #: id of the sample; replies to the same prompt have the same
    model: str  #: as the tool names it; "": the file does not say
    messages: tuple[Message, ...] = ()  #: of the prompt; empty: not in the file
    text: str | None = None  #: of the reply; None: the call failed
    error: str = ""  #: what failed, a word
    epoch: int = 1  #: orders the replicates of an item
    finish_reason: str = "stop"  #: as in `runner.messages.Reply`
    usage: Usage | None = None
    served: ServedBy | None = None
    created_s: int | None = None  #: time of the reply, seconds since 1970
    latency_ms: float | None = None
    cost_usd: float | None = None  #: as the tool reports it
    form: str = ""  #: wire form of `body`, a name of `runner.clients.wire`
    body: bytes | None = None  #: the endpoint's reply, byte for byte, if recorded
    target: str | None = None  #: the right answer
    scores: Mapping[str, float] = field(default_factory=dict)
    """Scores of the other tool, by scorer."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Further values of the sample, by dotted name, such as `metadata.pmid`."""
    dropped: tuple[str, ...] = ()  #: what the file has of it and this does not


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignPrompt:
    """A request in a file that has no replies, which are in another file."""

    item: str
    model: str
    messages: tuple[Message, ...]
    dropped: tuple[str, ...] = ()


def item_key(reply: ForeignReply, field: str) -> str:
    """Return the key of a reply's item: a field of its sample; "": the sample's id.

    Raises:
        DatasetError: the sample has no such field.
    """
    if not field:
        return reply.item
    if field not in reply.fields:
        names = ", ".join(sorted(reply.fields)) or "none"
        raise DatasetError(
            f"The sample {reply.item!r} has no field {field!r} (its fields are {names};"
            " name one with --item)."
        )
    return reply.fields[field]


# Files


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading, unpacked if it is gzip, behind a byte order mark.

    Raises:
        DatasetError: it cannot be read, or its compressed data are damaged.
    """
    try:
        with path.open("rb") as plain:
            is_packed = plain.read(len(GZIP)) == GZIP
        with gzip.open(path) if is_packed else path.open("rb") as file:
            if file.read(len(BOM)) != BOM:
                file.seek(0)
            yield file  # type: ignore[misc] # a GzipFile reads like a file
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise DatasetError(
            f"{path.name}: the compressed file is damaged, {error} (copy it again)."
        ) from error
    except OSError as error:
        raise DatasetError(
            f"{path.name}: cannot be read, {error.strerror or error} (name another "
            "file)."
        ) from error


def json_lines(path: Path, kind: type[T]) -> Iterator[tuple[str, T]]:
    """Yield the objects of a file of JSON lines, with their places for errors.

    Raises:
        DatasetError: a line is no such object.
    """
    with opened(path) as file:
        for number, raw in lines_of(file, path.name):
            if raw.strip():
                where = f"{path.name} line {number}"
                yield where, decoded(raw, kind, where)


def decoded(raw: bytes, kind: type[T], where: str) -> T:
    """Decode a JSON value into a type; other fields are ignored.

    NaN and infinities are read, as Python writes them.

    Raises:
        DatasetError: it is not valid, or lacks a field.
    """
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.ValidationError as error:
        raise _unfit(where, error) from error
    except (msgspec.DecodeError, UnicodeDecodeError):
        pass
    try:
        return msgspec.convert(json.loads(raw), type=kind)
    except msgspec.ValidationError as error:
        raise _unfit(where, error) from error
    except (ValueError, RecursionError) as error:
        problem = str(error)
        if isinstance(error, json.JSONDecodeError):
            # the line is in *where*, and that of the value alone would mislead
            problem = f"{error.msg.lower()} at character {error.pos + 1}"
        raise DatasetError(
            f"{where}: not valid JSON, {problem} (export the file again)."
        ) from error


def _unfit(where: str, error: Exception) -> DatasetError:
    sentence = str(error).replace("`", "'")
    return DatasetError(
        f"{where}: {sentence[:1].lower()}{sentence[1:]} (export the file again, or "
        "force another format with --format)."
    )


# Prompts and replies

Content = str | list[Any] | dict[str, Any] | None
"""The content of a message: text, or parts as the endpoints write them."""


class RoleMessage(msgspec.Struct, kw_only=True):
    """A message of a prompt, as most tools write it."""

    role: str
    content: Content = None
    tool_calls: list[Any] | None = None


ROLES: Final[Mapping[str, Literal["system", "user", "assistant"]]] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
}


def messages_from(
    prompt: str | Sequence[RoleMessage], dropped: dict[str, None]
) -> tuple[Message, ...]:
    """Return the messages of a prompt; what they cannot hold is added to *dropped*."""
    if isinstance(prompt, str):
        return (Message(role="user", parts=(TextPart(text=prompt),)),)
    messages = []
    for message in prompt:
        role = ROLES.get(message.role)
        if role is None:
            dropped[f"messages of role {message.role}"] = None
            continue
        if message.tool_calls:
            dropped["tool calls"] = None
        parts = tuple(parts_of(message.content, dropped))
        messages.append(Message(role=role, parts=parts or (TextPart(text=""),)))
    return tuple(messages)


def parts_of(content: Content, dropped: dict[str, None]) -> Iterator[Part]:
    """Yield the texts and PNG images of a message's content."""
    if content is None:
        return
    if isinstance(content, str):
        yield TextPart(text=wellformed(content))
        return
    for part in content if isinstance(content, list) else [content]:
        if isinstance(part, str):
            yield TextPart(text=wellformed(part))
            continue
        kind = str(part.get("type", "")) if isinstance(part, dict) else ""
        if isinstance(part, dict) and isinstance(part.get("text"), str):
            yield TextPart(text=wellformed(part["text"]))
        elif (image := _png(part)) is not None:
            yield image
        else:
            dropped[f"content of type {kind or 'unknown'}"] = None


def _png(part: object) -> ImagePart | None:
    """Return an image of a data URI, wherever the endpoints put it."""
    if not isinstance(part, dict):
        return None
    uri = part.get("image_url", part.get("image"))
    uri = uri.get("url") if isinstance(uri, dict) else uri
    source = part.get("source")
    if isinstance(source, dict) and source.get("media_type") == "image/png":
        uri = f"{IMAGE_URI}{source.get('data')}"
    try:
        return ImagePart.from_uri(uri) if isinstance(uri, str) else None
    except ValueError:
        return None


def text_of(content: Content, dropped: dict[str, None]) -> str:
    """Return the text of a reply's content."""
    return "".join(part.text for part in parts_of(content, dropped))


def item_of(messages: Sequence[Message]) -> str:
    """Return the id of a prompt without one: equal prompts have the same.

    >>> item_of([])
    'prompt-e3b0c44298fc'
    """
    digest = sha256("\0".join(f"{m.role}\0{m.text}" for m in messages).encode())
    return f"prompt-{digest.hexdigest()[:12]}"


FINISH: Final[Mapping[str, str]] = {
    "stop": "stop",
    "end_turn": "stop",
    "stop_sequence": "stop",
    "eos": "stop",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "content_filter": "content_filter",
    "refusal": "refusal",
}
"""Finish reasons of tools and endpoints, by the name that siftlog has for them."""


def finish_of(reason: str | None) -> str:
    """Return siftlog's name of a finish reason; others keep theirs."""
    return FINISH.get(reason or "stop", reason or "stop")


# Values


def seconds_of(time: str | float | None) -> int | None:
    """Return a time as seconds since 1970; None if it is none.

    >>> seconds_of("2026-01-31T09:30:00Z"), seconds_of(1769851800.5), seconds_of("x")
    (1769851800, 1769851800, None)
    """
    if not isinstance(time, str):
        return None if time is None else int(time)
    try:
        read = datetime.fromisoformat(time)
    except ValueError:
        return None
    return int((read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp())


_WORD: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.]{2,59}")


def error_word(message: object) -> str:
    """Return a word for a failure: the first one of its message.

    >>> error_word("RateLimitError('429, slow down')"), error_word(None)
    ('RateLimitError', 'unknown')
    """
    match = _WORD.search(str(message)) if message else None
    return match[0] if match else "unknown"


MOST_FIELDS: Final = 100
"""Further values of a sample that are read, and the length of one: to match items."""
FIELD_CHARS: Final = 300


def flat_fields(values: object, prefix: str) -> dict[str, str]:
    """Return short values of nested objects by dotted name, for `--item`.

    >>> flat_fields({"pmid": 7, "study": {"id": "S1", "text": ["long"]}}, "metadata")
    {'metadata.pmid': '7', 'metadata.study.id': 'S1'}
    """
    fields: dict[str, str] = {}
    waiting = [(prefix, values)]
    while waiting and len(fields) < MOST_FIELDS:
        name, value = waiting.pop(0)
        if isinstance(value, Mapping):
            waiting += [(f"{name}.{key}".lstrip("."), v) for key, v in value.items()]
        elif isinstance(value, str | int | float) and len(str(value)) <= FIELD_CHARS:
            fields[name] = wellformed(str(value))
    return fields


def score_number(value: object) -> float | None:
    """Return a score as a number: true and false count as 1 and 0; None: not one."""
    if isinstance(value, int | float) and abs(value) <= float_info.max:
        return float(value)
    return None
