"""Writes the golden logs that are missing: `python -m tests.replay.write_golden`.

Run it for each release, for a new version of the tables or of an event, and for a new
kind, never again for an old one: what is committed is what old siftlogs have written.
A log is kept as SQL text, so that a review can read it. Its last events are of a
version 0 that no siftlog ever wrote: they show, in every later version too, that an old
row is read through its upcaster.
"""

from __future__ import annotations

import asyncio
import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import closing
from importlib.metadata import version
from pathlib import Path

from store.events import AttemptFailed, AttemptStarted, Entry
from store.log.sqlite import SqliteLog
from store.log.writer import PreparedEntry
from tests.replay.every_kind import ENTRIES, all_entries
from tests.store.memory_log import FakeClock

GOLDEN = Path(__file__).parent / "golden"
RELEASE = f"release-{version('siftlog')}"
"""The log of this release, which holds an event of every kind."""

OLD_STARTED = AttemptStarted(task=5, attempt=1, request_sha256="b" * 64)
#: As version 1 has it; version 0 had other names and seconds.
OLD_FAILED = AttemptFailed(
    task=5,
    attempt=1,
    error="ServerError",
    latency_ms=1500.0,
    message="oops",
    status=500,
)
OLD_FACTS = (
    b'{"task":5,"attempt":1,"class":"ServerError","latency_s":1.5,"text":"oops",'
    b'"status":500}'
)


async def _write(path: Path, entries: Sequence[Entry]) -> None:
    clock = FakeClock()
    async with await SqliteLog.create(
        path, run_id="golden", config_sha256=b"c" * 32, clock=clock, owner="golden"
    ) as log:
        for entry in entries:
            clock.advance(7.0)
            await log.append(entry)
        await log.append(OLD_STARTED)
        _write_old(log, clock)


def _write_old(log: SqliteLog, clock: FakeClock) -> None:
    """Commit an event as an older siftlog would have."""
    fact = PreparedEntry(
        clock.now_us(), Entry(event=OLD_FAILED), OLD_FACTS, len(OLD_FACTS)
    )
    AttemptFailed.VERSION = 0
    log._committer.put((fact,), None)


def main() -> None:
    """Write each of `golden/<name>.sql`, unless it is there."""
    for name, entries in {**ENTRIES, RELEASE: all_entries()}.items():
        target = GOLDEN / f"{name}.sql"
        if not target.exists():
            _golden(target, entries)


def _golden(target: Path, entries: Sequence[Entry]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "log.db")
        asyncio.run(_write(path, entries))
        AttemptFailed.VERSION = 1  # the log's thread has read it by now
        with closing(sqlite3.connect(path)) as conn:
            lines = [line for line in conn.iterdump() if "heartbeat VALUES" not in line]
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
