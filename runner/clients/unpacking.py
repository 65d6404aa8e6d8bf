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


class DamagedBody(ValueError):
    """A body is not compressed as its header says, or ends early."""


class Unpacker:
    """Unpacks one body.

    Args:
        compression: `gzip` or `deflate`, as in the header. Some servers send `deflate`
            without the header of zlib.
    """

    def __init__(self, compression: str) -> None:
        self._is_deflate = compression == "deflate"
        self._unpacked = zlib.decompressobj(
            zlib.MAX_WBITS if self._is_deflate else _GZIP
        )
        self._is_begun = False

    def pieces(self, packed: bytes) -> Iterator[bytes]:
        """Yield what *packed*, the next part of the body, unpacks to.

        What follows the end of the compressed data is ignored.

        Raises:
            DamagedBody: It cannot be unpacked.
        """
        while packed and not self._unpacked.eof:
            yield self._next(packed)
            packed = self._unpacked.unconsumed_tail
            self._is_begun = True

    def _next(self, packed: bytes) -> bytes:
        try:
            return self._unpacked.decompress(packed, PIECE_BYTES)
        except zlib.error as error:
            if self._is_begun or not self._is_deflate:
                raise DamagedBody(str(error)) from None
        self._unpacked = zlib.decompressobj(_RAW)
        self._is_begun = True
        return self._next(packed)

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
