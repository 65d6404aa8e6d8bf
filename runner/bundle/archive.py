"""The zip archive that a bundle is: written with nothing of the moment in it.

Its comment, the last bytes of the file, is a seal: SHA-256 of all before it. So a byte
that no checksum of zip covers, in a header or between two members, is not changed
unseen either.
"""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Final
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile, ZipInfo

PIECE: Final = 1 << 20
"""Bytes read at a time."""

RATIO: Final = 100
"""Most bytes that one byte of a bundle may stand for. A log comes to 8, text to 4;
deflate could make a thousand, which is what archives that fill a disk are made with."""

MODE: Final = stat.S_IFREG | 0o644
METHODS: Final = frozenset({ZIP_DEFLATED, ZIP_STORED})

_SAID = b"siftlog bundle sha256 "
_HEX = 2 * hashlib.sha256().digest_size
SEAL: Final = len(_SAID) + _HEX
"""Bytes of the seal."""


def write(
    path: Path, members: Iterable[tuple[str, int, Iterable[bytes]]], *, method: int
) -> str:
    """Write a sealed archive of *members*, in their order, in flat memory.

    Args:
        path: of the new file.
        members: name, size in bytes, and content in pieces.
        method: of compression, one of `METHODS`.

    Returns:
        Hex SHA-256 of the whole file.
    """
    with ZipFile(path, "w") as archive:
        for name, size, pieces in members:
            # the earliest time that zip can tell, the same owner and mode everywhere
            info = ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            info.create_system = 3  # Unix: what the attributes below are read by
            info.external_attr = MODE << 16
            info.compress_type = method
            info.file_size = size
            with archive.open(info, "w") as file:
                for piece in pieces:
                    file.write(piece)
        archive.comment = _SAID + b"0" * _HEX
    with path.open("r+b") as file:
        digest = _hashed(file, path.stat().st_size - SEAL)
        seal = _SAID + digest.hexdigest().encode()
        file.write(seal)
        file.flush()
        os.fsync(file.fileno())
    digest.update(seal)
    return digest.hexdigest()


def has_seal(path: Path) -> bool:
    """Whether a file ends as a bundle does."""
    return _seal(path).startswith(_SAID)


def is_sealed(path: Path) -> bool:
    """Whether every byte of a file is as it was when the file was sealed."""
    with path.open("rb") as file:
        digest = _hashed(file, path.stat().st_size - SEAL)
    return _seal(path) == _SAID + digest.hexdigest().encode()


def _seal(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - SEAL))
        return file.read()


def _hashed(file: BinaryIO, size: int) -> hashlib._Hash:
    """The hash of the first *size* bytes; the file stands after them."""
    digest = hashlib.sha256()
    left = size
    while left > 0 and (piece := file.read(min(PIECE, left))):
        digest.update(piece)
        left -= len(piece)
    return digest


def pieces(file: BinaryIO) -> Iterator[bytes]:
    """A file's content."""
    while piece := file.read(PIECE):
        yield piece
