"""Requests that go page by page: a crash in the middle loses and repeats nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from runner.clients.wire_openai import OPENAI_CHAT, encode_reply
from runner.errors import UsageError
from runner.run import control
from store.clock import SystemClock
from store.database import open_reader
from store.events import (
    AttemptAnswered,
    AttemptStarted,
    CommandAccepted,
    CommandApplied,
    Entry,
    Event,
    RecordedEvent,
    TaskCompleted,
    TaskSkipped,
    TasksReopened,
)
from store.log.sqlite import SqliteLog
from store.read.tasks import events
from tests.replacing import replace
from tests.runner.run.late import late
from tests.runner.run.test_launch import Run
from tests.runner.run.test_whole_runs import _ask


def _append(run: Run, *entries: Entry | Event) -> None:
    """What an earlier process wrote before it was killed."""

    async def main() -> None:
        async with await SqliteLog.open(
            run.folder.log, clock=SystemClock(), owner="somebody"
        ) as log:
            await log.append(*entries)

    asyncio.run(main())


def _accepted(kind: str) -> CommandAccepted:
    return CommandAccepted(command=kind, kind=kind, author="somebody", payload="{}")


def _events(run: Run, *kinds: str) -> Sequence[RecordedEvent]:
    with open_reader(run.folder.log) as reader:
        return events(reader, kinds=kinds)


def test_a_cancel_that_broke_off_is_finished_by_the_next_process(
    tmp_path: Path,
) -> None:
    run = Run(tmp_path)
    run.start()
    _ask(run, "cancel")
    skipped = [TaskSkipped(task=task, reason="cancelled") for task in (1, 2)]
    reopened = TasksReopened(tasks=list(range(1, 17)), by="somebody")
    _append(run, reopened, _accepted("cancel"), *skipped)
    ended = run.resume()
    assert ended.outcome == "cancelled"
    assert "retry r1 --reason cancelled" in (ended.reason or "")
    state = run.status()
    assert (state.tasks.open, state.tasks.skipped) == (0, 16)
    assert state.skips == {"cancelled": 16}
    assert state.attempts.started == 16, "a call was made for a cancelled run"
    (applied,) = _events(run, "command_applied")
    assert applied.event == CommandApplied(
        command="cancel", effect="14 open tasks skipped"
    )
    assert len(_events(run, "run_cancelled")) == 1
    with pytest.raises(UsageError, match="was cancelled; bring its tasks back"):
        run.resume()


def test_a_cancel_that_comes_as_a_run_finishes_leaves_it_finished(
    tmp_path: Path,
) -> None:
    run = Run(tmp_path)

    watch = late(
        lambda: _ask(run, "cancel"),
        is_seen=lambda: bool(_events(run, "command_accepted")),
    )
    run.shell = replace(run.shell, watch=watch)
    assert run.start().outcome == "finished"
    (applied,) = _events(run, "command_applied")
    assert applied.event == CommandApplied(
        command="cancel", effect="the run had finished"
    )
    assert _events(run, "run_cancelled") == []


def test_a_retry_that_broke_off_goes_on_after_the_last_task_it_had_reopened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "PAGE", 3)
    run = Run(tmp_path)
    run.start()
    _ask(run, "retry", {"filter": "state:completed"})
    first = TasksReopened(tasks=[1, 2, 3], by="somebody", command="retry")
    body = encode_reply("a b", "stop", None)
    # one of them was asked and answered again before the crash
    answered = AttemptAnswered(
        task=1,
        attempt=2,
        form=OPENAI_CHAT,
        status=200,
        latency_ms=1.0,
        finish_reason="stop",
    )
    _append(
        run,
        _accepted("retry"),
        first,
        AttemptStarted(task=1, attempt=2, request_sha256="0" * 64),
        Entry(event=answered, payload=body),
        TaskCompleted(task=1, attempt=2),
    )
    assert run.resume(accept_changes=True).outcome == "finished"
    reopened = [
        task
        for row in _events(run, "tasks_reopened")
        if isinstance(row.event, TasksReopened)
        for task in row.event.tasks
    ]
    assert sorted(reopened) == list(range(1, 17)), "reopened twice, or forgotten"
    (applied,) = _events(run, "command_applied")
    assert applied.event == CommandApplied(command="retry", effect="16 tasks reopened")
    assert run.status().attempts.started == 16 + 16
