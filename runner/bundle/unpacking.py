"""Takes an archive apart that anybody may have made; nothing in it is believed.

Everything that its directory says is looked at before a byte is unpacked. Modes, owners
and times are read and never used; a file is made only where there is none, and no more
of it than was announced.
"""

from __future__ import annotations

import hashlib
import stat
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple
from zipfile import BadZipFile, ZipFile, ZipInfo

from runner.bundle import naming
from runner.bundle.archive import METHODS, PIECE, RATIO
from runner.bundle.manifest import INPUTS, LOG, NAME, Manifest, scorecard_of
from runner.errors import RunnerError
from store.verify import LogFault

MOST_MEMBERS: Final = 1_000_000
LARGEST_MANIFEST: Final = 256 << 20
"""Bytes; a million members take some 200 MB."""

_ENCRYPTED = 0x1

_LENGTHS = struct.Struct("<26x2H")
"""Of the name and what zip calls extra, at the end of a member's header."""

_DAMAGE = (
    BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,  # a method or version of zip that is not known
    RuntimeError,  # it is encrypted, in one of its two headers
    ValueError,
    OverflowError,
    struct.error,
    IndexError,
)
"""What `zipfile` raises where bytes are not what it takes them for."""


class Refused(Exception):
    """An archive that is not unpacked; carries why."""

    def __init__(self, where: str, message: str) -> None:
        super().__init__(message)
        self.fault = LogFault(what="archive", where=where, message=message)


class Found(NamedTuple):
    """A member as it came out."""

    size: int
    sha256: str


@contextmanager
def opened(path: Path) -> Iterator[ZipFile]:
    """An archive whose directory holds nothing but what a bundle may have.

    Raises:
        Refused: it does, or cannot be read.
    """
    try:
        archive = ZipFile(path)
    except _DAMAGE as error:
        raise Refused("its directory", f"cannot be read ({error})") from error
    with archive, path.open("rb") as file:
        _refuse(archive.infolist(), path.stat().st_size)
        _refuse_gaps(file, archive)
        yield archive


def _refuse(infos: Sequence[ZipInfo], packed: int) -> None:
    if len(infos) > MOST_MEMBERS:
        raise Refused(
            "its directory",
            f"names {len(infos):,} members, where {MOST_MEMBERS:,} are the most",
        )
    seen: set[str] = set()
    for info in infos:
        # `filename` is what was made of it: cut at a zero byte, for one
        if wrong := naming.problem(info.orig_filename) or _oddity(info):
            raise Refused(repr(info.orig_filename), wrong)
        if not 0 <= info.header_offset < packed:
            raise Refused(repr(info.filename), "is said to lie outside of the file")
        if info.filename in seen:
            raise Refused(repr(info.filename), "is there twice")
        seen.add(info.filename)
    unpacked = sum(info.file_size for info in infos)
    if unpacked > RATIO * packed:
        raise Refused(
            "its directory",
            f"{packed:,} bytes would become {unpacked:,}, which no bundle does",
        )


def _refuse_gaps(file: BinaryIO, archive: ZipFile) -> None:
    """Refuse bytes that belong to no member: programs that go by them see others."""
    end = 0
    for info in sorted(archive.infolist(), key=attrgetter("header_offset")):
        if info.header_offset != end:
            raise Refused(
                repr(info.filename), "does not begin where the member before it ends"
            )
        file.seek(end)
        lengths = _LENGTHS.unpack(file.read(_LENGTHS.size).ljust(_LENGTHS.size))
        end += _LENGTHS.size + sum(lengths) + info.compress_size
    if archive.start_dir != end:
        raise Refused("its directory", "does not begin where the last member ends")


def _oddity(info: ZipInfo) -> str | None:
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind != stat.S_IFREG:
        return "is no plain file, but a link, a folder or a device"
    if info.flag_bits & _ENCRYPTED:
        return "is encrypted"
    if info.compress_type not in METHODS:
        return "is packed in a way that bundles are not"
    return None


def manifest_bytes(archive: ZipFile) -> bytes:
    """The content of `bundle.json`.

    Raises:
        Refused: there is none, it is too large, or damaged.
    """
    try:
        info = archive.getinfo(NAME)
    except KeyError:
        raise Refused(NAME, "is missing: this is no bundle, or not a whole one") from (
            None
        )
    if info.file_size > LARGEST_MANIFEST:
        raise Refused(NAME, "is too large")
    return b"".join(_content(archive, info))


def unpack(
    archive: ZipFile,
    manifest: Manifest,
    folder: Path,
    progress: Callable[[str], None],
) -> Iterator[LogFault]:
    """Compare every member with the manifest, and write those that a replay reads.

    Args:
        archive: from `opened`.
        manifest: what should be in it.
        folder: an empty one.
        progress: is told how far this is.

    Yields:
        What is not as the manifest says, in the order of the archive.
    """
    wanted = {member.name: member for member in manifest.members}
    read = {LOG, scorecard_of(manifest.scoring)}
    whole = sum(member.size for member in manifest.members)
    done = 0
    for info in archive.infolist():
        name = info.filename
        if name == NAME:
            continue
        member = wanted.pop(name, None)
        if member is None:
            yield LogFault(what="member", where=name, message="does not belong here")
            continue
        is_read = name in read or name.startswith(f"{INPUTS}/")
        target = folder / name if is_read else None
        try:
            found = _written(_content(archive, info), target)
        except Refused as refused:
            yield refused.fault
            continue
        if found != (member.size, member.sha256):
            yield LogFault(
                what="member", where=name, message="is not what bundle.json says"
            )
        done += found.size
        progress(f"{done / 1e6:,.0f} of {whole / 1e6:,.0f} MB unpacked")
    for name in wanted:
        yield LogFault(what="member", where=name, message="is missing")


def _content(archive: ZipFile, info: ZipInfo) -> Iterator[bytes]:
    """A member in pieces; never more than it was announced with.

    Raises:
        Refused: it is damaged.
    """
    try:
        with archive.open(info) as file:
            while piece := file.read(PIECE):
                yield piece
    except _DAMAGE as error:
        raise Refused(info.filename, f"is damaged ({error})") from error


def _written(pieces: Iterator[bytes], target: Path | None) -> Found:
    """Size and hash of what comes, written to *target* if it is named.

    Raises:
        RunnerError: it cannot be written.
    """
    digest = hashlib.sha256()
    size = 0
    try:
        with _created(target) as write:
            for piece in pieces:
                digest.update(piece)
                size += len(piece)
                write(piece)
    except OSError as error:
        raise RunnerError(
            f"A bundle cannot be unpacked ({error.strerror}): make room for temporary "
            "files, or name another folder for them in TMPDIR."
        ) from error
    return Found(size, digest.hexdigest())


@contextmanager
def _created(target: Path | None) -> Iterator[Callable[[bytes], object]]:
    """Writes to a new file; to nowhere, where none is wanted."""
    if target is None:
        yield len
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("xb") as file:
        yield file.write
