"""Builds chat requests, with delimited data and schemas, and measures their length.

A block of data stands between delimiters that no text can close itself: a name and the
first digits of a hash, of what it encloses or of a seed such as a task's key. Where the
text has those digits they are hashed again, so instructions in it stay data.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Literal, Protocol

from runner.messages import ChatRequest, Message, Request, Schema
from runner.money.tokens import (
    USUAL_MESSAGE_TOKENS,
    image_tokens,
    images_read,
    prompt_tokens,
    texts_read,
)


class ChatSettings(Protocol):
    """Settings of how a model is asked."""

    @property
    def max_output_tokens(self) -> int:
        """The longest reply, in tokens."""

    @property
    def temperature(self) -> float | None:
        """Sampling temperature; None: the endpoint's default."""

    @property
    def structured(self) -> Literal["auto", "off"]:
        """Whether a schema is sent along."""


def chat_request(
    settings: ChatSettings,
    messages: tuple[Message, ...],
    schema: Schema,
    *,
    max_tokens: int | None = None,
) -> ChatRequest:
    """A prompt as a request.

    Args:
        settings: of the run.
        messages: the prompt.
        schema: of the reply.
        max_tokens: of the reply; None: as many as the settings allow.
    """
    return ChatRequest(
        messages=messages,
        max_tokens=settings.max_output_tokens if max_tokens is None else max_tokens,
        temperature=settings.temperature,
        schema=schema if settings.structured == "auto" else None,
    )


def json_schema(name: str, node: Mapping[str, Any]) -> Schema:
    """The schema of a reply, as compact JSON."""
    return Schema(name=name, json=json.dumps(node, separators=(",", ":")))


def closed_object(properties: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of an object with all of *properties*, and no others."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


DELIMITER_LENGTH = 8

_OPENING = re.compile(rf"<([a-z]+)-([0-9a-f]{{{DELIMITER_LENGTH}}})>\n")


def delimiter(
    text: str, length: int = DELIMITER_LENGTH, *, seed: str | None = None
) -> str:
    """Digits that *text* does not have.

    Args:
        text: what they are to enclose.
        length: how many.
        seed: what they are derived from; None: the text itself.
    """
    digest = text if seed is None else seed
    while True:
        # a lone surrogate, which JSON can hold, has no other bytes
        packed = digest.encode("utf-8", "surrogatepass")
        digest = hashlib.sha256(packed).hexdigest()
        if digest[:length] not in text:
            return digest[:length]


def data_block(name: str, text: str, *, seed: str | None = None) -> str:
    """*text* between its marks."""
    boundary = delimiter(text, seed=seed)
    return f"<{name}-{boundary}>\n{text}\n</{name}-{boundary}>\n\n"


def read_blocks(text: str) -> Iterator[tuple[str, str]]:
    """Name and content of each block of a prompt."""
    for _, name, content in _split_blocks(text):
        if name:
            yield name, content


def text_outside_blocks(text: str) -> str:
    """Return the text of a prompt outside its blocks."""
    return "".join(before for before, _, _ in _split_blocks(text))


def _split_blocks(text: str) -> Iterator[tuple[str, str, str]]:
    """The text before each block, its name and content; the rest has no name."""
    at = 0
    while opening := _OPENING.search(text, at):
        name, boundary = opening.groups()
        closing = f"\n</{name}-{boundary}>"
        end = text.find(closing, opening.end())
        if end < 0:
            break
        yield text[at : opening.start()], name, text[opening.end() : end]
        at = end + len(closing)
    yield text[at:], "", ""


def most_tokens(request: Request) -> int:
    """The tokens of a request if each were a character: it cannot have more."""
    texts, pieces = texts_read(request)
    most = sum(map(len, texts)) + USUAL_MESSAGE_TOKENS * pieces
    return most + sum(map(image_tokens, images_read(request)))


def is_longer_than(request: Request, tokens: int) -> bool:
    """Whether a request has more tokens, by estimate."""
    # most prompts need no counting
    return most_tokens(request) > tokens and prompt_tokens(request) > tokens
