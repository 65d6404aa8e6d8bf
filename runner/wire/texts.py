"""A text in the two shapes it is sent and stored in, made once for long ones."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import Final, NamedTuple

import msgspec

from store.events import Blob

CACHED_PARTS: Final = 128
"""Message parts kept encoded. Papers come first in a prompt and are asked about in a
row, so this covers far more papers than calls in flight; at 60 KB each it stays below
25 MB."""


class EncodedPart(NamedTuple):
    """A message part as it is sent and as it is stored."""

    json: bytes  #: its characters escaped for JSON, without the quotes
    blob: Blob


@lru_cache(maxsize=CACHED_PARTS)
def encoded_part(text: str) -> EncodedPart:
    """A message part in both shapes."""
    return EncodedPart(escaped(text), blob(text))


def blob(text: str) -> Blob:
    """*text* as the log keeps it, once by its hash."""
    data = text.encode(errors="replace")
    return Blob(sha256=hashlib.sha256(data).digest(), data=data)


def escaped(text: str) -> bytes:
    """*text* escaped for JSON, without the quotes."""
    try:
        return msgspec.json.encode(text)[1:-1]
    except UnicodeEncodeError:
        # Half a surrogate pair, as a careless JSON writer leaves it, has no UTF-8.
        return msgspec.json.encode(text.encode(errors="replace").decode())[1:-1]


def quoted(text: str) -> msgspec.Raw:
    """*text* as a JSON string."""
    return msgspec.Raw(b'"%s"' % escaped(text))
