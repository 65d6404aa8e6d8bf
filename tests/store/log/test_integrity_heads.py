"""The sidecar of a log: what it proves, and that it never gets in the way."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from store.errors import CorruptLog, EventsLost
from store.log.integrity import (
    LINE_BYTES,
    SLOT_BYTES,
    SlotFile,
    check_absent,
    check_end,
    compare_end,
    heads_path,
    open_slots,
    read_head,
)
from store.log.sqlite import SqliteLog
from store.runs import RunFolder
from tests.store.logs import create, edit, reopen
from tests.store.memory_log import FakeClock
from tests.store.samples import RUN_STARTED, completed, plan_first, reply, started

pytestmark = pytest.mark.asyncio


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "r1"
    folder.mkdir()
    return folder / "log.db"


async def _written(path: Path, tasks: int = 3) -> None:
    async with await create(path) as log:
        await log.append(RUN_STARTED)
        await log.append(plan_first(tasks))
        for task in range(1, tasks + 1):
            await log.append(started(task))
            await log.append(reply(task, b"{}"))
            await log.append(completed(task))


async def _killed(path: Path, tasks: int = 3) -> Path:
    """The files of a log as kill -9 leaves them, with all of it in the WAL."""
    left = path.parent.parent / "left"
    left.mkdir()
    async with await create(path) as log:
        await log.append(RUN_STARTED)
        await log.append(plan_first(tasks))
        for task in range(1, tasks + 1):
            await log.append(started(task))
        for file in path.parent.iterdir():
            shutil.copyfile(file, left / file.name)
    return left / "log.db"


def _kept(log: Path, *, seq: int) -> None:
    """Checkpoint a log whose writer is gone, then take away what follows an event."""
    with closing(sqlite3.connect(log)) as db:
        for (name,) in db.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'trigger'"
        ).fetchall():
            db.execute(f"DROP TRIGGER {name}")
        db.execute("DELETE FROM event WHERE seq > ?", (seq,))
        db.execute("DELETE FROM chain WHERE last_seq > ?", (seq,))
        db.execute("UPDATE projection SET code_ver = 0")
        db.commit()


async def test_what_is_acknowledged_is_noted_before_anybody_hears_of_it(
    path: Path,
) -> None:
    async with await create(path) as log:
        for event in (RUN_STARTED, plan_first(2)):
            seq = await log.append(event)
            head = read_head(path)
            assert head is not None
            assert (head.seq, head.epoch, head.closed) == (seq, 1, False)
            assert compare_end(path).acknowledged == seq
    head = read_head(path)
    assert head is not None
    assert head.closed
    assert compare_end(path).sentence == "all 2 acknowledged events are in log.db"


async def test_a_log_that_lost_its_end_is_opened_only_by_who_accepts_that(
    path: Path,
) -> None:
    await _written(path)
    _kept(path, seq=6)
    end = compare_end(path)
    assert (end.events, end.acknowledged, end.missing_events) == (6, 11, 5)
    for _ in range(2):  # being refused changes nothing
        with pytest.raises(EventsLost, match="6, but 11 were acknowledged: 5 are miss"):
            await reopen(path)
    async with await SqliteLog.open(
        path, clock=FakeClock(), owner="me", accept_loss=True
    ) as log:
        assert log.lost == 5
        assert compare_end(path).acknowledged == 6
    assert not compare_end(path).has_loss
    async with await reopen(path) as log:
        assert log.lost == 0


async def test_events_that_are_gone_from_under_their_commit_are_called_damage(
    path: Path,
) -> None:
    await _written(path)
    with closing(sqlite3.connect(path)) as db:
        for (name,) in db.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'trigger'"
        ).fetchall():
            db.execute(f"DROP TRIGGER {name}")
        db.execute("DELETE FROM event WHERE seq > 8")
        db.commit()
    assert compare_end(path).sentence.endswith(": 3 are missing (log.db is damaged)")


async def test_another_event_in_the_place_of_the_last_one_is_noticed(
    path: Path,
) -> None:
    await _written(path)
    edit(path, "DROP TRIGGER chain_no_update", "UPDATE chain SET h = zeroblob(32)")
    assert compare_end(path).is_last_changed
    with pytest.raises(EventsLost, match=r"event 11 of log\.db, the last one ackn"):
        await reopen(path)


async def test_a_killed_log_without_its_wal_is_refused_and_not_begun_anew(
    path: Path,
) -> None:
    log = await _killed(path)
    assert compare_end(log).acknowledged == 5
    log.with_name("log.db-wal").unlink()
    with pytest.raises(EventsLost, match=r"5 events were acknowledged .*log\.db-wal"):
        check_end(log, accept_loss=True)
    with pytest.raises(EventsLost):
        await create(log)
    log.unlink()
    with pytest.raises(EventsLost, match="is missing, with 5 acknowledged events"):
        await create(log)
    assert not log.exists()
    heads_path(log).unlink()
    async with await create(log) as fresh:
        await fresh.append(RUN_STARTED)


@pytest.mark.parametrize("how", ["gone", "torn", "empty", "noise"])
async def test_whatever_becomes_of_the_sidecar_a_sound_log_is_opened(
    path: Path, how: str
) -> None:
    await _written(path)
    sidecar = heads_path(path)
    match how:
        case "gone":
            sidecar.unlink()
        case "torn":
            data = bytearray(sidecar.read_bytes())
            data[100] ^= 1
            data[SLOT_BYTES + 100] ^= 1
            sidecar.write_bytes(data)
        case "empty":
            sidecar.write_bytes(b"")
        case _:
            sidecar.write_bytes(b"\xff" * 5000)
    end = compare_end(path)
    assert (end.acknowledged, end.has_loss) == (None, False)
    assert "log.heads" in end.sentence
    check_absent(path)
    async with await reopen(path):
        assert compare_end(path).acknowledged == 11
    assert compare_end(path).acknowledged == 11


async def test_the_sidecar_of_another_log_is_no_proof_and_no_excuse(
    path: Path,
) -> None:
    await _written(path)
    other = path.with_name("other.db")
    async with await SqliteLog.create(
        other, run_id="other", config_sha256=b"", clock=FakeClock(), owner="me"
    ) as log:
        await log.append(RUN_STARTED)
    shutil.copyfile(heads_path(other), heads_path(path))
    with pytest.raises(EventsLost, match=r"log\.heads is of another log than log\.db"):
        await reopen(path)


async def test_one_torn_slot_leaves_the_other(path: Path) -> None:
    await _written(path)
    sidecar = heads_path(path)
    whole = sidecar.read_bytes()
    seqs = set()
    for slot in range(2):
        data = bytearray(whole)
        data[slot * SLOT_BYTES + 40] ^= 1
        sidecar.write_bytes(data)
        head = read_head(path)
        assert head is not None
        seqs.add((head.seq, head.closed))
        assert not compare_end(path).has_loss
    assert len(whole) == SLOT_BYTES + LINE_BYTES
    assert seqs == {(11, True), (11, False)}


async def test_a_sidecar_that_cannot_be_written_fails_nothing(path: Path) -> None:
    class Full:
        def __init__(self, file: SlotFile) -> None:
            self.file = file
            self.writes = 0

        def write(self, offset: int, data: bytes) -> None:
            self.writes += 1
            if self.writes > 4:
                raise OSError(28, "No space left on device")
            self.file.write(offset, data)

        def sync(self) -> None:
            self.file.sync()

        def close(self) -> None:
            self.file.close()

    async with await SqliteLog.create(
        path,
        run_id="r1",
        config_sha256=bytes(32),
        clock=FakeClock(),
        owner="me",
        open_slots=lambda place: Full(open_slots(place)),
    ) as log:
        for _ in range(5):
            await log.append(RUN_STARTED)
    end = compare_end(path)
    assert (end.events, end.acknowledged, end.has_loss) == (5, 2, False)


async def test_where_no_sidecar_can_be_made_the_log_is_as_good(path: Path) -> None:
    heads_path(path).mkdir()
    await _written(path)
    assert compare_end(path).acknowledged is None


async def test_pages_of_different_ages_are_noticed_on_opening(path: Path) -> None:
    await _written(path)
    for statement in (
        "UPDATE task SET state = 1, event_seq = 3 WHERE task = 1",
        "UPDATE event SET attempt = 7 WHERE seq = 4",
    ):
        copy = shutil.copytree(path.parent, path.parent.with_name("copy"))
        heads_path(path).unlink()  # it does not say any more that it was closed
        edit(path, "DROP TRIGGER event_no_update", statement)
        with pytest.raises(CorruptLog, match="near its end"):
            await reopen(path)
        shutil.rmtree(path.parent)
        copy.rename(path.parent)


async def test_a_run_has_the_ends_of_its_own_logs_gone_ones_included(
    tmp_path: Path,
) -> None:
    folder = RunFolder(tmp_path)
    for shard in (folder.shard(0, 2), folder.shard(1, 2)):
        async with await create(shard.log) as log:
            await log.append(RUN_STARTED)
    assert [end.log.name for end in folder.ends()] == ["log.0-2.db", "log.1-2.db"]
    folder.shard(1, 2).log.unlink()
    with pytest.raises(EventsLost, match=r"log\.1-2\.db"):
        folder.ends()
