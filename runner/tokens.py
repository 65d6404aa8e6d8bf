"""Tokens of a call before anybody has counted them: at worst, and most likely; pure.

No model's tokenizer is loaded. Likely is: a run of letters is cut every seven, one of
digits every three, one of other marks every two, and a letter that is not Latin stands
alone. Measured against cl100k and o200k, the tokenizers that most of litellm's price
table implies: 34 papers as markdown are 0.5 % short in sum, and between -3 and +2 %
each; 400 abstracts -0.4 and +2.5 % in sum, -16 to +29 % each; models' short answers
8.5 % long. Bytes by four have 22 % too few tokens for the papers, 11 % too many for the
abstracts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Final, TypeAlias, assert_never

from runner.request import ChatRequest, EmbedRequest, Request, RerankRequest

CountTokens: TypeAlias = Callable[[str], int]
"""Tokens of a text."""

BYTES_PER_TOKEN: Final = 3
"""A token is seldom shorter."""

MESSAGE_TOKENS: Final = 8
"""Around a message: OpenAI counts 3, and 3 for the reply that is to follow. Around a
text to embed or rank it is 2 or 3."""

USUAL_MESSAGE_TOKENS: Final = 4
"""Around a message or text, as a rule."""

CACHED_TEXTS: Final = 128
"""A paper is counted once for all that is asked about it in a row."""

_TOKEN: Final = re.compile(r"[A-Za-z\u00c0-\u024f]{1,7}|\d{1,3}|[^\w\s]{1,2}|[^\W\d]")


def worst_prompt(request: Request) -> int:
    """Tokens of what is sent, at most."""
    texts, pieces = _read(request)
    size = sum(
        len(t) if t.isascii() else len(t.encode(errors="replace")) for t in texts
    )
    return size // BYTES_PER_TOKEN + MESSAGE_TOKENS * pieces + 1


def worst_output(request: Request) -> int:
    """Tokens of the reply, at most; only a chat's are counted."""
    return request.max_tokens if isinstance(request, ChatRequest) else 0


@lru_cache(maxsize=CACHED_TEXTS)
def text_tokens(text: str) -> int:
    """Likely tokens of a text, by its letters, digits and marks."""
    return len(_TOKEN.findall(text))


def prompt_tokens(request: Request, count: CountTokens = text_tokens) -> int:
    """Likely tokens of what is sent."""
    texts, pieces = _read(request)
    return sum(map(count, texts)) + USUAL_MESSAGE_TOKENS * pieces


def _read(request: Request) -> tuple[Sequence[str], int]:
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
