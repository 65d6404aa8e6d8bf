"""Who holds a run back: as a whole, or lane by lane.

A log whose projections are of an older siftlog is read as it stands, and rebuilt.
"""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from store.database import connect, open_reader
from store.errors import CorruptLog
from store.events import RunPaused
from store.log import projections
from store.log.projections import rebuild
from store.log.sqlite import SqliteLog
from store.read.status import Pause, liveness, paused_by, status
from store.read.tasks import mean_costs, model_calls
from store.read.usage import error_counts, failures, usage_counts
from tests.replacing import replace
from tests.store.logs import COURSE, edit, reopen, written
from tests.store.memory_log import START_US, FakeClock
from tests.store.samples import RUN_STARTED, plan, started, task

LANES = (("ask", "m-large"), ("judge", "m-large"), ("ask", "m-small"))


def _pause(stage: str | None = None, model: str | None = None) -> Pause:
    return Pause(stage=stage, model=model, by=f"{stage}/{model}")


@pytest.mark.parametrize(
    ("held", "lanes", "by"),
    [
        ((), LANES, None),
        ((_pause(),), LANES, "None/None"),
        ((_pause(),), (), "None/None"),
        ((_pause("ask"),), LANES, None),
        ((_pause("ask"), _pause("judge")), LANES, "ask/None"),
        ((_pause(model="m-large"), _pause("ask", "m-small")), LANES, "None/m-large"),
        ((_pause("ask"),), LANES[:1], "ask/None"),
        # nothing is open, so nothing is held back by a part of a pause
        ((_pause("ask"),), (), None),
        ((_pause("judge"), _pause()), LANES, "None/None"),
    ],
)
def test_a_run_is_paused_where_no_open_task_may_start(
    held: tuple[Pause, ...], lanes: tuple[tuple[str, str], ...], by: str | None
) -> None:
    assert paused_by(held, lanes) == by


def test_a_pause_says_what_it_holds_and_by_whom() -> None:
    ops = {"by": "ops"}
    assert str(Pause(stage=None, model=None, **ops)) == "the run (by ops)"
    assert str(Pause(stage="ask", model=None, **ops)) == "stage ask (by ops)"
    assert str(Pause(stage="ask", model="m", **ops)) == "stage ask of model m (by ops)"


@pytest.mark.parametrize("model", ["m-large", None])
def test_pauses_are_read_from_the_log_until_they_are_lifted(
    tmp_path: Path, model: str | None
) -> None:
    pause = RunPaused(by="ops", paused=True, model=model)
    lift = RunPaused(by="root", paused=False, model=model)
    begun = ([RUN_STARTED], [plan([task(1)])], [pause])
    with open_reader(written(tmp_path / "held.db", *begun)) as reader:
        held = status(reader)
    assert held.pauses == (Pause(stage=None, model=model, by="ops"),)
    assert liveness(held.signs, held.created_us, is_alive=True) == "paused"
    with open_reader(written(tmp_path / "lifted.db", *begun, [lift])) as reader:
        lifted = status(reader)
    assert lifted.pauses == ()
    assert liveness(lifted.signs, lifted.created_us, is_alive=True) == "live"


def test_after_a_long_pause_a_run_is_not_called_stalled(tmp_path: Path) -> None:
    hour_us = 3_600_000_000
    clock = FakeClock()

    async def write() -> None:
        async with await SqliteLog.create(
            tmp_path / "log.db",
            run_id="r1",
            config_sha256=b"",
            clock=clock,
            owner="tester",
        ) as log:
            await log.append(RUN_STARTED, plan([task(1)]))
            await log.append(RunPaused(by="ops", paused=True))
            clock.advance(hour_us / 1e6)
            await log.append(RunPaused(by="ops", paused=False), started(1))
            await log.heartbeat()

    asyncio.run(write())
    with open_reader(tmp_path / "log.db") as reader:
        signs = status(reader).signs
    now_us = START_US + hour_us
    assert liveness(signs, now_us, is_alive=True) == "live"
    later = replace(signs, heartbeat_us=now_us + 121_000_000)
    assert liveness(later, now_us + 121_000_000, is_alive=True) == "stalled"


#: What version 3 of the projections did not have.
_DOWNGRADE = (
    "DROP VIEW v_costs",
    "DROP TABLE lane",
    "DROP TABLE failure",
    "ALTER TABLE error_class DROP COLUMN final",
    "UPDATE projection SET code_ver = 3",
)


def _sums(path: Path) -> tuple[object, ...]:
    with open_reader(path) as reader:
        return (
            status(reader),
            usage_counts(reader),
            model_calls(reader),
            mean_costs(reader),
        )


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return written(tmp_path / "log.db", *COURSE)


def test_its_sums_are_the_same_and_what_it_never_kept_is_unknown(path: Path) -> None:
    now = _sums(path)
    edit(path, *_DOWNGRADE)
    assert _sums(path) == now
    with open_reader(path) as reader:
        assert failures(reader, 0) is None
        assert [(error.n, error.final) for error in error_counts(reader)] == [(2, None)]


def test_the_next_writer_makes_it_anew(path: Path) -> None:
    before = _sums(path)
    edit(path, *_DOWNGRADE)

    async def go_on() -> None:
        async with await reopen(path):
            pass

    asyncio.run(go_on())
    assert _sums(path) == before
    with open_reader(path) as reader:
        assert failures(reader, 0)
        assert [(error.n, error.final) for error in error_counts(reader)] == [(2, 1)]


def test_a_rebuild_that_fails_changes_nothing(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = _sums(path)

    def fail(source: object, target: sqlite3.Connection, watch: object) -> None:
        del source, watch
        target.execute("DELETE FROM task")
        raise CorruptLog("event 3 is damaged")

    monkeypatch.setattr(projections, "refold", fail)
    with closing(connect(path)) as conn:
        with pytest.raises(CorruptLog, match="event 3"):
            rebuild(conn)
        assert not conn.in_transaction
        assert _sums(path) == before
