"""Unpacks the compressed body of a reply, piece by piece and never much at a time."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from typing import Final

COMPRESSIONS: Final = "gzip, deflate"
"""Accepted compressions. Nested ones, or zstd, can expand a few kilobytes to gigabytes
before they are counted."""

KNOWN: Final = frozenset(COMPRESSIONS.split(", "))

PLAIN: Final = frozenset({"", "identity"})
"""Names of no compression at all."""

PIECE_BYTES: Final = 1 << 16
"""Size of an unpacked piece at most."""

_GZIP: Final = 16 + zlib.MAX_WBITS
_RAW: Final = -zlib.MAX_WBITS
_HEADER_BYTES: Final = 2


def _is_header(data: bytes) -> bool:
    """Return whether *data* begins with the header of zlib (RFC 1950)."""
    return data[0] & 15 == zlib.DEFLATED and (data[0] << 8 | data[1]) % 31 == 0


class DamagedBody(ValueError):
    """A body is not compressed as its header says, or ends early."""


class Unpacker:
    """Unpacks one body.

    Args:
        compression: `gzip` or `deflate`, as in the header. Some servers send `deflate`
            without the header of zlib.
    """

    def __init__(self, compression: str) -> None:
        is_deflate = compression == "deflate"
        self._unpacked = zlib.decompressobj(zlib.MAX_WBITS if is_deflate else _GZIP)
        self._is_begun = False
        self._undecided = b"" if is_deflate else None
        """The beginning of a body that may have no header; None: it is decided."""

    def pieces(self, packed: bytes) -> Iterator[bytes]:
        """Yield what *packed*, the next part of the body, unpacks to.

        What follows the end of the compressed data is ignored.

        Raises:
            DamagedBody: It cannot be unpacked.
        """
        self._is_begun = self._is_begun or bool(packed)
        if self._undecided is not None:
            packed = self._undecided + packed
            self._undecided = packed if len(packed) < _HEADER_BYTES else None
            if self._undecided is not None:
                return
            if not _is_header(packed):
                self._unpacked = zlib.decompressobj(_RAW)
        while packed and not self._unpacked.eof:
            try:
                yield self._unpacked.decompress(packed, PIECE_BYTES)
            except zlib.error as error:
                raise DamagedBody(str(error)) from None
            packed = self._unpacked.unconsumed_tail

    def end(self) -> None:
        """Check that nothing is missing.

        Raises:
            DamagedBody: The body ended early.
        """
        if self._is_begun and not self._unpacked.eof:
            raise DamagedBody("the data ends early")


class Unpacked:
    """The pieces of a body that arrives compressed."""

    def __init__(self, packed: AsyncIterable[bytes], compression: str) -> None:
        """Unpack *packed*, which *compression* names as `Unpacker` does."""
        self._packed = aiter(packed)
        self._unpacker = Unpacker(compression)
        self._ready: Iterator[bytes] = iter(())

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        """Return the next piece.

        Raises:
            DamagedBody: It cannot be unpacked, or ended early.
        """
        while True:
            for piece in self._ready:
                return piece
            try:
                packed = await anext(self._packed)
            except StopAsyncIteration:
                self._unpacker.end()
                raise
            self._ready = self._unpacker.pieces(packed)
