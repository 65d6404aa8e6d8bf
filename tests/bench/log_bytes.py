"""Bytes on disk: message parts against whole prompts, and what a log adds (B1, B2)."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import tempfile
from pathlib import Path
from typing import NamedTuple

from store.clock import SystemClock
from store.database import connect
from store.events import Entry
from store.log.sqlite import SqliteLog
from tests.bench.prose import prose, replies
from tests.bench.row import Row
from tests.bench.verdict import least, most
from tests.store.samples import RUN_STARTED, blob, completed, plan, reply, started, task

QUESTIONS = 20
PAPER_BYTES = 60_000
KB = 1024
PAGE_BYTES = 16 * KB
BATCH = 1000
"""Replies queued at a time; a log refuses more than 64 MiB."""


def measure(quick: bool) -> list[Row]:
    """The rows of B1 and B2."""
    papers = 10 if quick else 100
    answers = 5_000 if quick else 20_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        inline = _inline(folder / "inline.db", papers)
        asyncio.run(_parts(folder / "log.db", papers))
        parts = (folder / "log.db").stat().st_size
        rows = [
            least("B1", f"inline / parts, {papers} papers x 20", inline / parts, 15)
        ]
        for size in (KB, 8 * KB):
            path = folder / f"{size}.db"
            written = asyncio.run(_replies(path, size, answers))
            used = path.stat().st_size
            at = f"{size // KB} KB replies"
            ratio = used / (written.bodies + written.facts)
            beside = (used - written.before - written.bodies) / answers
            what = f"file bytes / stored byte, {at}"
            rows.append(most("B2", what, ratio, 1.2 if size == KB else 1.12))
            what = f"file bytes an answer beside its body, {at}"
            rows.append(most("B2", what, beside, 250 if size == KB else None))
    return rows


class _Written(NamedTuple):
    """What a log of replies was given to keep, in bytes."""

    before: int  #: of the file with its plan, without any answer
    bodies: int  #: as stored
    facts: int


def _messages(paper: int, question: int) -> list[bytes]:
    return [
        b"You answer questions about papers.",
        prose(PAPER_BYTES, paper),
        b"Question: " + prose(200, paper * 100 + question),
    ]


def _inline(path: Path, papers: int) -> int:
    """Every prompt as one JSON text."""
    conn = connect(path)
    conn.execute("CREATE TABLE event(seq INTEGER PRIMARY KEY, body TEXT)")
    for paper in range(papers):
        for question in range(QUESTIONS):
            texts = [part.decode() for part in _messages(paper, question)]
            body = json.dumps({"messages": texts})
            conn.execute("INSERT INTO event(body) VALUES (?)", (body,))
    conn.close()
    return path.stat().st_size


async def _parts(path: Path, papers: int) -> None:
    """The same prompts as attempts of a log, projections and all."""
    async with await _log(path) as log:
        count = papers * QUESTIONS
        await log.append(RUN_STARTED, plan([task(n) for n in range(1, count + 1)]))
        for number in range(1, count + 1):
            messages = _messages(*divmod(number - 1, QUESTIONS))
            blobs = tuple(map(blob, messages))
            payload = json.dumps([part.sha256.hex() for part in blobs]).encode()
            await log.append(Entry(event=started(number), payload=payload, blobs=blobs))


async def _replies(path: Path, size: int, count: int) -> _Written:
    """Write a log of replies."""
    async with await _log(path) as log:
        await log.append(RUN_STARTED, plan([task(n) for n in range(1, count + 1)]))
        before = await log._read(_pages)
        for number, body in enumerate(replies(size, count), 1):
            log.append_nowait(reply(number, body))
            if number % BATCH == 0:
                await log.last_seq()  # in turn after what is queued
        await log.append(completed(1))
        (facts,) = await log._read(
            lambda conn: conn.execute("SELECT sum(length(facts)) FROM event").fetchone()
        )
        bodies = log.statistics().bytes_written
        return _Written(before * PAGE_BYTES, bodies, int(facts))


def _pages(conn: sqlite3.Connection) -> int:
    (pages,) = conn.execute("PRAGMA page_count").fetchone()
    return int(pages)


async def _log(path: Path) -> SqliteLog:
    return await SqliteLog.create(
        path, run_id="bench", config_sha256=b"", clock=SystemClock(), owner="bench"
    )
