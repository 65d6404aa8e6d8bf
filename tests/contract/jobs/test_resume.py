"""A run that is stopped goes on where it was, repeats no call, and scores the same."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path

import pytest

from runner.errors import AuthFailed
from runner.messages import Content, Request
from tests.contract.jobs.jobs import QUIET, JobCase, run


def test_a_stopped_run_is_resumed_without_a_second_call(
    case: JobCase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = (*case.words(tmp_path), *QUIET)
    job, calls = case.job, Counter[str]()
    answer, lock = job.baseline, threading.Lock()
    left = 10**9

    def baseline(request: Request) -> Content:
        nonlocal left
        with lock:
            left -= 1
            if left < 0:
                raise AuthFailed("no: the key is refused from now on", status=401)
            calls[repr(request)] += 1
        return answer(request)

    monkeypatch.setattr(job, "baseline", baseline)
    whole = run(tmp_path, *words, name="whole")
    assert whole.done.code == 0, whole.done.err
    expected = calls.copy()
    calls.clear()
    left = expected.total() // 2
    stopped = run(tmp_path, *words, name="stopped")
    assert stopped.done.code == 1
    assert "continue with: siftlog resume stopped" in stopped.done.err
    assert calls.total() == expected.total() // 2
    left = 10**9
    resumed = stopped.command("resume", *QUIET)
    assert resumed.code == 0, resumed.err
    assert calls == expected
    assert {task["state"] for task in stopped.tasks()} <= {"completed", "skipped"}
    numbers = sorted(int(each.name) for each in stopped.scoring().parent.iterdir())
    assert stopped.card(numbers[-1]) == whole.card()
