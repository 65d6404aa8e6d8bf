"""Runs by the names that people type."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from store.database import WriterLock
from store.errors import AmbiguousRun, NoSuchRun, NotALog
from store.log.sqlite import SqliteLog
from store.runs import RunFolder, list_runs, resolve
from tests.store.memory_log import FakeClock


def make(runs_dir: Path, name: str, at_us: int = 1000) -> RunFolder:
    folder = RunFolder(runs_dir / name)
    folder.path.mkdir(parents=True)

    async def create() -> None:
        await (
            await SqliteLog.create(
                folder.log,
                run_id=name,
                config_sha256=b"",
                clock=FakeClock(start_us=at_us),
                owner="tester",
            )
        ).close()

    asyncio.run(create())
    return folder


def test_a_run_is_found_by_id_beginning_and_folder(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    wanted = make(runs, "0101-alpha")
    make(runs, "0102-beta")
    for name in ("0101-alpha", "0101", str(wanted.path)):
        found = resolve(runs, name)
        assert found.path.samefile(wanted.path)
        assert found.run_id == "0101-alpha"


def test_a_whole_id_wins_over_longer_ones_that_begin_so(tmp_path: Path) -> None:
    wanted = make(tmp_path, "a")
    make(tmp_path, "ab")
    assert resolve(tmp_path, "a") == wanted


def test_a_folder_may_be_named_from_where_one_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, "here")
    monkeypatch.chdir(tmp_path / "here")
    assert resolve(tmp_path / "nowhere", ".").run_id == "here"


def test_last_is_the_run_that_was_made_last(tmp_path: Path) -> None:
    make(tmp_path, "a-late", at_us=3000)
    make(tmp_path, "b-early", at_us=1000)
    broken = tmp_path / "c-broken"
    broken.mkdir()
    (broken / "log.db").write_text("nothing")
    assert resolve(tmp_path, "last").run_id == "a-late"


def test_names_that_fit_nothing_or_too_much_say_what_to_do(tmp_path: Path) -> None:
    make(tmp_path, "one-a")
    make(tmp_path, "one-b")
    (tmp_path / "empty").mkdir()
    with pytest.raises(AmbiguousRun, match="one-a and one-b: use a longer"):
        resolve(tmp_path, "one")
    for name in ("two", "", "../one"):
        with pytest.raises((NoSuchRun, NotALog), match="siftlog runs"):
            resolve(tmp_path, name)
    with pytest.raises(NotALog, match="'empty' holds no run"):
        resolve(tmp_path, "empty")
    with pytest.raises(NoSuchRun, match="siftlog run'"):
        resolve(tmp_path / "nowhere", "last")


def test_runs_are_listed_by_name_and_other_folders_passed_over(tmp_path: Path) -> None:
    make(tmp_path, "b")
    make(tmp_path, "a")
    (tmp_path / "notes").mkdir()
    (tmp_path / "file").touch()
    assert [folder.run_id for folder in list_runs(tmp_path)] == ["a", "b"]
    assert list_runs(tmp_path / "nowhere") == []


def test_a_run_is_alive_while_its_log_is_open(tmp_path: Path) -> None:
    folder = make(tmp_path, "r")

    async def work() -> None:
        assert not folder.is_alive()
        async with await SqliteLog.open(folder.log, clock=FakeClock(), owner="x"):
            assert folder.is_alive()
        assert not folder.is_alive()

    asyncio.run(work())


def test_who_places_shards_elsewhere_is_at_work_on_their_run(tmp_path: Path) -> None:
    folder = make(tmp_path, "r")
    lock = WriterLock(folder.driver_lock)
    lock.acquire()
    assert folder.is_alive()
    assert not folder.is_written()
    assert not folder.shard(0, 2).is_alive()
    lock.release()
    assert not folder.is_alive()


def test_a_run_is_dead_when_its_process_was_killed(tmp_path: Path) -> None:
    folder = make(tmp_path, "r")
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        descriptor = os.open(folder.lock, os.O_RDWR)
        import fcntl  # noqa: PLC0415 - the child holds the lock as a writer does

        fcntl.flock(descriptor, fcntl.LOCK_EX)
        os.write(writer, b"!")
        os.read(reader, 0)
        while True:
            os.sched_yield()
    os.read(reader, 1)
    assert folder.is_alive()
    os.kill(child, 9)
    os.waitpid(child, 0)
    assert not folder.is_alive()


@pytest.mark.parametrize(
    ("name", "is_valid"),
    [
        ("20260101-claims", True),
        ("a.b_c-1", True),
        ("last", False),
        ("", False),
        ("..", False),
        ("-a", False),
        ("a/b", False),
        ("a b", False),
        ("a\n", False),
        ("é", False),
        ("x" * 101, False),
    ],
)
def test_ids_are_safe_as_folder_names_and_words(name: str, *, is_valid: bool) -> None:
    assert RunFolder.is_valid_id(name) is is_valid
