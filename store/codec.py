"""Events, payloads and blobs as they stand in the log, and back.

An event is stored under its kind and version as JSON of its fields. Bodies are kept
byte for byte as they were received; `Encoding` says how a row holds them.
"""

from __future__ import annotations

import enum

import msgspec
import zstandard

from store.events import KINDS, Event, Unknown
from store.upcast import UPCASTERS, upcast

#: Shorter bodies gain nothing from zstd; level 3 halves 8 KB replies in 40 us.
COMPRESS_FROM = 512
ZSTD_LEVEL = 3


class Encoding(enum.IntEnum):
    """How a body or blob is stored; the numbers are stored with it."""

    NONE = 0  #: there is no body
    AS_RECEIVED = 1
    ZSTD = 2


_ENCODER = msgspec.json.Encoder()
_DECODERS: dict[tuple[str, int], msgspec.json.Decoder[Event]] = {
    (kind, event.VERSION): msgspec.json.Decoder(event) for kind, event in KINDS.items()
}


def facts_of(event: Event) -> bytes:
    """An event's fields as the log stores them."""
    return _ENCODER.encode(event)


def event_of(kind: str, version: int, facts: bytes) -> Event | Unknown:
    """The event in a row: brought up to date if old, `Unknown` if too new.

    Raises:
        msgspec.DecodeError: the facts are not those of the kind.
    """
    decoder = _DECODERS.get((kind, version))
    if decoder is not None:
        return decoder.decode(facts)
    known = KINDS.get(kind)
    if known is None or version > known.VERSION:
        return Unknown(kind=kind, version=version, facts=facts)
    fields = upcast(kind, version, known.VERSION, msgspec.json.decode(facts), UPCASTERS)
    return msgspec.convert(fields, known)


class Packer:
    """Compresses bodies and blobs; belongs to one thread."""

    def __init__(self) -> None:
        self._zstd = zstandard.ZstdCompressor(level=ZSTD_LEVEL)

    def pack(self, data: bytes) -> tuple[Encoding, bytes]:
        """How *data* is to be stored, and the bytes to store."""
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
        # a fresh context per call is what makes the shared object safe in threads
        raw = _UNPACKER.decompress(data, max_output_size=length)
    except (zstandard.ZstdError, TypeError, OverflowError) as error:
        # a damaged record may hold values of any type
        raise ValueError(f"body cannot be decompressed: {error}") from error
    if len(raw) != length:
        raise ValueError(f"body has {len(raw)} bytes where the row says {length}")
    return raw
