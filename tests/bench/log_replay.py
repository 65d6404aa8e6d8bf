"""Reading a log back: typed events, headers alone, answers, resume, rebuild (C1-C3)."""

from __future__ import annotations

import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from store import tables
from store.database import SQL, connect, open_reader
from store.encoding import event_of, unpack
from store.events import Entry, Event
from store.log import opening
from store.log.projections import rebuild
from store.log.writer import PreparedEntry, Writer
from store.scoring import families
from tests.bench.prose import replies
from tests.bench.row import Row
from tests.bench.verdict import least, most, shown
from tests.store.samples import RUN_STARTED, completed, plan, reply, started, task

KB = 1024
PAGE = 1000
#: Of the tasks, as in the measurement that the targets come from.
OPEN_SHARE = 0.12
ALL_COLUMNS = """
SELECT seq, ts_us, epoch, kind, ver, task, attempt, enc, blen, facts FROM event
ORDER BY seq
"""
WITH_BODIES = """
SELECT e.seq, ts_us, epoch, kind, ver, task, attempt, enc, blen, facts, data
FROM event AS e LEFT JOIN body AS b ON b.seq = e.seq ORDER BY e.seq
"""
BARE_TASKS = "SELECT task, state, attempts, updated_seq FROM task"


def measure(quick: bool) -> list[Row]:
    """The rows of C1 to C3, and the time of an answer in a replay."""
    small = 20_000 if quick else 200_000
    bodies = 5_000 if quick else 50_000
    tasks = 50_000 if quick else 300_000
    rounds = 3 if quick else 5
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        return [
            *_typed(folder / "small.db", small, rounds),
            *_headers(folder / "bodies.db", bodies, rounds),
            *_resume(folder / "tasks.db", tasks, rounds),
        ]


def _typed(path: Path, tasks: int, rounds: int) -> list[Row]:
    """Small events as typed values against the rows alone."""
    with _written(path, tasks, tasks, body=b"{}") as conn:
        raw = _median(rounds, lambda: _scan(conn, ALL_COLUMNS))
        typed = _median(rounds, lambda: _decode(conn))
    with open_reader(path) as reader:
        answer_s = _median(1, lambda: _answers(reader)) / tasks
    return [
        least("C1", "typed events / raw scan, rate", raw / typed, 0.7),
        shown("replay by families, small replies, us an answer", answer_s * 1e6),
    ]


def _headers(path: Path, tasks: int, rounds: int) -> list[Row]:
    """Facts alone, as folds read them, against facts with their bodies of 8 KB."""
    with _written(path, tasks, tasks, body=replies(8 * KB, 1)[0]) as conn:
        whole = _median(rounds, lambda: _restore(conn))
        headers = _median(rounds, lambda: _scan(conn, ALL_COLUMNS))
    with open_reader(path) as reader:
        answer_s = _median(1, lambda: _answers(reader)) / tasks
    return [
        least("C2", "headers / rows with bodies, rate, 8 KB", whole / headers, 5),
        shown("replay by families, 8 KB replies, us an answer", answer_s * 1e6),
    ]


def _resume(path: Path, tasks: int, rounds: int) -> list[Row]:
    """What a resume reads, against all task rows."""
    done = round(tasks * (1 - OPEN_SHARE))
    with _written(path, tasks, done, body=b"{}") as conn:
        bare = _median(rounds, lambda: conn.execute(BARE_TASKS).fetchall())
        million = bare / tasks * 1_000_000
        open_tasks = SQL["open_tasks"]

        def page(limit: int) -> Callable[[], object]:
            lane = ("ask", "m-large", 0, limit)
            return lambda: tables.task_rows(conn, open_tasks, lane)

        first = _median(rounds, page(PAGE))
        everything = _median(rounds, page(-1))
        folded = _median(1, lambda: rebuild(conn))
    at = f"{tasks:,} tasks"
    return [
        most(
            "C3", "first 1,000 open / bare SELECT of a million", first / million, 0.05
        ),
        most("C3", f"all open / bare SELECT, {at}", everything / bare, 0.5),
        most("C3", f"rebuild / bare SELECT, {at}", folded / bare, 5),
        shown("rebuild, us an event", folded / (done * 3) * 1e6),
    ]


@contextmanager
def _written(
    path: Path, tasks: int, done: int, body: bytes
) -> Iterator[sqlite3.Connection]:
    """A log of *tasks*, of which the first *done* are completed."""
    with closing(connect(path)) as conn:
        opening.create(
            conn, path, run_id="bench", owner="bench", config_sha256=b"", now_us=1
        )
        opened = opening.open_for_writing(conn, path, owner="bench", now_us=1)
        writer = Writer(conn, epoch=opened.epoch, position=opened.position)
        writer.commit([[PreparedEntry.of(RUN_STARTED, 1)]])
        for first in range(1, tasks + 1, PAGE):
            numbers = range(first, min(first + PAGE, tasks + 1))
            block = plan([task(number) for number in numbers], first=first)
            writer.commit([[PreparedEntry.of(block, 1)]])
        for first in range(1, done + 1, PAGE):
            numbers = range(first, min(first + PAGE, done + 1))
            writer.commit(
                [[PreparedEntry.of(e, 1) for n in numbers for e in _course(n, body)]]
            )
        writer.write_projections()
        yield conn


def _course(number: int, body: bytes) -> tuple[Entry | Event, ...]:
    return started(number), reply(number, body), completed(number)


def _scan(conn: sqlite3.Connection, statement: str) -> None:
    cursor = conn.execute(statement)
    while cursor.fetchmany(PAGE):
        pass


def _restore(conn: sqlite3.Connection) -> None:
    cursor = conn.execute(WITH_BODIES)
    while rows := cursor.fetchmany(PAGE):
        for *_, encoding, length, _facts, data in rows:
            if data is not None:
                unpack(encoding, data, length)


def _decode(conn: sqlite3.Connection) -> None:
    kinds = {number: name for name, number, _ in conn.execute(SQL["kinds"])}
    cursor = conn.execute(ALL_COLUMNS)
    while rows := cursor.fetchmany(PAGE):
        for row in rows:
            event_of(kinds[row[3]], row[4], row[9])


def _answers(conn: sqlite3.Connection) -> None:
    for _ in families(conn):
        pass


def _median(rounds: int, act: Callable[[], object]) -> float:
    taken = []
    for _ in range(rounds):
        began = time.perf_counter()
        act()
        taken.append(time.perf_counter() - began)
    return statistics.median(taken)
