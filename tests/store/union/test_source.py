"""A log that meets no other is taken over as it stands, as if it had been folded."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store.database import connect, open_reader
from store.events import Entry, Event, TaskCompleted, TasksPlanned
from store.read.status import status
from store.tables import last_seq
from store.task import manifest_bytes, planned_tasks
from store.union import folding, source
from store.union.source import LocalLogSource
from store.verify import verify
from tests.replacing import replace
from tests.store.samples import courses, plan, reply, started, task
from tests.store.union.union_logs import (
    Beginning,
    merge,
    outcome,
    shard_log,
    shard_started,
    union_of,
)

PLANNED, PAID, DONE = (
    plan([task(1)]),
    reply(1, b"yes", cost_usd=0.5),
    TaskCompleted(task=1, attempt=1),
)
ADOPTED = (
    replace(started(1), adopted=True),
    reply(1, b"yes", cost_usd=0.0, cached=True, adopted=f"{'0' * 32}:1"),
    replace(DONE, adopted=True),
)


def of_its_own(i: int, entries: Iterable[Entry]) -> list[list[Entry]]:
    """A log's course, a commit an event, with tasks that no other log has."""
    return [
        [replace(entry, payload=_named(i, entry.payload))]
        if isinstance(entry.event, TasksPlanned) and entry.payload is not None
        else [entry]
        for entry in entries
    ]


def _named(i: int, payload: bytes) -> bytes:
    return manifest_bytes(
        [replace(plan, key=f"{i}/{plan.key}") for plan in planned_tasks(payload)]
    )


def none_folded(*_: object) -> None:
    pytest.fail("a log that meets no other was folded")


@settings(
    max_examples=200 if "SIFTLOG_PROVE" in os.environ else 5,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
@given(st.lists(courses(max_steps=25), min_size=2, max_size=3))
def test_what_is_taken_over_is_what_folding_it_comes_to(
    parts: list[list[Entry]],
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        logs = [
            shard_log(folder, f"{i}-3", [shard_started(i, 3)], *of_its_own(i, part[1:]))
            for i, part in enumerate(parts)
        ]
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(folding, "fold_part", none_folded)
            patched.setattr(source, "RANGE_ROWS", 3)
            taken_over = union_of(folder / "union.db", logs)
        with open_reader(taken_over) as reader:
            report = verify(reader)  # by folding all of its events
        assert report.faults == ()
        assert report.projections_compared
        folded = folder / "folded.db"
        for log in logs:
            with open_reader(log) as reader:
                merge(folded, Beginning(LocalLogSource(reader), last_seq(reader)))
        assert outcome(folded) == outcome(taken_over)


@pytest.mark.parametrize(
    "second",
    [[PLANNED, started(1), PAID, DONE], [plan([task(1, key="other")]), *ADOPTED]],
    ids=["a task of another log", "an answer of another log"],
)
def test_a_log_that_meets_another_is_folded(
    tmp_path: Path, second: list[Entry | Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "RANGE_ROWS", 1)  # it meets it in the midst of itself
    logs = [
        shard_log(tmp_path, "0-2", [shard_started(0, 2), PLANNED, started(1), PAID]),
        shard_log(tmp_path, "1-2", [shard_started(1, 2)], *[[each] for each in second]),
    ]
    union = union_of(tmp_path / "union.db", logs)
    with open_reader(union) as reader:
        assert verify(reader).is_sound
        assert status(reader).attempts.started == 1 + (second[0] is PLANNED)
    backwards = union_of(tmp_path / "backwards.db", reversed(logs))
    with open_reader(backwards) as reader:
        assert verify(reader).is_sound
    assert outcome(backwards) == outcome(union)


def test_a_log_is_taken_over_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = shard_log(
        tmp_path, "0-1", [shard_started(0, 1), PLANNED], [started(1), PAID], [DONE]
    )
    union = tmp_path / "union.db"
    with monkeypatch.context() as patched:
        patched.setattr("store.union.parts.Graft.write", none_folded)
        with pytest.raises(pytest.fail.Exception):
            union_of(union, [log])
    with open_reader(union) as reader:
        assert last_seq(reader) == 0
    assert outcome(union_of(union, [log])) == outcome(
        union_of(tmp_path / "whole.db", [log])
    )


def test_a_log_with_projections_of_another_siftlog_is_folded(tmp_path: Path) -> None:
    log = shard_log(
        tmp_path, "0-1", [shard_started(0, 1), PLANNED], [started(1), PAID], [DONE]
    )
    whole = outcome(union_of(tmp_path / "whole.db", [log]))
    with connect(log) as conn:
        conn.execute("UPDATE projection SET code_ver = 0")
        conn.execute("UPDATE task SET state = 0")
    conn.close()
    assert outcome(union_of(tmp_path / "union.db", [log])) == whole
