"""Verification finds what was changed, and where; and a sound log is found sound."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from store.database import SQL, open_reader
from store.events import Entry, Input, ScoringRecorded
from store.log.projections import rebuild
from store.log.sqlite import SqliteLog
from store.verify import TABLES, VerifyReport, verify
from tests.store.memory_log import FakeClock
from tests.store.samples import (
    RUN_STARTED,
    answered,
    blob,
    completed,
    courses,
    plan_first,
    started,
)


def write(path: Path, entries: list[Entry], batch: int = 1) -> None:
    async def work() -> None:
        async with await SqliteLog.create(
            path, run_id="r1", config_sha256=b"", clock=FakeClock(), owner="tester"
        ) as log:
            for start in range(0, len(entries), batch):
                await log.append(*entries[start : start + batch])

    asyncio.run(work())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A small sound log: events 1 to 5, two message parts."""
    path = tmp_path / "log.db"
    parts = (blob(b"a paper " * 200), blob(b"a question"))
    write(
        path,
        [
            Entry(event=RUN_STARTED),
            plan_first(2),
            Entry(event=started(1), payload=b"{}", blobs=parts),
            Entry(event=answered(1), payload=b"a reply " * 200),
            Entry(event=completed(1)),
        ],
    )
    return path


def checked(path: Path) -> VerifyReport:
    with open_reader(path) as reader:
        return verify(reader)


def edit(path: Path, *statements: str) -> None:
    with sqlite3.connect(path) as conn:
        for statement in statements:
            conn.execute(statement)
    conn.close()


def test_a_sound_log_is_sound(path: Path) -> None:
    report = checked(path)
    assert report.is_sound
    assert (report.events, report.commits, report.blobs) == (5, 5, 2)
    assert (report.unknown, report.projections_compared) == (0, True)


def test_an_empty_log_is_sound(tmp_path: Path) -> None:
    write(tmp_path / "log.db", [])
    report = checked(tmp_path / "log.db")
    assert report.is_sound
    assert report.events == 0


UNLOCK = {
    "event": "DROP TRIGGER event_no_update",
    "body": "DROP TRIGGER body_no_update",
    "gone": "DROP TRIGGER event_no_delete",
    "chain": "DROP TRIGGER chain_no_delete",
}
OTHER_TOKENS = """
UPDATE event SET facts = CAST(
  replace(CAST(facts AS TEXT), '"tokens_in":50', '"tokens_in":60') AS BLOB)
"""


@pytest.mark.parametrize(
    ("unlock", "statement", "what", "where"),
    [
        ("event", "UPDATE event SET task = 2 WHERE seq = 3", "chain", "events 3 to 3"),
        ("event", OTHER_TOKENS, "chain", "events 4 to 4"),
        ("event", "UPDATE event SET ts_us = 1 WHERE seq = 3", "event", "event 3"),
        ("event", "UPDATE event SET facts = x'7b'", "event", "event 1"),
        ("body", "UPDATE body SET data = x'00' WHERE seq = 4", "event", "event 4"),
        ("gone", "DELETE FROM event WHERE seq = 2", "chain", "events 2 to 2"),
        ("chain", "DELETE FROM chain WHERE last_seq = 5", "chain", "event 5"),
        (None, "UPDATE counts SET n = 9", "projection", "table counts"),
        (None, "UPDATE task SET key = 'other'", "projection", "table task, row 1"),
        (None, "DELETE FROM minute", "projection", "table minute"),
    ],
)
def test_a_change_is_found_and_named(
    path: Path, unlock: str | None, statement: str, what: str, where: str
) -> None:
    edit(path, *([UNLOCK[unlock]] if unlock else []), statement)
    report = checked(path)
    assert not report.is_sound
    assert report.faults[0].what == what
    assert report.faults[0].where.startswith(where)


def test_a_changed_message_part_is_found_by_its_hash(path: Path) -> None:
    question = blob(b"a question").sha256.hex()
    edit(
        path,
        "DROP TRIGGER blob_no_update",
        f"UPDATE blob SET data = x'61' WHERE sha256 = x'{question}'",
    )
    (fault, *_) = checked(path).faults
    assert (fault.what, fault.where) == ("blob", question)


