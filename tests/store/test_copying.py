"""A copy of a log holds what was committed, in bytes that nothing else decides."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from store import database
from store.database import copy_log, open_reader
from store.errors import NotALog, StoreError, ignore_progress
from store.events import Entry
from store.log.sqlite import SqliteLog
from store.read.tasks import events
from store.tables import head
from store.verify import verify
from tests.store.memory_log import FakeClock
from tests.store.samples import RUN_STARTED, answered, completed, plan_first, started

COURSE = (
    Entry(event=RUN_STARTED),
    plan_first(2),
    Entry(event=started(1)),
    Entry(event=answered(1), payload=b"a reply " * 200),
    Entry(event=completed(1)),
)


def test_a_log_is_copied_while_it_is_written(tmp_path: Path) -> None:
    source, first, second = (tmp_path / name for name in ("log.db", "1.db", "2.db"))

    async def write() -> None:
        async with await SqliteLog.create(
            source, run_id="r1", config_sha256=b"", clock=FakeClock(), owner="tester"
        ) as log:
            await log.append(*COURSE[:3])
            copy_log(source, first, ignore_progress)
            await log.append(*COURSE[3:])
            await log.heartbeat()
            copy_log(source, second, ignore_progress)

    asyncio.run(write())
    for path, count in ((first, 3), (second, 5)):
        with open_reader(path) as copy, open_reader(source) as whole:
            assert verify(copy).is_sound
            of_copy = events(copy, limit=100)
            assert of_copy == events(whole, limit=100)[:count]
    with open_reader(second) as copy, open_reader(source) as whole:
        assert head(copy) == head(whole)
    copy_log(source, tmp_path / "3.db", ignore_progress)
    assert (tmp_path / "3.db").read_bytes() == second.read_bytes()
    assert not list(tmp_path.glob("?.db-*"))


def test_what_is_no_log_is_not_copied(tmp_path: Path) -> None:
    (tmp_path / "x.db").write_bytes(b"something else" * 1000)
    with pytest.raises(NotALog):
        copy_log(tmp_path / "x.db", tmp_path / "y.db", ignore_progress)
    assert not (tmp_path / "y.db").exists()


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    source = tmp_path / "log.db"
    asyncio.run(_empty(source))
    with pytest.raises(StoreError, match=r"cannot be copied to .*nowhere"):
        copy_log(source, tmp_path / "nowhere" / "x.db", ignore_progress)


def test_a_copy_can_be_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "STEPS", 1)
    source = tmp_path / "log.db"
    asyncio.run(_empty(source))

    def stop(line: str) -> None:
        assert line.endswith("MB of the log copied")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        copy_log(source, tmp_path / "x.db", stop)


async def _empty(path: Path) -> None:
    async with await SqliteLog.create(
        path, run_id="r1", config_sha256=b"", clock=FakeClock(), owner="tester"
    ):
        pass
