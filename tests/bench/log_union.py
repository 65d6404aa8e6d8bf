"""Logs of a split run becoming one, beside the replay of a single log of their size.

A replay writes projections alone, from rows that are there. A merge reads the rows of
other files, follows their chains, copies every row with its body, and takes the logs'
own projections over; where it has events alone, it folds them. So all of these are
shown, the fold of the union, which is what a replay compares with, and what SQLite
takes to copy the rows by itself.
Processor seconds of one thread: the clock of a shared machine tells of its neighbours.
"""

from __future__ import annotations

import os
import sqlite3
import subprocess
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

from store.database import SQL, connect
from store.events import Entry, Event, RunStarted, TaskCompleted
from store.log import opening
from store.log.projections import rebuild
from store.log.writer import PreparedEntry, Writer
from store.runs import RunFolder
from store.slices import Shard, Slices
from store.statements import script
from store.union.merging import refresh
from store.union.source import LocalLogFile
from tests.bench.prose import replies
from tests.bench.row import Row
from tests.bench.verdict import least, most, shown
from tests.processes import SIFTLOG
from tests.replacing import replace
from tests.store.samples import RUN_STARTED, completed, plan, reply, started, task

LOGS = 4
MANY = 64
"""Logs of the folder that is looked at again and again."""
BLOCK = 1000
"""Tasks planned by an event, as by the engine."""
ABREAST = 64
"""Tasks whose events share a commit, as under load."""
BODIES = replies(1024, ABREAST)
PAID_BY = f"{'0' * 32}:1"
"""What an adopted answer names."""


