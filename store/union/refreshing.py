"""Bringing the union of a run up to date with what its logs hold by now.

Every reader of a split run does so as it opens it. One process at a time merges, under
the union's lock; another reads what is there already. The union is derived: without it
nothing is lost but the scorings that were recorded in it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import TypeGuard

from store import projections
from store.connect import connect, open_reader
from store.errors import LogBusy, NoSuchRun, NotALog, StoreError
from store.lock import WriterLock
from store.mounts import network_problem
from store.reading import last_seq
from store.statements import SQL
from store.status import Heartbeat
from store.union import merging
from store.union.merging import Merger
from store.union.source import LogFile, Source
from store.union.statements import UNION, is_union


@dataclass(frozen=True, slots=True, kw_only=True)
class Refreshed:
    """What bringing a union up to date did."""

    logs: int  #: that the union is of
    events: int  #: taken in just now


def refresh(
    log: Path, shards: Sequence[Path], others: Sequence[Source] = ()
) -> Refreshed | None:
    """Take what is new in a run's logs into its union.

    Args:
        log: where the union is, or is to be.
        shards: logs of the run that lie here.
        others: those that lie elsewhere.

    Returns:
        None: there are no logs to be merged, another process is merging them, or this
            one may not.

    Raises:
        StoreError: a log is of another run, or there is a log of an unsplit run.
        CorruptLog: a log is damaged, or was changed since it was merged.
    """
    with ExitStack() as opened:
        sources = [*_written(shards), *others]
        if not sources:
            return None
        if logs := _followed(log, sources):
            return Refreshed(logs=logs, events=0)
        if (refused := network_problem(log.parent)) is not None:
            raise StoreError(refused)
        lock = WriterLock(log.with_suffix(".lock"))
        try:
            lock.acquire()
        except LogBusy:
            return None
        except OSError as error:
            if log.exists():
                return None  # of a folder that may only be read: as it was left there
            raise StoreError(
                f"the logs in {log.parent} cannot be merged there ({error.strerror}): "
                "copy the folder to a place of your own"
            ) from error
        opened.callback(lock.release)
        conn = opened.enter_context(closing(connect(log)))
        return _merged(conn, log, sources)


def _written(shards: Sequence[Path]) -> Iterable[Source]:
    """The logs of the run's shards that hold an event; a new one may not yet."""
    for path in shards:
        try:
            yield LogFile(path)
        except NotALog:
            continue  # its shard is about to make it


def _followed(log: Path, sources: Sequence[Source]) -> int:
    """How many logs a union is of that has all of *sources*; 0: it lacks something.

    Asked before anything is locked or written, since mostly there is nothing new.
    """
    try:
        union = open_reader(log)
    except (NoSuchRun, NotALog):
        return 0  # it is still to be made, or just being made
    with union:
        if not is_union(union) or not projections.is_current(union, last_seq(union)):
            return 0
        marks = {log: mark for log, *mark in union.execute(UNION["marks"]).fetchall()}
        beat = union.execute(SQL["heartbeat"]).fetchone()
        is_behind = any(
            _is_later(source.heartbeat, beat)
            or (mark := marks.get(source.identity.log)) is None
            or source.has_more(*mark)
            for source in sources
        )
        return 0 if is_behind else len(marks)


def _merged(
    conn: sqlite3.Connection, log: Path, sources: Sequence[Source]
) -> Refreshed:
    if not conn.execute(SQL["tables"]).fetchone()[0]:
        named = [s for s in sources if s.identity.run_id == log.parent.name]
        merging.create(conn, log, (named or sources)[0].identity, owner="union")
    elif not is_union(conn):
        raise StoreError(
            f"{log} is the log of a run that is not split: give the shards "
            "another --run-id"
        )
    merger = Merger(conn, log)
    events = sum(merger.merge(source) for source in _in_order(sources))
    (logs,) = conn.execute(UNION["count_logs"]).fetchone()
    for source in sources:
        beat = source.heartbeat
        if _is_later(beat, conn.execute(SQL["heartbeat"]).fetchone()):
            conn.execute(SQL["set_heartbeat"], (beat.at_us, 0, beat.pid, beat.host))
    return Refreshed(logs=logs, events=events)


def _in_order(sources: Sequence[Source]) -> list[Source]:
    """By the logs' ids; of one log in two places, the order does not matter."""
    return sorted(sources, key=lambda source: source.identity.log)


def _is_later(
    beat: Heartbeat | None, known: tuple[int, int, str] | None
) -> TypeGuard[Heartbeat]:
    """Whether a shard's sign of life is later than the one that a union has."""
    return beat is not None and (known is None or known[0] < beat.at_us)
