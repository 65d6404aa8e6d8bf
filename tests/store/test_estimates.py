"""The state of a run in one word."""

from __future__ import annotations

from dataclasses import replace

import pytest

from store.read.status import LivenessSigns, liveness

NOW = 1_000_000_000_000
SECOND = 1_000_000
WORKING = LivenessSigns(
    phase="run_started",
    phase_by=None,
    phase_us=NOW - 3600 * SECOND,
    paused_by=None,
    draining_by=None,
    heartbeat_us=NOW - SECOND,
    success_us=NOW - SECOND,
    running=3,
    p95_ms=4000.0,
)


def state(*, is_alive: bool | None = True, **changed: object) -> str:
    return liveness(replace(WORKING, **changed), NOW, is_alive=is_alive)  # type: ignore[arg-type]


def ago(seconds: float) -> int:
    return NOW - round(seconds * SECOND)


@pytest.mark.parametrize(
    ("heartbeat_s", "word"),
    [(0, "live"), (2.9, "live"), (3, "quiet"), (15, "quiet"), (15.1, "lost")],
)
def test_the_age_of_the_heartbeat_decides(heartbeat_s: float, word: str) -> None:
    assert state(heartbeat_us=ago(heartbeat_s)) == word


def test_a_process_that_is_gone_is_lost_at_once() -> None:
    assert state(is_alive=False) == "lost"
    assert state(is_alive=None) == "live"


def test_a_run_that_just_began_is_live_before_its_first_heartbeat() -> None:
    assert state(heartbeat_us=None, phase_us=ago(1)) == "live"
    assert state(heartbeat_us=None, phase_us=ago(60)) == "lost"


@pytest.mark.parametrize(
    ("success_s", "p95_ms", "running", "word"),
    [
        (119, None, 1, "live"),
        (121, None, 1, "stalled"),
        (121, None, 0, "live"),
        (121, 60_000.0, 1, "live"),
        (301, 60_000.0, 1, "stalled"),
    ],
)
def test_calls_without_success_are_a_stall(
    success_s: float, p95_ms: float | None, running: int, word: str
) -> None:
    assert state(success_us=ago(success_s), p95_ms=p95_ms, running=running) == word


def test_before_the_first_success_patience_counts_from_the_start() -> None:
    assert state(success_us=None, phase_us=ago(100)) == "live"
    assert state(success_us=None, phase_us=ago(130)) == "stalled"


@pytest.mark.parametrize(
    ("changed", "word"),
    [
        ({"phase": "run_finished"}, "finished"),
        ({"phase": "run_cancelled"}, "cancelled"),
        ({"phase": "run_drained", "phase_by": "operator"}, "drained"),
        ({"phase": "run_drained", "phase_by": "budget"}, "budget_stop"),
        ({"phase": "run_resumed"}, "live"),
        ({"paused_by": "someone"}, "paused"),
        ({"draining_by": "someone"}, "draining"),
        ({"paused_by": "someone", "draining_by": "someone"}, "draining"),
        ({"paused_by": "someone", "heartbeat_us": ago(60)}, "lost"),
    ],
)
def test_what_was_said_last_decides(changed: dict[str, object], word: str) -> None:
    assert state(**changed) == word


@pytest.mark.parametrize("phase", ["run_finished", "run_cancelled", "run_drained"])
def test_a_run_that_ended_does_not_get_lost(phase: str) -> None:
    ended = state(phase=phase, heartbeat_us=ago(9999), is_alive=False)
    assert ended in {"finished", "cancelled", "drained"}
