"""A log carried to a place and read there, beside a bare cursor over its rows."""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections import deque
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from store.clock import SystemClock
from store.database import SQL, LogReader, connect, open_reader
from store.events import Entry
from store.log import opening
from store.log.writer import PreparedEntry, Writer
from store.segments.place import Place
from store.segments.shipping import SegmentSender
from store.segments.source import sources
from store.union.source import LocalLogSource
from tests.bench.prose import prose
from tests.bench.row import Row
from tests.bench.verdict import shown
from tests.store.samples import RUN_STARTED, plan, reply, task

BYTES = 1024
"""Of an answer, before compression."""
COMMIT = 64
"""Events a commit holds, as under load."""


def measure(quick: bool) -> list[Row]:
    """Export and import in MB of the log's rows a second, and what a segment takes."""
    events = 20_000 if quick else 200_000
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log.db")
        _build(path, events)
        rounds = [_round(path, Path(folder, f"place-{n}")) for n in range(3)]
    middle = [statistics.median(values) for values in zip(*rounds, strict=True)]
    stored, size, cursor_s, log_s, out_s, in_s = middle
    return [
        shown("events carried, 1 KB answers", float(events)),
        shown("bytes an event: facts and bodies in the log", stored / events),
        shown("bytes an event: in segments", size / events),
        shown("bare cursor over the rows, MB/s", stored / cursor_s / 1e6),
        shown("rows in stretches, MB/s", stored / log_s / 1e6),
        shown("carried to a folder, MB/s", stored / out_s / 1e6),
        shown("carried to a folder, share of the cursor's speed", cursor_s / out_s),
        shown("read and checked in the folder, MB/s", stored / in_s / 1e6),
        shown("read and checked, share of the cursor's speed", cursor_s / in_s),
    ]


def _build(path: Path, events: int) -> None:
    chance = random.Random(0)
    # each another piece of one text: a body is compressed by itself, so that what two
    # of them share is not seen any more
    text = prose(4 << 20, seed=1)
    cuts = [chance.randrange(len(text) - BYTES) for _ in range(events)]
    with closing(connect(path)) as conn:
        opening.create(
            conn, path, run_id="bench", owner="bench", config_sha256=b"", now_us=1
        )
        opened = opening.open_for_writing(conn, path, owner="bench", now_us=1)
        conn.execute("PRAGMA synchronous = OFF")
        writer = Writer(conn, epoch=opened.epoch, position=opened.position)
        begun = (RUN_STARTED, plan([task(n) for n in range(1, events + 1)]))
        writer.commit([[PreparedEntry.of(event, 1) for event in begun]])
        for first in range(0, events, COMMIT):
            numbers = range(first + 1, min(first + COMMIT, events) + 1)
            writer.commit(
                [[PreparedEntry.of(_reply(n, text, cuts), 1) for n in numbers]]
            )
        writer.write_projections()


def _reply(number: int, text: bytes, cuts: list[int]) -> Entry:
    start = cuts[number - 1]
    return reply(number, text[start : start + BYTES])


def _round(path: Path, folder: Path) -> tuple[float, ...]:
    place = Place.of(str(folder))
    with open_reader(path) as reader:
        stored = _stored(reader)
        cursor_s = _timed(lambda: _all(reader.execute(SQL["link_rows"], (0, 1 << 62))))
        log_s = _timed(lambda: _all(LocalLogSource(reader).commit_ranges(0)))
        sending = SegmentSender(
            reader,
            place,
            shard=None,
            siftlog_version="bench",
            now_us=SystemClock().now_us,
        )
        out_s = _timed(sending.send)
    (source,) = sources(place)
    in_s = _timed(lambda: _all(source.commit_ranges(0)))
    return stored, sending.sent.bytes, cursor_s, log_s, out_s, in_s


def _stored(reader: LogReader) -> int:
    return sum(
        len(row[10]) + len(row[11] or b"")
        for row in reader.execute(SQL["link_rows"], (0, 1 << 62))
    )


def _all(rows: object) -> None:
    deque(rows, maxlen=0)  # type: ignore[call-overload]


def _timed(work: Callable[[], None]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began
