"""Caches replies of earlier runs in `cache.db` under the hash of the request.

No run depends on it: a lost reply is requested again. It is therefore written with
`synchronous=NORMAL`, which keeps the file intact in a power cut but may lose the last
answers. A run continues without the cache if anything is wrong with it.

Any number of processes read and write it. It holds replies and their keys; neither
prompts nor anything from which a prompt could be restored.

The cache's disk may be slow, and other processes may make it wait; the run's event loop
waits for neither.
"""

from __future__ import annotations

import asyncio
import math
import os
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, Self

import msgspec

from store.encoding import Packer, unpack
from store.errors import CacheUnusable
from store.log.committer import WriterThread
from store.statements import queries

_SQL: Final = queries("cache")

#: "EVLC", in the file's header.
APPLICATION_ID: Final = 0x45564C43
#: Version of the table, in the file's header.
VERSION: Final = 1

_NEVER_US: Final = 2**63 - 1
_headers: Final = msgspec.json.Decoder(dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedReply:
    """A reply as it was received."""

    form: str  #: wire form of the body
    status: int
    headers: Mapping[str, str]  #: those that mattered
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheEntry:
    """A reply to store, with its origin."""

    key: bytes  #: hash of everything that makes the answer this one
    model: str
    endpoint: str
    run: str  #: id of the run that sent the request
    created_us: int
    reply: CachedReply


@dataclass(frozen=True, slots=True, kw_only=True)
class CacheGroup:
    """The entries of one model at one endpoint."""

    model: str
    endpoint: str
    entries: int
    bytes: int  #: of bodies, as stored
    oldest_us: int
    newest_us: int
    hits: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Pruned:
    """Entries that were removed, or would be in a dry run."""

    entries: int
    bytes: int  #: by which the file's content shrinks
    left_entries: int  #: of all models
    left_bytes: int


def connect(path: Path) -> sqlite3.Connection:
    """Return a connection to the cache at *path*; create the file if necessary.

    The folder is private to the user. A new file appears complete or not at all, so two
    processes that start together never see a partial file.

    Raises:
        CacheUnusable: it cannot be created or opened, or is not a cache.
    """
    try:
        if not path.exists():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            with TemporaryDirectory(dir=path.parent, prefix=".cache-") as folder:
                fresh = Path(folder, path.name)
                _create(fresh)
                with suppress(FileExistsError):
                    os.link(fresh, path)
        return _open(path)
    except (OSError, sqlite3.Error) as error:
        raise unusable(path, error) from error


def unusable(path: Path, error: OSError | sqlite3.Error) -> CacheUnusable:
    """Describe in a sentence why the cache at *path* cannot be used."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code in {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}:
        return CacheUnusable(
            f"{path} is damaged or not a database ({error}): delete it "
            "to start a new cache, or choose another --cache-dir"
        )
    if isinstance(error, sqlite3.Error) and is_busy(error):
        return CacheUnusable(
            f"{path} is being written by another process for long: try again"
        )
    return CacheUnusable(
        f"{path} cannot be used ({error}): check that its folder is "
        "writable and has free space, or choose another --cache-dir"
    )


def is_busy(error: sqlite3.Error) -> bool:
    """Return whether the cache was merely locked by another process."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    return code in {sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED}


def _create(path: Path) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as conn:
        for name in (
            "auto_vacuum",  # must come before the first table
            "journal_mode",
            "set_application_id",
            "set_version",
            "create_entry",
            "create_entry_used",
        ):
            conn.execute(_SQL[name])
    path.chmod(0o600)


def _open(path: Path) -> sqlite3.Connection:
    conn = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode=rw", uri=True, isolation_level=None
    )
    try:
        for name in ("timeout", "synchronous"):
            conn.execute(_SQL[name])
        _check_identity(conn, path)
    except BaseException:
        conn.close()
        raise
    return conn


def _check_identity(conn: sqlite3.Connection, path: Path) -> None:
    (application_id,) = conn.execute(_SQL["application_id"]).fetchone()
    (version,) = conn.execute(_SQL["version"]).fetchone()
    if application_id != APPLICATION_ID:
        raise CacheUnusable(
            f"{path} is another program's file: choose another --cache-dir"
        )
    if version > VERSION:
        raise CacheUnusable(
            f"{path} was written by a later siftlog (version {version}, known up to "
            f"{VERSION}): upgrade siftlog, or choose another --cache-dir"
        )


def find(conn: sqlite3.Connection, keys: Iterable[bytes]) -> dict[bytes, CachedReply]:
    """Return the replies under *keys*; omit missing and damaged ones."""
    replies: dict[bytes, CachedReply] = {}
    for key in keys:
        row = conn.execute(_SQL["find"], (key,)).fetchone()
        if row is None:
            continue
        form, status, headers, encoding, length, body = row
        # a damaged row costs a call, and the answer to that takes its place
        with suppress(ValueError, msgspec.DecodeError):
            replies[key] = CachedReply(
                form=form,
                status=status,
                headers=_headers.decode(headers),
                body=unpack(encoding, body, length),
            )
    return replies


