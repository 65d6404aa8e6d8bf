"""Tokens of a call at worst, before anybody has counted them; pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, assert_never

from runner.request import ChatRequest, EmbedRequest, Request, RerankRequest

SHORTEST_TOKEN: Final = 2
"""Bytes a token of a whole prompt, at least: money is reserved by it. Papers were found
down to 2.83 (34 papers, two vocabularies), so thirds would not be a bound."""

USUAL_TOKEN: Final = 3
"""What a minute's share is reserved by; it is settled soon, and may be a bit short."""

MESSAGE_TOKENS: Final = 8
"""Around a message: OpenAI counts 3, and 3 for the reply that is to follow. Around a
text to embed or rank it is 2 or 3."""


def worst_prompt(request: Request, shortest: int = SHORTEST_TOKEN) -> int:
    """Tokens of what is sent, at most.

    Args:
        request: what is asked.
        shortest: bytes a token, at least, over the whole of it.
    """
    texts, pieces = texts_read(request)
    size = sum(
        len(t) if t.isascii() else len(t.encode(errors="replace")) for t in texts
    )
    return size // shortest + MESSAGE_TOKENS * pieces + 1


def worst_output(request: Request) -> int:
    """Tokens of the reply, at most; only a chat's are counted."""
    return request.limit if isinstance(request, ChatRequest) else 0


def texts_read(request: Request) -> tuple[Sequence[str], int]:
    """The texts that a model reads, and how many pieces they make."""
    match request:
        case ChatRequest():
            texts = [part.text for each in request.messages for part in each.parts]
            if request.schema is not None:
                # providers read a schema as part of the prompt
                texts.append(request.schema.json)
            return texts, len(request.messages)
        case EmbedRequest():
            return request.texts, len(request.texts)
        case RerankRequest():
            # most rerankers read, and count, the query again with each document
            texts = [request.query + document for document in request.documents]
            return texts, len(request.documents)
        case _:
            assert_never(request)
