"""A copy of a log holds what was committed, in bytes that nothing else decides.

Readers, and the places where a log is hard to read.
"""

from __future__ import annotations

import asyncio
import errno
import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from store import database
from store.database import copy_log, open_reader
from store.errors import NoSuchRun, NotALog, StoreError, ignore_progress
from store.events import Entry
from store.log.sqlite import SqliteLog
from store.read.status import status
from store.read.tasks import events
from store.runs import list_runs
from store.tables import head, last_seq
from store.verify import verify
from tests.nobody import as_nobody, open_to_others
from tests.store.logs import COURSE, written
from tests.store.memory_log import FakeClock
from tests.store.samples import (
    RUN_STARTED,
    answered,
    completed,
    plan,
    plan_first,
    started,
    task,
)

COPYING_COURSE = (
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
            await log.append(*COPYING_COURSE[:3])
            copy_log(source, first, ignore_progress)
            await log.append(*COPYING_COURSE[3:])
            await log.heartbeat()
            await log.last_seq()  # its projections are written then
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


def test_a_log_that_is_not_there_yet_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(NoSuchRun, match="siftlog runs"):
        open_reader(tmp_path / "log.db")


def test_a_reader_cannot_write(path: Path) -> None:
    with (
        open_reader(written(path, *COURSE)) as reader,
        pytest.raises(sqlite3.OperationalError, match="readonly"),
    ):
        reader.execute("DELETE FROM counts")


def test_a_reader_is_closed_by_its_block(path: Path) -> None:
    with open_reader(written(path, *COURSE)) as reader:
        pass
    with pytest.raises(sqlite3.ProgrammingError, match="closed"):
        status(reader)


def test_a_log_left_by_a_crash_is_read_with_its_last_events(
    path: Path, tmp_path: Path
) -> None:
    crashed = tmp_path / "crashed"
    crashed.mkdir()

    async def work() -> None:
        async with await SqliteLog.create(
            path, run_id="r1", config_sha256=b"", clock=FakeClock(), owner="tester"
        ) as log:
            await log.append(RUN_STARTED, plan([task(1)]))
            for name in ("log.db", "log.db-wal"):  # and no -shm
                shutil.copy(tmp_path / name, crashed / name)

    asyncio.run(work())
    with open_reader(crashed / "log.db") as reader:
        assert last_seq(reader) == 2


@pytest.mark.parametrize("is_clean", [True, False])
def test_a_log_in_a_read_only_folder_is_read_and_nothing_left_behind(
    tmp_path_factory: pytest.TempPathFactory, *, is_clean: bool
) -> None:
    source = tmp_path_factory.mktemp("source")
    folder = tmp_path_factory.mktemp("locked")

    async def work() -> None:
        async with await SqliteLog.create(
            source / "log.db",
            run_id="r1",
            config_sha256=b"",
            clock=FakeClock(),
            owner="tester",
        ) as log:
            await log.append(RUN_STARTED, plan([task(1)]))
            if not is_clean:
                for name in ("log.db", "log.db-wal"):
                    shutil.copy(source / name, folder / name)

    asyncio.run(work())
    if is_clean:
        shutil.copy(source / "log.db", folder / "log.db")
    open_to_others(folder)
    folder.chmod(0o555)
    before = sorted(folder.iterdir())

    def look() -> None:
        with open_reader(folder / "log.db") as reader:
            if last_seq(reader) != 2 or reader.copied_to is None:
                raise AssertionError
            copy = Path(reader.copied_to.name)
        if copy.exists():
            raise AssertionError

    def look_at_a_large_one() -> None:
        database.COPY_BYTES = 10
        with pytest.raises(StoreError, match="too large"):
            open_reader(folder / "log.db")

    try:
        assert as_nobody(look) == 0
        assert as_nobody(look_at_a_large_one) == 0
        assert sorted(folder.iterdir()) == before
    finally:
        folder.chmod(0o755)


def test_a_folder_that_can_keep_a_log_has_no_problem(tmp_path: Path) -> None:
    assert database.wal_problem(tmp_path) is None
    assert list(tmp_path.iterdir()) == []
    problem = database.wal_problem(tmp_path / "nowhere")
    assert problem is not None
    assert "another folder" in problem


def test_a_log_that_cannot_be_copied_for_a_look_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "log.db").touch()
    monkeypatch.setattr(database.shutil, "copyfile", refuse)
    with pytest.raises(StoreError, match=r"No space left.*free space for temporary"):
        database._open_copy(tmp_path / "log.db")


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (sqlite3.SQLITE_FULL, "free space"),
        (sqlite3.SQLITE_IOERR_SHMSIZE, "free space"),
        (sqlite3.SQLITE_BUSY, "try again"),
        (sqlite3.SQLITE_CORRUPT, "restore a copy"),
    ],
)
def test_what_sqlite_could_not_do_is_told_with_the_next_step(
    code: int, told: str
) -> None:
    error = sqlite3.OperationalError("it failed")
    error.sqlite_errorcode = code
    assert told in str(database.unreadable(Path("log.db"), error))


def test_a_folder_that_may_not_be_entered_hides_no_other_run(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    runs = tmp_path_factory.mktemp("runs")
    for name in ("closed", "open"):
        (runs / name).mkdir()
        (runs / name / "log.db").touch()
    open_to_others(runs / "open")
    (runs / "closed").chmod(0o700 if os.getuid() == 0 else 0)

    def look() -> None:
        if [run.run_id for run in list_runs(runs)] != ["open"]:
            raise AssertionError

    try:
        assert as_nobody(look) == 0
    finally:
        (runs / "closed").chmod(0o755)