def write(
    conn: sqlite3.Connection,
    entries: Sequence[CacheEntry],
    used: Mapping[bytes, int],
    now_us: int,
) -> None:
    """Store *entries*, the later of two under one key; count uses of other entries.

    Args:
        conn: from `connect`.
        entries: replies to store.
        used: how often the reply under a key was used.
        now_us: time of the use, microseconds since 1970 UTC.
    """
    packer = Packer()
    rows = []
    for entry in entries:
        encoding, body = packer.pack(entry.reply.body)
        rows.append(
            (
                entry.key,
                entry.model,
                entry.endpoint,
                entry.run,
                entry.created_us,
                entry.created_us,
                entry.reply.form,
                entry.reply.status,
                msgspec.json.encode(entry.reply.headers),
                encoding,
                len(entry.reply.body),
                body,
            )
        )
    with _Transaction(conn):
        conn.executemany(_SQL["put"], rows)
        conn.executemany(_SQL["use"], [(n, now_us, key) for key, n in used.items()])


def groups(conn: sqlite3.Connection, model: str | None = None) -> list[CacheGroup]:
    """Return statistics by model and endpoint; of one *model* only, if named."""
    return [
        CacheGroup(
            model=row[0],
            endpoint=row[1],
            entries=row[2],
            bytes=row[3],
            oldest_us=row[4],
            newest_us=row[5],
            hits=row[6],
        )
        for row in conn.execute(_SQL["groups"], (model,)).fetchall()
    ]


def prune(
    conn: sqlite3.Connection,
    *,
    model: str | None = None,
    unused_since_us: int | None = None,
    max_bytes: int | None = None,
    dry_run: bool = False,
) -> Pruned:
    """Remove entries: first those not used recently, then the least recently used.

    Args:
        conn: from `connect`.
        model: remove only this model's entries.
        unused_since_us: remove what was last used before; with this and *max_bytes*
            both None, everything.
        max_bytes: then remove the least recently used until the content fits.
        dry_run: roll everything back.
    """
    if unused_since_us is None and max_bytes is None:
        unused_since_us = _NEVER_US
    with _Transaction(conn, keeps=not dry_run):
        (entries, size) = _content(conn)
        if unused_since_us is not None:
            conn.execute(_SQL["delete_unused"], (model, unused_since_us))
        if max_bytes is not None:
            _shrink_to(conn, max_bytes, model)
        (left_entries, left_bytes) = _content(conn)
    if not dry_run:
        _give_back(conn)
    return Pruned(
        entries=entries - left_entries,
        bytes=size - left_bytes,
        left_entries=left_entries,
        left_bytes=left_bytes,
    )


def _content(conn: sqlite3.Connection, model: str | None = None) -> tuple[int, int]:
    """Entries, of one *model* if named, and bytes in use in the whole file."""
    (entries,) = conn.execute(_SQL["count_entries"], (model,)).fetchone()
    (size,) = conn.execute(_SQL["size"]).fetchone()
    return entries, size


def _shrink_to(conn: sqlite3.Connection, max_bytes: int, model: str | None) -> None:
    """Remove the least recently used in steps, because their sizes differ."""
    while True:
        entries, size = _content(conn, model)
        if size <= max_bytes or not entries:
            return
        share = math.ceil(entries * (1 - max_bytes / size))
        conn.execute(_SQL["delete_oldest"], (model, share))


def _give_back(conn: sqlite3.Connection) -> None:
    """Make the file smaller, in steps that let others write in between."""
    free = conn.execute(_SQL["free_pages"]).fetchone()
    while free[0]:
        conn.execute(_SQL["vacuum"]).fetchall()
        before, free = free, conn.execute(_SQL["free_pages"]).fetchone()
        if free >= before:
            break
    conn.execute(_SQL["checkpoint"]).fetchall()


class _Transaction:
    """A write transaction as a `with` block; rolled back by an error, or on purpose."""

    def __init__(self, conn: sqlite3.Connection, *, keeps: bool = True) -> None:
        self._conn = conn
        self._keeps = keeps

    def __enter__(self) -> None:
        self._conn.execute(_SQL["begin"])

    def __exit__(self, kind: type[BaseException] | None, *_rest: object) -> None:
        if kind is None and self._keeps:
            self._conn.execute(_SQL["commit"])
        # a full disk has rolled back already
        elif self._conn.in_transaction:
            self._conn.execute(_SQL["rollback"])


class CacheConnection:
    """A connection to `cache.db`, used from an event loop."""

    def __init__(self, thread: WriterThread) -> None:
        self._thread = thread

    @classmethod
    async def open(cls, path: Path) -> Self:
        """Open the cache at *path*, or make it.

        Raises:
            CacheUnusable: it cannot be made or opened, or is something else.
        """
        # tried beforehand: aiosqlite's thread may outlive the loop if its first word
        # is an error
        await asyncio.to_thread(_try, path)
        thread = WriterThread(lambda: connect(path))
        try:
            await thread
        except BaseException:
            await thread.close()
            raise
        return cls(thread)

    async def find(self, keys: Iterable[bytes]) -> dict[bytes, CachedReply]:
        """Return the stored replies under *keys*.

        Raises:
            sqlite3.Error: the file cannot be read.
        """
        return await self._thread.run(find, keys)

    async def write(
        self, entries: Sequence[CacheEntry], used: Mapping[bytes, int], now_us: int
    ) -> None:
        """Store *entries*, and count how often others were *used*.

        A cancelled caller's entries may still be written.

        Raises:
            sqlite3.Error: the file cannot be written.
        """
        await self._thread.run(write, entries, used, now_us)

    async def close(self) -> None:
        """Close the connection and end the thread."""
        await self._thread.close()


def _try(path: Path) -> None:
    connect(path).close()