def measure(quick: bool) -> list[Row]:
    """Merging, refreshing, folding anew, and looking where nothing is new."""
    tasks = 20_000 if quick else 200_000
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        return [*_even(path, tasks), *_contested(path, tasks // 4), *_looks(path)]


def _even(path: Path, tasks: int) -> list[Row]:
    """Logs that share nothing, as long as their run goes on as it began."""
    single, split = RunFolder(path / "single"), RunFolder(path / "split")
    part = tasks // LOGS
    new = part // 100
    _write(single.log, RUN_STARTED, range(tasks))
    small = RunFolder(path / "small")
    for folder, size in ((small, part // 10), (split, part)):
        for i in range(LOGS):
            _write(
                folder.shard(i, LOGS).log,
                _shard_started(i, LOGS),
                range(i * part, i * part + size),
                upto=size - new if folder is split else size,
            )
    small_mb, whole_mb = _peak_mb(small), _peak_mb(split)
    split.log.unlink()
    with closing(connect(single.log)) as conn:
        replayed = _seconds(lambda: rebuild(conn))
        (events,) = conn.execute(SQL["last_seq"]).fetchone()
    logs = [split.shard(i, LOGS).log for i in range(LOGS)]
    cursor = sum(map(_cursor, logs))
    copied = _copied(logs, path / "copied.db")
    alone = [_EventsAlone(log) for log in logs]
    folded_in = _seconds(lambda: refresh(path / "folded.db", (), alone))
    merged = _seconds(split.refresh)
    for i in range(LOGS):
        _go_on(split.shard(i, LOGS).log, range(part - new + 1, part + 1))
    refreshed = _seconds(split.refresh)
    with closing(connect(split.log)) as conn:
        folded = _seconds(lambda: rebuild(conn))
    at = f"{events:,} events"
    return [
        shown(f"bare cursor over {LOGS} logs, us an event", cursor / events * 1e6),
        shown(f"replay of one log, {at}, us an event", replayed / events * 1e6),
        shown("rows copied by SQLite alone, us an event", copied / events * 1e6),
        shown(f"{LOGS} logs merged, us an event", merged / events * 1e6),
        shown(f"{LOGS} logs as events alone, us an event", folded_in / events * 1e6),
        least("union", "fold of the union / replay, rate", replayed / folded, 0.8),
        least("union", f"{LOGS} logs merged / replay, rate", replayed / merged, 0.8),
        most(
            "union",
            "a refresh with 1 % new / the cold merge",
            refreshed / merged,
            0.02,
        ),
        shown(f"peak memory of siftlog merge, {at}, MB", whole_mb),
        most("union", "peak memory / of a tenth", whole_mb / small_mb, 1.1),
    ]


def _contested(path: Path, tasks: int) -> list[Row]:
    """A run submitted anew with fewer shards, each of which adopted every answer."""
    folder = RunFolder(path / "contested")
    half, quarter = tasks // 2, tasks // 4
    for i in range(4):
        own = range(i * quarter, i * quarter + quarter)
        _write(folder.shard(i, 4).log, _shard_started(i, 4), own)
    first = _seconds(folder.refresh)
    for i in range(2):
        own = range(i * half, i * half + half)
        _write(folder.shard(i, 2).log, _shard_started(i, 2), own, course=_adopted)
    second = _seconds(folder.refresh)
    with closing(connect(folder.log)) as conn:
        folded = _seconds(lambda: rebuild(conn))
    return [
        shown("merged again, all adopted, us an event", second / (tasks * 3) * 1e6),
        least("union", "merged again, all adopted / first, rate", first / second, 0.5),
        shown("fold of that union, us an event", folded / (tasks * 6) * 1e6),
    ]


def _looks(path: Path) -> list[Row]:
    """A look at a run of many shards which has nothing new."""
    folder = RunFolder(path / "many")
    for i in range(MANY):
        _write(folder.shard(i, MANY).log, _shard_started(i, MANY), range(i, i + 1))
    folder.refresh()
    rounds = 20
    looked = _seconds(lambda: [folder.refresh() for _ in range(rounds)]) / rounds
    what = f"a refresh of {MANY} logs with nothing new, ms a log"
    return [most("union", what, looked * 1e3 / MANY, 1)]


def _shard_started(index: int, count: int) -> RunStarted:
    part = Shard(index=index, count=count, slices=str(Slices.of(index, count)))
    return replace(RUN_STARTED, shard=part)


def _paid(number: int) -> tuple[Entry | Event, ...]:
    """A task that is asked once and answered."""
    body = BODIES[number % ABREAST]
    return started(number), reply(number, body, cost_usd=0.002), completed(number)


def _adopted(number: int) -> tuple[Entry | Event, ...]:
    """A task whose answer another log had."""
    body = BODIES[number % ABREAST]
    return (
        replace(started(number), adopted=True),
        reply(number, body, cost_usd=0.0, cached=True, adopted=PAID_BY),
        TaskCompleted(task=number, attempt=1, adopted=True),
    )


def _write(
    path: Path,
    beginning: RunStarted,
    items: range,
    *,
    course: Callable[[int], Sequence[Entry | Event]] = _paid,
    upto: int | None = None,
) -> None:
    """A log that plans *items*, of which the first *upto* are completed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with closing(connect(path)) as conn:
        opening.create(
            conn, path, run_id="bench", owner="bench", config_sha256=b"", now_us=1
        )
        writer = _opened(conn, path)
        writer.commit([[PreparedEntry.of(beginning, 1)]])
        for first in range(1, len(items) + 1, BLOCK):
            numbers = range(first, min(first + BLOCK, len(items) + 1))
            block = [task(n, key=f"item-{items[n - 1]}") for n in numbers]
            writer.commit([[PreparedEntry.of(plan(block, first=first), 1)]])
        done = range(1, 1 + (len(items) if upto is None else upto))
        _work(writer, done, course)


def _go_on(path: Path, numbers: range) -> None:
    """Complete further tasks of a log."""
    with closing(connect(path)) as conn:
        _work(_opened(conn, path), numbers, _paid)


def _opened(conn: sqlite3.Connection, path: Path) -> Writer:
    opened = opening.open_for_writing(conn, path, owner="bench", now_us=1)
    conn.execute("PRAGMA synchronous = OFF")
    return Writer(conn, epoch=opened.epoch, position=opened.position)


def _work(
    writer: Writer, numbers: range, course: Callable[[int], Sequence[Entry | Event]]
) -> None:
    for facts in _commits(numbers, course):
        writer.commit([facts])
    writer.write_projections()


def _commits(
    numbers: range, course: Callable[[int], Sequence[Entry | Event]]
) -> Iterator[list[PreparedEntry]]:
    """The events of some tasks at a time, in turns, as those of calls under way are."""
    for at in range(0, len(numbers), ABREAST):
        courses = [course(number) for number in numbers[at : at + ABREAST]]
        yield [
            PreparedEntry.of(event, 1)
            for turn in zip(*courses, strict=True)
            for event in turn
        ]


def _cursor(path: Path) -> float:
    with closing(connect(path)) as conn:
        rows = conn.execute(SQL["link_rows"], (0, 1 << 62))
        return _seconds(lambda: deque(rows, maxlen=0))


class _EventsAlone(LocalLogFile):
    """A log of which only the events have arrived, as by segments."""

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """None: where its writer stood then is not known."""
        yield None


def _copied(logs: Sequence[Path], path: Path) -> float:
    """The events, bodies and tasks of *logs* in one file, numbered on, with indexes.

    The least that a merge could take: no chain is followed, and facts stay as they are.
    """
    with closing(connect(path)) as conn:
        conn.execute(SQL["page_size"])
        conn.execute("PRAGMA journal_mode = OFF")
        conn.execute(SQL["no_sync"])
        for statement in (*script("schema"), *script("projections")):
            conn.execute(statement)
        conn.execute("DROP TRIGGER event_dense")
        began = time.process_time()
        for log in logs:
            conn.execute(SQL["attach_log"], (str(log),))
            conn.execute(SQL["begin"])
            for table in ("event", "body", "task"):
                _number_on(conn, table)
            conn.execute(SQL["commit"])
            conn.execute("DETACH log")
        for statement in script("indexes"):
            conn.execute(statement)
        return time.process_time() - began


def _number_on(conn: sqlite3.Connection, table: str) -> None:
    key, *others = (row[1] for row in conn.execute(f"PRAGMA table_info({table})"))
    conn.execute(
        f"INSERT INTO main.{table} SELECT {key} + (SELECT coalesce(max({key}), 0) "
        f"FROM main.{table}), {', '.join(others)} FROM log.{table} ORDER BY {key}"
    )


def _peak_mb(folder: RunFolder) -> float:
    """Of the command that merges the run; its union is there afterwards."""
    process = subprocess.Popen(
        [SIFTLOG, "merge", folder.path.name, "--runs-dir", folder.path.parent],
        stdout=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise RuntimeError(f"siftlog merge ended with {process.returncode}")
    return usage.ru_maxrss / 1024


def _seconds(work: Callable[[], object]) -> float:
    """Processor seconds of *work*."""
    began = time.process_time()
    work()
    return time.process_time() - began
