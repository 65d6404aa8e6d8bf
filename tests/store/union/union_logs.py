"""Logs of one run that know nothing of each other, and what their union says."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path

from store.database import SQL, connect, open_reader
from store.events import Entry, Event, RunStarted
from store.runs import RunFolder
from store.slices import Shard, Slices
from store.tables import reply
from store.union import merging
from store.union.merging import Merger
from store.union.source import CommitRange, LocalLogSource, LogIdentity, UnionSource
from tests.replacing import replace
from tests.store.logs import written
from tests.store.samples import RUN_STARTED


def shard_started(index: int, count: int) -> RunStarted:
    part = Shard(index=index, count=count, slices=str(Slices.of(index, count)))
    return replace(RUN_STARTED, shard=part)


def shard_log(folder: Path, name: str, *units: Sequence[Entry | Event]) -> Path:
    """A closed log of a shard; its writer's id is its own."""
    return written(folder / f"log.{name}.db", *units)


def union_of(path: Path, logs: Iterable[Path]) -> Path:
    """The union of *logs*, merged in their order."""
    for log in logs:
        with open_reader(log) as reader:
            merge(path, LocalLogSource(reader))
    return path


def merge_in_another_order(folder: RunFolder) -> None:
    """Make the union of a split run again, with other numbers for its events."""
    for file in folder.path.glob("log.db*"):
        file.unlink()
    logs = []
    for shard in folder.shards():
        with open_reader(shard.log) as reader:
            logs.append((LocalLogSource(reader).identity.log, shard.log))
    union_of(folder.log, [log for _, log in sorted(logs, reverse=True)])


def merge(path: Path, source: UnionSource) -> int:
    is_new = not path.exists()
    with closing(connect(path)) as conn:
        if is_new:
            merging.create_union(conn, path, source.identity, owner="tester")
        return Merger(conn, path).merge(source)


class Beginning:
    """A log of which only the first events have arrived."""

    def __init__(self, source: LocalLogSource, upto: int) -> None:
        self.identity: LogIdentity = source.identity
        self.heartbeat = None
        self._source = source
        self._upto = upto

    def commit_ranges(self, after: int, blobs_after: int = 0) -> Iterator[CommitRange]:
        """Its commits one by one, up to the last that has arrived."""
        for whole in self._source.commit_ranges(after, blobs_after):
            at = after
            for last, link in whole.links:
                if last > self._upto:
                    return
                rows = [row for row in whole.rows if at < row.seq <= last]
                at = last
                yield replace(whole, rows=rows, links=[(last, link)])

    def has_more(self, after: int, blobs_after: int) -> bool:
        return next(iter(self.commit_ranges(after, blobs_after)), None) is not None

    def snapshot(self) -> AbstractContextManager[None]:
        """No log says where it stood then."""
        return nullcontext()


#: Sums that must not depend on the order of merging; `last_seq` and the like may.
SUMS = {
    "counts": "SELECT stage, model, state, n FROM counts WHERE n <> 0",
    "minute": "SELECT * FROM minute",
    "lane": "SELECT * FROM lane",
    "replies": "SELECT * FROM reply_tally",
    "latency": "SELECT * FROM latency_hist",
    "errors": "SELECT class, stage, model, n, final FROM error_class",
    "failures": "SELECT t, class, stage, model, outcome, n FROM failure",
    "reasons": "SELECT what, reason, n FROM reason WHERE n <> 0",
    "counters": "SELECT name, n FROM counter WHERE n <> 0",
    "limiter": "SELECT * FROM limiter",
    "run": "SELECT phase, phase_by, phase_why, phase_us, paused_by, draining_by, tasks,"
    " consumed, exhausted, success_us FROM run_state",
    "tasks": "SELECT stage, model, key, replicate, state, attempts, abandoned, tries,"
    " sent, since_us, not_before_us, error, reason, latency_ms, cost_pico FROM tasks",
}


NAMES = "SELECT task, stage, key, model, replicate FROM tasks"


def outcome(path: Path) -> dict[str, object]:
    """What a union says, without the numbers that its order of merging gave it."""
    with open_reader(path) as reader:
        said: dict[str, object] = {
            name: sorted(map(repr, reader.execute(query).fetchall()))
            for name, query in SUMS.items()
        }
        said["replies"] = sorted(
            (*names, stored and stored.body)
            for number, *names in reader.execute(NAMES).fetchall()
            for stored in [reply(reader, number)]
        )
    return said


def last_seq(path: Path) -> int:
    with closing(sqlite3.connect(path)) as conn:
        return int(conn.execute(SQL["last_seq"]).fetchone()[0])
