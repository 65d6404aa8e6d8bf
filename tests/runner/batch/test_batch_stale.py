"""What is asked has changed while a batch was about to be sent."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from runner.clients.wire_shared import skeleton
from runner.job import Task
from runner.messages import ChatRequest, Message, TextPart
from store.events import AttemptAnswered, AttemptFailed, AttemptStarted
from tests.runner.batch.batch_provider import Provider
from tests.runner.batch.batch_run import MODEL, TASKS, BatchRun, Fuse
from tests.runner.toy_jobs import ToyJob, ToySettings


def _leave_prepared(run: BatchRun) -> None:
    """End a process between what it prepared and the provider."""
    steps = 3
    while not run.folder.log.exists() or not run.open().count:
        run.process(Fuse(steps))
        steps += 1
    assert not run.provider.there


def test_a_call_that_was_never_sent_is_not_sent_as_another_than_the_log_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = Provider(random.Random(3))
    run = BatchRun(tmp_path, provider, monkeypatch)
    _leave_prepared(run)

    def request(job: ToyJob, dataset: ToySettings, task: Task) -> ChatRequest:
        del job, dataset
        text = f"{task.stage} {task.key} please"
        return ChatRequest(
            messages=(Message(role="user", parts=(TextPart(text=text),)),),
            max_tokens=16,
        )

    monkeypatch.setattr(ToyJob, "request", request)
    run.accepts_changes = True
    ended = run.process()
    assert ended is not None
    assert ended.outcome == "finished"
    failed = [f for f in run.events("attempt_failed") if isinstance(f, AttemptFailed)]
    assert failed
    assert {f.error for f in failed} == {"Expired"}
    assert {f.possible_usd for f in failed} == {0.0}
    assert all("changed since" in (f.message or "") for f in failed)
    started = {
        (event.task, event.attempt): event.request_sha256
        for event in run.events("attempt_started")
        if isinstance(event, AttemptStarted)
    }
    answered = {
        started[event.task, event.attempt]
        for event in run.events("attempt_answered")
        if isinstance(event, AttemptAnswered)
    }
    asked = {
        skeleton(
            ChatRequest(
                messages=(Message(role="user", parts=(TextPart(text=text),)),),
                max_tokens=16,
            ),
            MODEL,
        ).sha256
        for text in provider.billed
    }
    assert answered == asked, "the log says of every answer what it is an answer to"
    assert len(provider.billed) == TASKS
    assert all(text.endswith("please") for text in provider.billed)
