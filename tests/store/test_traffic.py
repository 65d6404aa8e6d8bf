"""What a run is doing, as its projections have it."""

from __future__ import annotations

from pathlib import Path

import pytest

from store.database import connect, open_reader, read_transaction
from store.read.live import (
    completed_by_minute,
    data_version,
    latencies,
    minutes,
    oldest_in_flight,
)
from store.read.status import status
from tests.store.logs import COURSE, written
from tests.store.memory_log import START_US
from tests.store.samples import RUN_STARTED, plan_first, started

MINUTE = START_US // 60_000_000


def test_the_minutes_of_a_run_add_up_to_it(path: Path) -> None:
    with open_reader(written(path, *COURSE)) as reader:
        rows = minutes(reader, MINUTE)
        told = status(reader)
        assert minutes(reader, MINUTE + 1) == []
        assert completed_by_minute(reader) == {MINUTE: told.tasks.completed}
    assert {row.t for row in rows} == {MINUTE}
    assert sum(row.succeeded for row in rows) == told.tasks.completed
    assert sum(row.ended for row in rows) == told.tasks.completed + told.tasks.failed
    assert sum(row.cost_usd for row in rows) == told.cost_usd
    assert sum(row.started for row in rows) == told.attempts.started


def test_latencies_are_told_by_model(path: Path) -> None:
    with open_reader(written(path, *COURSE)) as reader:
        found = latencies(reader)
    assert [each.model for each in found] == ["m-large", "m-small"]
    assert found[0].p50_ms == pytest.approx(101, rel=0.03)


def test_the_oldest_calls_come_first_and_only_as_many_as_asked(path: Path) -> None:
    course = ([RUN_STARTED], [plan_first(5)], *([started(n)] for n in (3, 1, 5)))
    with open_reader(written(path, *course)) as reader:
        found = oldest_in_flight(reader, 2)
    assert [(call.task, call.attempt, call.key) for call in found] == [
        (3, 1, "item-3"),
        (1, 1, "item-1"),
    ]


def test_what_others_commit_is_noticed_and_not_seen_within_one_moment(
    path: Path,
) -> None:
    written(path, *COURSE)
    with open_reader(path) as reader:
        before = data_version(reader)
        assert data_version(reader) == before
        with read_transaction(reader):
            told = status(reader)
            other = connect(path)
            other.execute("UPDATE heartbeat SET at_us = 7")
            other.close()
            assert status(reader).heartbeat == told.heartbeat
        assert data_version(reader) != before
        beat = status(reader).heartbeat
        assert beat is not None
        assert beat.at_us == 7
        assert not reader.in_transaction
