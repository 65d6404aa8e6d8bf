"""Serves the bodies of answers that a fork adopted from its parent run.

An adopted answer is an `attempt_answered` like any other, without a row in `body`: it
names its event in the parent's log and the SHA-256 of the body. A temporary view takes
the place of the table `body` in a connection to a fork, so every statement reads
adopted bodies too. They come from the fork's own parts, where a bundle puts them, or
from the parent, which lies beside the fork and may be a fork itself. Of a split parent
they are read from the union of its logs.
"""

from __future__ import annotations

import hashlib
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import msgspec

from store.encoding import Packer, unpack
from store.errors import CorruptLog, StoreError
from store.lineage import ForkedBody, ForkOrigin
from store.statements import queries, script
from store.union.origins import Origins

SQL = queries("queries")
PAGE = 500


class BaseReader(sqlite3.Connection, ABC):
    """A connection to a log, such as that of a fork's parent."""

    @abstractmethod
    def failure(self, error: sqlite3.DatabaseError) -> StoreError:
        """Return the error to raise in place of one of SQLite."""


OpenLog: TypeAlias = Callable[[Path], BaseReader]


class _Started(msgspec.Struct):
    fork: ForkOrigin | None = None


class _Answered(msgspec.Struct):
    forked: ForkedBody


def origin(conn: sqlite3.Connection) -> ForkOrigin | None:
    """Return the parent of the run in a log; None: it has none."""
    row = conn.execute(SQL["first_facts"]).fetchone()
    if row is None or b'"fork":' not in bytes(row[0]):
        return None
    return msgspec.json.decode(row[0], type=_Started).fork


def parent_log(log: Path, parent: ForkOrigin) -> Path:
    """Return the path of the parent's log, beside the folder of *log*."""
    return log.resolve().parent.parent / parent.run / "log.db"


def serve_bodies(
    conn: sqlite3.Connection, log: Path, open_log: OpenLog, *, schema: str = "main"
) -> ForkedBodies | None:
    """Let a connection read adopted bodies; None: the log is not of a fork.

    Args:
        conn: the connection, which may create temporary views.
        log: path of the fork's log.
        open_log: opens the parent's log.
        schema: the name under which *conn* has the tables of the log.
    """
    parent = origin(conn)
    if parent is None:
        return None
    bodies = ForkedBodies(conn, parent_log(log, parent), open_log)
    conn.create_function("forked_body", 1, bodies.find)
    conn.execute(SQL["drop_body_view"])
    for statement in script("forked"):
        conn.execute(statement.replace("main.", f"{schema}."))
    return bodies


class ForkedBodies:
    """Finds adopted bodies for one connection."""

    def __init__(
        self, conn: sqlite3.Connection, parent: Path, open_log: OpenLog
    ) -> None:
        self._conn = conn
        self._parent = parent
        self._open_log = open_log
        self._reader: BaseReader | None = None
        self._origins: Origins | None = None  #: of a split parent
        self.failure: StoreError | None = None  #: why a body could not be read

    def find(self, facts: bytes) -> bytes:
        """Return the body that an adopted answer names; called by SQLite.

        Raises:
            StoreError: it cannot be read; SQLite replaces the error, so `failure`
                keeps it.
        """
        try:
            forked = msgspec.json.decode(facts, type=_Answered).forked
            part = self._conn.execute(
                SQL["part"], (bytes.fromhex(forked.sha256),)
            ).fetchone()
            return self._of_parent(forked) if part is None else _unpacked(*part)
        except StoreError as error:
            self.failure = error
            raise

    def _of_parent(self, forked: ForkedBody) -> bytes:
        if self._reader is None:
            if not self._parent.exists():
                run = self._parent.parent
                step = (
                    f"make it again with 'siftlog merge {run.name}'"
                    if forked.log and run.is_dir()
                    else "put the folder of that run back"
                )
                raise StoreError(
                    f"the answers that this run adopted are in {self._parent}, which "
                    f"is missing: {step}"
                )
            self._reader = self._open_log(self._parent)
        try:
            seq = self._seq(self._reader, forked)
            row = self._reader.execute(SQL["payload"], (seq,)).fetchone()
        except sqlite3.DatabaseError as error:  # the parent may be a fork itself
            raise self._reader.failure(error) from error
        if row is None or row[2] is None:
            of_log = f" of log {forked.log[:12]}" if forked.log else ""
            raise CorruptLog(
                f"{self._parent} lacks the answer of event {forked.seq}{of_log}: see "
                "'siftlog verify'"
            )
        return _unpacked(*row)

    def _seq(self, parent: sqlite3.Connection, forked: ForkedBody) -> int | None:
        """Return the number of an answer in the parent's log, which may be a union."""
        if not forked.log:
            return forked.seq
        if self._origins is None:
            self._origins = Origins(parent)
        return self._origins.seq(forked.log, forked.seq)

    def close(self) -> None:
        """Close the parent's log."""
        if self._reader is not None:
            self._reader.close()


def _unpacked(encoding: int, length: int, data: bytes) -> bytes:
    try:
        return unpack(encoding, data, length)
    except ValueError as error:
        raise CorruptLog(f"an adopted answer is damaged: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class AdoptedBody:
    """An adopted answer, and its body as it reads today."""

    seq: int
    forked: ForkedBody
    body: bytes

    @property
    def is_genuine(self) -> bool:
        """Whether the body is the one that the fork adopted."""
        return hashlib.sha256(self.body).hexdigest() == self.forked.sha256


def adopted_bodies(conn: sqlite3.Connection) -> Iterator[AdoptedBody]:
    """Yield every adopted answer of a fork in order; in constant memory."""
    after = 0
    while page := conn.execute(SQL["adopted_answers"], (after, PAGE)).fetchall():
        for after, facts in page:
            row = conn.execute(SQL["payload"], (after,)).fetchone()
            forked = msgspec.json.decode(facts, type=_Answered).forked
            yield AdoptedBody(seq=after, forked=forked, body=bytes(row[2] or b""))


def store_bodies(source: sqlite3.Connection, copy: sqlite3.Connection) -> None:
    """Add the adopted bodies of a fork to a copy of its log, as parts.

    The chain is the same: it covers the hash of an adopted body, not its place.

    Raises:
        CorruptLog: a body is not the one that was adopted.
    """
    packer = Packer()
    for adopted in adopted_bodies(source):
        if not adopted.is_genuine:
            raise CorruptLog(
                f"the answer that event {adopted.seq} adopted has changed in the "
                "parent run: see 'siftlog verify'"
            )
        sha256 = bytes.fromhex(adopted.forked.sha256)
        if copy.execute(SQL["blob_known"], (sha256,)).fetchone() is None:
            encoding, data = packer.pack(adopted.body)
            row = (sha256, encoding, len(adopted.body), data)
            copy.execute(SQL["insert_blob"], row)
