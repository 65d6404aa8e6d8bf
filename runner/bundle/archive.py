"""Writes and unpacks the zip archive of a bundle; the input is untrusted."""

from __future__ import annotations

import hashlib
import os
import stat
import struct
import unicodedata
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import attrgetter
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple
from zipfile import ZIP_DEFLATED, ZIP_STORED, BadZipFile, ZipFile, ZipInfo

from runner.bundle.manifest import (
    INPUTS,
    LABELS,
    LOG,
    NAME,
    Manifest,
    RedactedManifest,
    scorecard_of,
)
from runner.errors import RunnerError
from store.runs import CERTIFICATES
from store.verify import LogFault

PIECE: Final = 1 << 20
"""Size of a chunk in bytes."""

RATIO: Final = 100
"""Maximum compression ratio of a bundle. A log has 8, text 4; deflate can reach a
thousand, which is how zip bombs are built."""

MODE: Final = stat.S_IFREG | 0o644
METHODS: Final = frozenset({ZIP_DEFLATED, ZIP_STORED})

_SEAL_PREFIX = b"siftlog bundle sha256 "
_HEX = 2 * hashlib.sha256().digest_size
SEAL: Final = len(_SEAL_PREFIX) + _HEX
"""Bytes of the seal."""


def plain_member(name: str, method: int) -> ZipInfo:
    """Return the header of a file that depends on its name and content alone."""
    # the earliest time in zip, and the same owner and mode everywhere
    info = ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    info.create_system = 3  # Unix: defines the meaning of the attributes below
    info.external_attr = MODE << 16
    info.compress_type = method
    return info


def write(
    path: Path, members: Iterable[tuple[str, int, Iterable[bytes]]], *, method: int
) -> str:
    """Write a sealed archive of *members*, in order, in constant memory.

    Args:
        path: the new file.
        members: name, size in bytes, and content in chunks.
        method: compression method, one of `METHODS`.

    Returns:
        Hex SHA-256 of the file.
    """
    with ZipFile(path, "w") as archive:
        for name, size, pieces in members:
            info = plain_member(name, method)
            info.file_size = size
            with archive.open(info, "w") as file:
                for piece in pieces:
                    file.write(piece)
        archive.comment = _SEAL_PREFIX + b"0" * _HEX
    with path.open("r+b") as file:
        digest = _hashed(file, path.stat().st_size - SEAL)
        seal = _SEAL_PREFIX + digest.hexdigest().encode()
        file.write(seal)
        file.flush()
        os.fsync(file.fileno())
    digest.update(seal)
    return digest.hexdigest()


def has_seal(path: Path) -> bool:
    """Return whether a file ends with a bundle's seal."""
    return _seal(path).startswith(_SEAL_PREFIX)


def is_sealed(path: Path) -> bool:
    """Return whether a file is unchanged since it was sealed."""
    with path.open("rb") as file:
        digest = _hashed(file, path.stat().st_size - SEAL)
    return _seal(path) == _SEAL_PREFIX + digest.hexdigest().encode()


def _seal(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - SEAL))
        return file.read()


def _hashed(file: BinaryIO, size: int) -> hashlib._Hash:
    """Hash the first *size* bytes; the file is positioned after them."""
    digest = hashlib.sha256()
    left = size
    while left > 0 and (piece := file.read(min(PIECE, left))):
        digest.update(piece)
        left -= len(piece)
    return digest


def pieces(file: BinaryIO) -> Iterator[bytes]:
    """Yield a file's content in chunks."""
    while piece := file.read(PIECE):
        yield piece


LONGEST: Final = 255
"""Maximum bytes of a name's part: the limit of file systems."""

DEEPEST: Final = 40
"""Maximum parts of a name."""

_UNSEEN = frozenset({"Cc", "Cs", "Zl", "Zp"})
"""Unicode's categories of controls, surrogates, and line separators."""

_RULES: Final[tuple[tuple[Callable[[str], bool], str], ...]] = (
    (
        lambda name: any(unicodedata.category(c) in _UNSEEN for c in name),
        "holds a character that cannot be shown",
    ),
    (
        lambda name: "\\" in name,
        "holds a backslash, which some systems take for a folder's end",
    ),
    (
        lambda name: name.startswith("/") or name[1:2] == ":",
        "is an absolute path",
    ),
    (lambda name: ".." in name.split("/"), "leads out of the folder"),
    (lambda name: bool({"", "."} & {*name.split("/")}), "is not the name of a file"),
    (
        lambda name: (
            name.count("/") >= DEEPEST
            or any(len(part.encode()) > LONGEST for part in name.split("/"))
        ),
        "is too long",
    ),
)
"""Rules for invalid names, with messages; the first match counts."""


def problem(name: str) -> str | None:
    """Return why a member's name is invalid; None if it is valid.

    A valid name denotes one file below the target folder, on every system.
    """
    return next((reason for is_broken, reason in _RULES if is_broken(name)), None)


MOST_MEMBERS: Final = 1_000_000
LARGEST_MANIFEST: Final = 256 << 20
"""Maximum bytes; a million members take some 200 MB."""

_ENCRYPTED = 0x1

_LENGTHS = struct.Struct("<26x2H")
"""Lengths of the name and the extra field, at the end of a member's header."""

_DAMAGE = (
    BadZipFile,
    zlib.error,
    EOFError,
    NotImplementedError,  # unknown method or version of zip
    RuntimeError,  # encrypted, according to one of its two headers
    ValueError,
    OverflowError,
    struct.error,
    IndexError,
)
"""Errors of `zipfile` for invalid bytes."""


class InvalidArchive(Exception):
    """An archive that is refused; has the reason."""

    def __init__(self, where: str, message: str) -> None:
        super().__init__(message)
        self.fault = LogFault(what="archive", where=where, message=message)