def test_a_message_part_of_another_size_is_found(path: Path) -> None:
    question = blob(b"a question").sha256.hex()
    edit(
        path,
        "DROP TRIGGER blob_no_update",
        f"UPDATE blob SET size = size + 1 WHERE sha256 = x'{question}'",
    )
    (fault, *_) = checked(path).faults
    assert (fault.what, fault.where) == ("blob", question)


def requests(parts: Sequence[str]) -> list[dict[str, object]]:
    """One request of each kind; each names all parts."""
    message = {"role": "user", "parts": list(parts)}
    schema = {"name": "s", "sha256": parts[0]}
    return [
        {"model": "m", "messages": [message], "schema": None},
        {"model": "m", "messages": [message], "schema": schema},
        {"model": "m", "kind": "embed", "texts": list(parts)},
        {"model": "m", "kind": "rerank", "query": parts[0], "documents": parts[1:]},
    ]


@pytest.mark.parametrize("form", range(4))
def test_a_missing_message_part_is_found_by_the_request_that_has_it(
    tmp_path: Path, form: int
) -> None:
    path = tmp_path / "log.db"
    blobs = (blob(b"a paper"), blob(b"a question"))
    request = requests([part.sha256.hex() for part in blobs])[form]
    sent = Entry(event=started(1), payload=json.dumps(request).encode(), blobs=blobs)
    write(path, [Entry(event=RUN_STARTED), plan_first(2), sent])
    assert checked(path).is_sound
    edit(
        path,
        "DROP TRIGGER blob_no_delete",
        f"DELETE FROM blob WHERE sha256 = x'{blobs[1].sha256.hex()}'",
    )
    (fault, *_) = checked(path).faults
    assert (fault.what, fault.where) == ("blob", blobs[1].sha256.hex())
    assert "event 3 names it" in fault.message


@pytest.mark.parametrize("missing", [b"a scorecard", b"gold labels"])
def test_a_missing_scorecard_or_kept_input_is_found_by_its_scoring(
    tmp_path: Path, missing: bytes
) -> None:
    path = tmp_path / "log.db"
    scorecard, gold = blob(b"a scorecard"), blob(b"gold labels")
    scored = ScoringRecorded(
        number=1,
        job_version="1",
        code_sha256="",
        settings="{}",
        inputs=[
            Input(
                setting="truth",
                path="truth.csv",
                sha256=gold.sha256.hex(),
                kept="file",
            ),
            Input(setting="papers", path="papers.csv", sha256="b" * 64),
        ],
        seq=2,
        digest=scorecard.sha256.hex(),
        definitions="c" * 64,
    )
    entry = Entry(event=scored, blobs=(scorecard, gold))
    write(path, [Entry(event=RUN_STARTED), plan_first(2), entry])
    assert checked(path).is_sound
    sha256 = blob(missing).sha256.hex()
    edit(
        path,
        "DROP TRIGGER blob_no_delete",
        f"DELETE FROM blob WHERE sha256 = x'{sha256}'",
    )
    (fault, *_) = checked(path).faults
    assert (fault.what, fault.where) == ("blob", sha256)


def test_bytes_changed_in_the_file_are_found(path: Path) -> None:
    content = bytearray(path.read_bytes())
    at = content.index(b"item-2")
    content[at : at + 6] = b"item-9"
    path.write_bytes(content)
    assert not checked(path).is_sound


def test_events_of_kinds_not_known_are_counted_and_passed_over(path: Path) -> None:
    edit(path, "UPDATE kind SET name = 'of_the_future' WHERE name = 'task_completed'")
    report = checked(path)
    assert report.unknown == 1
    assert [fault.what for fault in report.faults] == ["chain"]


@settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(entries=courses())
def test_what_is_kept_live_is_what_a_rebuild_gives(
    tmp_path_factory: pytest.TempPathFactory, entries: list[Entry]
) -> None:
    path = tmp_path_factory.mktemp("log") / "log.db"
    write(path, entries, batch=3)
    assert checked(path).faults == ()
    with sqlite3.connect(path, isolation_level=None) as conn:
        before = _rows(conn)
        rebuild(conn)
        after = _rows(conn)
    conn.close()
    assert after == before


def _rows(conn: sqlite3.Connection) -> dict[str, list[tuple[object, ...]]]:
    return {table: conn.execute(SQL[f"rows_{table}"]).fetchall() for table in TABLES}
