"""Planning a great many tasks: blocks with a manifest against one event a task (A6)."""

from __future__ import annotations

import asyncio
import hashlib
import tempfile
import time
from pathlib import Path

from store.clock import SystemClock
from store.database import connect
from store.log.sqlite import SqliteLog
from tests.bench.row import Row
from tests.bench.verdict import most, shown
from tests.store.samples import RUN_STARTED, plan, task

BLOCK = 1000


def measure(quick: bool) -> list[Row]:
    """The row of A6; quick plans a tenth of a million."""
    count = 100_000 if quick else 1_000_000
    with tempfile.TemporaryDirectory() as folder:
        floor_s = _one_event_a_task(Path(folder, "floor.db"), count)
        log_s = asyncio.run(_blocks(Path(folder, "log.db"), count))
    return [
        most("A6", f"{count:,} tasks in blocks / one by one", log_s / floor_s, 0.2),
        shown(f"planning {count:,} tasks, s", log_s),
    ]


def _one_event_a_task(path: Path, count: int) -> float:
    """An event and a task with a unique hash of its key, each; 1000 a commit."""
    conn = connect(path)
    for statement in (
        "PRAGMA journal_mode = WAL",
        "PRAGMA synchronous = FULL",
        "CREATE TABLE event(seq INTEGER PRIMARY KEY, task INTEGER, body TEXT)",
        "CREATE TABLE task(task INTEGER PRIMARY KEY, key BLOB UNIQUE, state INTEGER)",
    ):
        conn.execute(statement)
    began = time.perf_counter()
    for first in range(0, count, BLOCK):
        conn.execute("BEGIN IMMEDIATE")
        for number in range(first, first + BLOCK):
            key = f"ask/item-{number}/m-large/1"
            digest = hashlib.sha256(key.encode()).digest()[:16]
            body = f'{{"stage":"ask","key":"{key}"}}'
            conn.execute("INSERT INTO event(task, body) VALUES (?, ?)", (number, body))
            conn.execute("INSERT INTO task VALUES (?, ?, 0)", (number, digest))
        conn.execute("COMMIT")
    taken = time.perf_counter() - began
    conn.close()
    return taken


async def _blocks(path: Path, count: int) -> float:
    async with await SqliteLog.create(
        path, run_id="bench", config_sha256=b"", clock=SystemClock(), owner="bench"
    ) as log:
        await log.append(RUN_STARTED)
        began = time.perf_counter()
        for first in range(1, count, BLOCK):
            rows = [task(number) for number in range(first, first + BLOCK)]
            await log.append(plan(rows, first=first))
        return time.perf_counter() - began