class UnpackedMember(NamedTuple):
    """Size and hash of an unpacked member."""

    size: int
    sha256: str


@contextmanager
def opened(path: Path) -> Iterator[ZipFile]:
    """Open an archive after checking its directory.

    Raises:
        InvalidArchive: the directory has anything a bundle may not have, or is
            unreadable.
    """
    try:
        archive = ZipFile(path)
    except _DAMAGE as error:
        raise InvalidArchive("its directory", f"cannot be read ({error})") from error
    with archive, path.open("rb") as file:
        _refuse(archive.infolist(), path.stat().st_size)
        _refuse_gaps(file, archive)
        yield archive


def _refuse(infos: Sequence[ZipInfo], packed: int) -> None:
    if len(infos) > MOST_MEMBERS:
        raise InvalidArchive(
            "its directory",
            f"names {len(infos):,} members, where {MOST_MEMBERS:,} are the most",
        )
    seen: set[str] = set()
    for info in infos:
        # `filename` is processed: for example, truncated at a zero byte
        if wrong := problem(info.orig_filename) or _oddity(info):
            raise InvalidArchive(repr(info.orig_filename), wrong)
        if not 0 <= info.header_offset < packed:
            raise InvalidArchive(
                repr(info.filename), "is declared to be outside of the file"
            )
        if info.filename in seen:
            raise InvalidArchive(repr(info.filename), "is there twice")
        seen.add(info.filename)
    unpacked = sum(info.file_size for info in infos)
    if unpacked > RATIO * packed:
        raise InvalidArchive(
            "its directory",
            f"{packed:,} bytes would become {unpacked:,}, which no bundle does",
        )


def _refuse_gaps(file: BinaryIO, archive: ZipFile) -> None:
    """Refuse bytes that belong to no member: other programs may read them."""
    end = 0
    for info in sorted(archive.infolist(), key=attrgetter("header_offset")):
        if info.header_offset != end:
            raise InvalidArchive(
                repr(info.filename), "does not begin where the member before it ends"
            )
        file.seek(end)
        lengths = _LENGTHS.unpack(file.read(_LENGTHS.size).ljust(_LENGTHS.size))
        end += _LENGTHS.size + sum(lengths) + info.compress_size
    if archive.start_dir != end:
        raise InvalidArchive(
            "its directory", "does not begin where the last member ends"
        )


def _oddity(info: ZipInfo) -> str | None:
    kind = stat.S_IFMT(info.external_attr >> 16)
    if kind != stat.S_IFREG:
        return "is not a plain file, but a link, a folder or a device"
    if info.flag_bits & _ENCRYPTED:
        return "is encrypted"
    if info.compress_type not in METHODS:
        return "is packed in a way that bundles are not"
    return None


def manifest_bytes(archive: ZipFile) -> bytes:
    """Return the content of `bundle.json`.

    Raises:
        InvalidArchive: it is missing, too large, or damaged.
    """
    try:
        info = archive.getinfo(NAME)
    except KeyError:
        raise InvalidArchive(
            NAME, "is missing: this is not a bundle, or it is incomplete"
        ) from (None)
    if info.file_size > LARGEST_MANIFEST:
        raise InvalidArchive(NAME, "is too large")
    return b"".join(_content(archive, info))


_READ_FOLDERS: Final = tuple(f"{name}/" for name in (INPUTS, LABELS, CERTIFICATES))


def unpack(
    archive: ZipFile,
    manifest: Manifest,
    folder: Path,
    progress: Callable[[str], None],
) -> Iterator[LogFault]:
    """Compare every member with the manifest, and unpack those that a replay needs.

    Args:
        archive: from `opened`.
        manifest: the expected content.
        folder: an empty folder.
        progress: receives progress messages.

    Yields:
        Differences from the manifest, in the order of the archive.
    """
    expected = {member.name: member for member in manifest.members}
    read = {LOG, scorecard_of(manifest.scoring)}
    if isinstance(manifest, RedactedManifest):
        read |= {member.name for member in manifest.members}
    whole = sum(member.size for member in manifest.members)
    done = 0
    for info in archive.infolist():
        name = info.filename
        if name == NAME:
            continue
        member = expected.pop(name, None)
        if member is None:
            yield LogFault(what="member", where=name, message="does not belong here")
            continue
        is_read = name in read or name.startswith(_READ_FOLDERS)
        target = folder / name if is_read else None
        try:
            written = _written(_content(archive, info), target)
        except InvalidArchive as refused:
            yield refused.fault
            continue
        if written != (member.size, member.sha256):
            yield LogFault(
                what="member", where=name, message="differs from bundle.json"
            )
        done += written.size
        progress(f"{done / 1e6:,.0f} of {whole / 1e6:,.0f} MB unpacked")
    for name in expected:
        yield LogFault(what="member", where=name, message="is missing")


def _content(archive: ZipFile, info: ZipInfo) -> Iterator[bytes]:
    """Yield a member in chunks; never more than its declared size.

    Raises:
        InvalidArchive: it is damaged.
    """
    try:
        with archive.open(info) as file:
            while piece := file.read(PIECE):
                yield piece
    except _DAMAGE as error:
        raise InvalidArchive(info.filename, f"is damaged ({error})") from error


def _written(pieces: Iterator[bytes], target: Path | None) -> UnpackedMember:
    """Hash the chunks, writing them to *target* if given; return size and hash.

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
    return UnpackedMember(size, digest.hexdigest())


@contextmanager
def _created(target: Path | None) -> Iterator[Callable[[bytes], object]]:
    """Open a new file for writing, or discard if there is no target."""
    if target is None:
        yield len
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("xb") as file:
        yield file.write
