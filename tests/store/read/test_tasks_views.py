"""What can be read of a run; and that no view ever reads the whole of it."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from store.database import open_reader
from store.errors import NotALog
from store.events import (
    AttemptsAbandoned,
    CommandAccepted,
    CommandApplied,
    Entry,
    Event,
    LimitObserved,
    RunFinished,
    RunResumed,
    TaskCompleted,
    TasksPlanned,
    TasksReopened,
)
from store.log.integrity import heads_path
from store.log.sqlite import SqliteLog
from store.read.status import run_started, scorings, status
from store.read.tasks import attempts, events, model_calls, tasks
from store.scoring import families
from store.tables import last_seq, payload, planned_seq, reply, task_events
from store.task import TaskState
from tests.store.logs import COURSE, written
from tests.store.memory_log import FakeClock
from tests.store.samples import RUN_STARTED, completed, failed, plan, started, task
from tests.store.samples import reply as answer


def test_status_says_how_the_run_stands(path: Path) -> None:
    with open_reader(written(path, *COURSE)) as reader:
        seen = status(reader)
    assert (seen.run_id, seen.job, seen.job_version) == ("r1", "sample-job", "1")
    assert seen.models == {"subject": ["m-large", "m-small"]}
    counts = seen.tasks
    assert (counts.planned, counts.completed, counts.failed) == (5, 2, 1)
    assert (counts.skipped, counts.open, counts.running) == (1, 1, 1)
    assert (counts.waiting, counts.unparsed) == (0, 1)
    tried = seen.attempts
    assert (tried.started, tried.answered, tried.failed, tried.unknown) == (6, 3, 2, 0)
    assert seen.cost_usd == 0.875
    assert (seen.tokens_in, seen.tokens_out) == (150, 21)
    assert seen.errors == {"Overloaded": 2}
    assert seen.skips == {"no text": 1}
    assert seen.parse_failures == {"truncated": 1}
    assert seen.reasked == {"no_list": 1}
    assert [(lane.stage, lane.model) for lane in seen.queues] == [
        ("ask", "m-large"),
        ("ask", "m-small"),
        ("judge", "m-large"),
    ]
    assert seen.heartbeat is not None
    assert seen.heartbeat.pid == os.getpid()
    assert seen.scorings == (1,)
    assert (seen.signs.phase, seen.signs.phase_by) == ("run_drained", "operator")
    assert seen.why == "drained on request"
    assert seen.signs.p95_ms == pytest.approx(103, rel=0.02)


def test_limits_are_those_that_were_last_observed(path: Path) -> None:
    observed = [
        LimitObserved(model="m-small", concurrency=4, in_flight=0, tpm=1000.0),
        LimitObserved(model="m-large", concurrency=8, in_flight=3, rpm=60.0),
        LimitObserved(model="m-large", concurrency=9, in_flight=3, rpm=63.0),
    ]
    with open_reader(written(path, *COURSE, observed)) as reader:
        limits = status(reader).limits
    assert [(seen.model, seen.concurrency, seen.rpm, seen.tpm) for seen in limits] == [
        ("m-large", 9, 63.0, None),
        ("m-small", 4, None, 1000.0),
    ]


def test_a_ceiling_is_that_of_the_last_command_since_the_run_was_resumed(
    path: Path,
) -> None:
    def command(name: str, payload: str, *, is_applied: bool = True) -> list[Event]:
        accepted = CommandAccepted(
            command=name, kind="limits", author="ops", payload=payload
        )
        return [accepted, *([CommandApplied(command=name, effect="")] * is_applied)]

    observed = [
        LimitObserved(model="m-small", concurrency=4, in_flight=0),
        LimitObserved(model="m-large", concurrency=1, in_flight=0, rpm=60.0),
    ]
    units = [
        [*COURSE[0], *observed],
        command("c1", '{"model": null, "concurrency": 4}'),
        command("c2", '{"model": "m-large", "concurrency": 9}'),
        command("c3", '{"model": "m-large", "rpm": 60}'),
        command("c4", '{"model": "m-large", "concurrency": 2}', is_applied=False),
    ]
    with open_reader(written(path, *units)) as reader:
        large, small = status(reader).limits
    assert (large.ceiling, small.ceiling) == (9, 4)
    assert str(large) == "1 of at most 9 calls at a time, 60 requests a minute"
    assert str(small) == "4 calls at a time"
    resumed = RunResumed(code_sha256="2" * 64, settings="{}", unknown=0)
    again = written(path.with_name("again.db"), *units, [resumed])
    with open_reader(again) as reader:
        assert str(status(reader).limits[0]).startswith("1 call at a time, 60")


def test_cost_is_unknown_while_one_price_is(path: Path) -> None:
    with open_reader(
        written(
            path,
            [RUN_STARTED, plan([task(1), task(2)])],
            [started(1), answer(1, b"x", cost_usd=1.0), completed(1)],
            [started(2), answer(2, b"x")],
        )
    ) as reader:
        assert status(reader).cost_usd is None


def test_what_the_response_cache_answered_is_counted_apart_and_used_nothing(
    path: Path,
) -> None:
    found = answer(2, b"x", cost_usd=0.0, cached=True, latency_ms=None)
    with open_reader(
        written(
            path,
            [RUN_STARTED, plan([task(1), task(2)])],
            [started(1), answer(1, b"x", cost_usd=1.0), completed(1)],
            [started(2), found, completed(2)],
        )
    ) as reader:
        seen = status(reader)
        assert (seen.attempts.answered, seen.attempts.cached) == (2, 1)
        assert (seen.tokens_in, seen.tokens_out, seen.cost_usd) == (50, 7, 1.0)
        assert seen.signs.p95_ms == pytest.approx(101, rel=0.02)
        assert seen.model_cost_usd == {"m-large": 1.0}
        assert model_calls(reader) == {"m-large": 1}


def test_a_run_that_never_began_is_said_to_be_one(path: Path) -> None:
    with open_reader(written(path)) as reader:
        assert last_seq(reader) == 0
        for view in (status, run_started):
            with pytest.raises(NotALog, match="never started"):
                view(reader)
        assert list(families(reader)) == []
        assert tasks(reader) == []


def test_planning_is_exhausted_when_the_plan_says_so(path: Path) -> None:
    last = TasksPlanned(first=2, count=0, consumed=1, exhausted=True)
    empty = plan([]).payload
    units = ([RUN_STARTED, plan([task(1)])], [Entry(event=last, payload=empty)])
    with open_reader(written(path, *units)) as reader:
        assert status(reader).planning_exhausted


def test_an_attempt_says_what_of_its_reply_could_not_be_read(path: Path) -> None:
    refused = answer(1, b"x", reask="no_json", fault="line 1")
    ended = TaskCompleted(task=1, attempt=2, unparsed="truncated", fault="a: missing")
    with open_reader(
        written(
            path,
            [RUN_STARTED, plan([task(1)])],
            [started(1), refused],
            [started(1, 2), answer(1, b"y", 2), ended],
        )
    ) as reader:
        rows = attempts(reader, 1)
    said = [(row.unparsed, row.fault) for row in rows]
    assert said == [(None, "line 1"), ("truncated", "a: missing")]


def test_the_event_that_planned_a_task_is_found_among_many(path: Path) -> None:
    units = [[plan([task(n), task(n + 1)], first=n)] for n in range(1, 40, 2)]
    with open_reader(written(path, [RUN_STARTED], *units)) as reader:
        found = [planned_seq(reader, number) for number in range(42)]
    assert found == [None, *(2 + n // 2 for n in range(40)), None]


def test_the_attempts_of_a_task_are_found_from_first_to_last(path: Path) -> None:
    abandoned = AttemptsAbandoned(attempts=[(1, 1)])
    reopened = TasksReopened(tasks=[1], by="someone")
    with open_reader(
        written(
            path,
            [RUN_STARTED, plan([task(1), task(2)])],
            [started(1), abandoned, started(2)],
            [started(1, 2), failed(1, 2), started(1, 3)],
            [answer(1, b"x", 3), completed(1, 3), reopened, answer(2, b"y")],
            [started(1, 4)],
        )
    ) as reader:
        rows = attempts(reader, 1)
        own = task_events(reader, 1)
        assert attempts(reader, 3) == []
    assert [row.attempt for row in rows] == [1, 2, 3, 4]
    assert {(row.unparsed, row.fault) for row in rows} == {(None, None)}
    assert [row.outcome is None for row in rows] == [True, False, False, True]
    assert rows[1].outcome == failed(1, 2)
    assert [row.kind for row in own] == [
        "attempt_started",
        "attempt_started",
        "attempt_failed",
        "attempt_started",
        "attempt_answered",
        "task_completed",
        "attempt_started",
    ]
    assert [row.seq for row in own] == sorted(row.seq for row in own)


def test_scorings_replies_and_payloads_are_read(path: Path) -> None:
    with open_reader(written(path, *COURSE)) as reader:
        assert [scoring.number for scoring in scorings(reader)] == [1]
        stored = reply(reader, 3)
        assert stored is not None
        assert stored.body == b"better"
        assert payload(reader, stored.seq) == b"better"
        assert reply(reader, 2) is None
        drained = events(reader, kinds=["run_drained"])
    assert [row.kind for row in drained] == ["run_drained"]


def test_families_come_by_their_first_task_and_then_by_number(path: Path) -> None:
    units = [
        [RUN_STARTED, plan([task(1), task(2)])],
        [
            plan(
                [task(3, stage="judge", root=2), task(4, stage="judge", root=1)],
                first=3,
            )
        ],
        [plan([task(5), task(6, stage="judge", root=2)], first=5)],
        [answer(6, b"six"), completed(6), answer(1, b"one")],
    ]
    with open_reader(written(path, *units)) as reader:
        found = list(families(reader))
    assert [row.task for row, _ in found] == [1, 4, 2, 3, 6, 5]
    bodies = {row.task: stored.body for row, stored in found if stored is not None}
    assert bodies == {1: b"one", 6: b"six"}


def test_families_are_the_same_however_they_are_paged(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = [task(n) for n in range(1, 21)]
    later = [task(n, stage="judge", root=n % 20 + 1) for n in range(21, 81)]
    answers = [[answer(n, bytes([n]) * 30), completed(n)] for n in range(1, 81)]
    units = [[RUN_STARTED, plan(first)], [plan(later, first=21)], *answers]
    with open_reader(written(path, *units)) as reader:
        whole = list(families(reader))
        monkeypatch.setattr("store.scoring.FAMILIES", 3)
        monkeypatch.setattr("store.scoring.REPLIES", 2)
        assert list(families(reader)) == whole
    assert len(whole) == 80


def test_families_up_to_an_event_do_not_move_when_the_run_goes_on(path: Path) -> None:
    units = [
        [RUN_STARTED, plan([task(1), task(2), task(3)])],
        [answer(1, b"one"), completed(1), answer(2, b"two"), completed(2)],
    ]
    with open_reader(written(path, *units)) as reader:
        upto = last_seq(reader)
        before = list(families(reader, upto))

    async def go_on() -> None:
        async with await SqliteLog.open(path, clock=FakeClock(), owner="x") as log:
            await log.append(answer(3, b"three"), completed(3))
            await log.append(TasksReopened(tasks=[2], by="someone"))
            await log.append(plan([task(4), task(5, root=1)], first=4))

    asyncio.run(go_on())
    with open_reader(path) as reader:
        after = list(families(reader, upto))
        now = list(families(reader))
    assert [row.task for row, _ in after] == [row.task for row, _ in before]
    assert after[0] == before[0]
    # what has moved since is shown as open, never as something it was not then
    assert [row.state for row, _ in after[1:]] == [TaskState.RUNNING] * 2
    assert [stored for _, stored in after[1:]] == [None, None]
    assert [row.task for row, _ in now] == [1, 5, 2, 3, 4]


@pytest.mark.parametrize("kind", ["drain", "cancel"])
def test_every_finish_is_a_state_that_liveness_knows(path: Path, kind: str) -> None:
    finished = RunFinished(completed=0, failed=0, skipped=0)
    drain = CommandAccepted(command="c", kind=kind, author="me", payload="{}")
    with open_reader(written(path, [RUN_STARTED, drain])) as reader:
        assert status(reader).signs.draining_by == "me"
    path.unlink()
    heads_path(path).unlink()
    with open_reader(written(path, [RUN_STARTED, drain], [finished])) as reader:
        signs = status(reader).signs
    assert (signs.phase, signs.draining_by) == ("run_finished", None)
