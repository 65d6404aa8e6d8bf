"""JSON from outside, as careless and hostile writers send it.

A reply that was paid for is lost only where nothing can be read in it, and none of them
may end a run.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Final, TypeVar

import msgspec

from runner.reply import Usage

T = TypeVar("T")

UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What bytes that are no JSON of ours raise; the last: brackets in brackets in ..."""

MOST_TOKENS: Final = 10**9
"""More than any call has; the sum of many still fits a database's integer."""

_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")


def read(decoder: msgspec.json.Decoder[T], body: bytes) -> T:
    """The value in *body*.

    Half a surrogate pair, as a JSON writer leaves it that cut an emoji in two, becomes
    a question mark.

    Raises:
        msgspec.DecodeError: It is not JSON of that type; or another of `UNREADABLE`.
    """
    try:
        return decoder.decode(body)
    except msgspec.DecodeError:
        if _SURROGATE.search(body) is None:
            raise
    with suppress(ValueError):
        content = json.dumps(json.loads(body), ensure_ascii=False)
        body = content.encode(errors="replace")
    return decoder.decode(body)


def believed(usage: Usage) -> Usage | None:
    """*usage*; None where its counts can be none of a single call."""
    counts = (
        usage.tokens_in,
        usage.tokens_out,
        usage.tokens_cached,
        usage.tokens_cache_write,
    )
    return usage if min(counts) >= 0 and max(counts) <= MOST_TOKENS else None
