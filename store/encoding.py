"""Encodes events and bodies for the log's tables, and decodes them.

An event is stored under its kind and version as JSON of its fields. A field that has
its default is left out, and reading fills it in: of the answers in a run, two thirds of
the bytes beside their bodies. So the default of a stored field never changes, nor does
that of a field inside it; `tests/store/test_event_defaults.py` holds all of them. Logs
of earlier versions have every field, and read the same.

Bodies are kept byte for byte as they were received; `Encoding` says how a row holds
them.

A stored row is never rewritten. When a field is renamed, split or given a new meaning,
the event class gets the next `VERSION` and a step is added here that converts the old
fields to the new ones; `tests/replay` keeps a row of every version ever written. An
added field with a default needs neither.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec
import zstandard

from store.events import KINDS, Event, UnknownEvent

Step: TypeAlias = Callable[[dict[str, Any]], dict[str, Any]]
"""Fields of version n -> fields of version n + 1; the input is not modified."""

UPCASTERS: Mapping[tuple[str, int], Step] = {}
"""By kind and the version that a step starts from."""


def upcast(
    kind: str,
    version: int,
    to: int,
    fields: dict[str, Any],
    steps: Mapping[tuple[str, int], Step],
) -> dict[str, Any]:
    """The fields of an old event as version *to* has them.

    Raises:
        KeyError: a step is missing; every version ever released must have one.
    """
    for step in range(version, to):
        fields = steps[kind, step](fields)
    return fields


#: Shorter bodies gain nothing from zstd; level 3 halves 8 KB replies in 40 us.
COMPRESS_FROM = 512
ZSTD_LEVEL = 3


class Encoding(enum.IntEnum):
    """Encoding of a stored body or blob; the number is stored with it."""

    NONE = 0  #: there is no body
    AS_RECEIVED = 1
    ZSTD = 2


_ENCODER = msgspec.json.Encoder()
_DECODERS: dict[tuple[str, int], msgspec.json.Decoder[Event]] = {
    (kind, event.VERSION): msgspec.json.Decoder(event) for kind, event in KINDS.items()
}


def facts_of(event: Event) -> bytes:
    """An event's fields as the log stores them: without those that have a default."""
    return _ENCODER.encode(event)


def is_known(kind: str, version: int) -> bool:
    """Return whether rows of a kind and version can be read as events."""
    event_class = KINDS.get(kind)
    return event_class is not None and (
        version == event_class.VERSION
        or (
            version < event_class.VERSION
            and all((kind, v) in UPCASTERS for v in range(version, event_class.VERSION))
        )
    )


def event_of(kind: str, version: int, facts: bytes) -> Event | UnknownEvent:
    """The event in a row, brought up to date; `UnknownEvent` if this code cannot.

    Such a row is of a later version, or of an old one without a step; it is kept and
    shown as it was stored, so that its log opens all the same.

    Raises:
        msgspec.DecodeError: the facts are not those of the kind.
    """
    decoder = _DECODERS.get((kind, version))
    if decoder is not None:
        return decoder.decode(facts)
    event_class = KINDS.get(kind)
    if event_class is None or not is_known(kind, version):
        return UnknownEvent(kind=kind, version=version, facts=facts)
    fields = upcast(
        kind, version, event_class.VERSION, msgspec.json.decode(facts), UPCASTERS
    )
    return msgspec.convert(fields, event_class)


class Packer:
    """Compresses bodies and blobs; belongs to one thread."""

    def __init__(self) -> None:
        self._zstd = zstandard.ZstdCompressor(level=ZSTD_LEVEL)

    def pack(self, data: bytes) -> tuple[Encoding, bytes]:
        """Return how *data* is stored, and the bytes to store."""
        if len(data) >= COMPRESS_FROM:
            packed = self._zstd.compress(data)
            if len(packed) < len(data):
                return Encoding.ZSTD, packed
        return Encoding.AS_RECEIVED, data


_UNPACKER = zstandard.ZstdDecompressor()


def unpack(encoding: int, data: bytes, length: int) -> bytes:
    """The bytes as they were received.

    Raises:
        ValueError: they cannot be restored; the row is damaged.
    """
    if encoding == Encoding.AS_RECEIVED:
        return data
    try:
        # a fresh context per call makes the shared object thread-safe
        raw = _UNPACKER.decompress(data, max_output_size=length)
    except (zstandard.ZstdError, TypeError, OverflowError) as error:
        # a damaged record may hold values of any type
        raise ValueError(f"body cannot be decompressed: {error}") from error
    if len(raw) != length:
        raise ValueError(f"body has {len(raw)} bytes where the row says {length}")
    return raw
