"""What every decoder does with bytes that somebody else wrote."""

from __future__ import annotations

import json
import re
from contextlib import suppress
from typing import Final, TypeVar

import msgspec

from runner.reply import Usage

_T = TypeVar("_T")

MOST_TOKENS: Final = 10**9
"""More than any call has; the sum of many still fits a database's integer."""

UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What bytes that are no JSON of ours raise; the last: brackets in brackets in ..."""

_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")


def read_body(decoder: msgspec.json.Decoder[_T], body: bytes) -> _T:
    """What *decoder* makes of *body*; raises one of `UNREADABLE`.

    Half a surrogate pair, as a careless JSON writer leaves it where an emoji was cut in
    two, becomes a question mark: it is no reason to lose what was paid for.
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


def usage_of(
    tokens_in: int, tokens_out: int = 0, cached: int = 0, cache_write: int = 0
) -> Usage | None:
    """The tokens of a call; None for counts that can be none."""
    tokens = (tokens_in, tokens_out, cached, cache_write)
    if min(tokens) < 0 or max(tokens) > MOST_TOKENS:
        return None
    return Usage(
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        tokens_cached=cached,
        tokens_cache_write=cache_write,
    )
