"""What a process that takes a run up makes of what was decided before.

Requests that are taken back, on a virtual clock: in time, too late, and twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from runner.run.early_stopping import BY, Decider, DecisionContext
from store.events import (
    CommandAccepted,
    CommandApplied,
    CommandRejected,
    Event,
    RecordedEvent,
    RunDrained,
    RunFinished,
)
from store.results import StoppingRule
from store.runs import RunFolder
from tests.runner.run.live import Live, nothing
from tests.runner.toy_jobs import run_virtual
from tests.store.samples import DECIDED

DRAINED = RunDrained(by=BY, why="it is decided", open=3)
KILLED = RunDrained(by="operator", why="interrupted", open=3)
FINISHED = RunFinished(completed=1, failed=0, skipped=0)


class _Log:
    """Holds what earlier processes wrote."""

    def __init__(self, *held: Event) -> None:
        self._held = held

    async def events(self, **_: Any) -> list[RecordedEvent]:
        return [
            RecordedEvent(seq=seq, ts_us=seq, epoch=1, event=event, payload_bytes=0)
            for seq, event in enumerate(self._held, 1)
        ]


class _Driver:
    """Says whether it was drained."""

    def __init__(self) -> None:
        self.is_drained = False

    def drain(self) -> None:
        self.is_drained = True

    async def guard(self, work: Callable[[], Awaitable[None]]) -> None:
        await work()


class _Never:
    """A clock by which nobody gets to look."""

    @staticmethod
    def monotonic() -> float:
        return 0.0

    @staticmethod
    async def sleep_until(_: float) -> None:
        await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("held", "is_drained"),
    [
        ((), False),
        ((DECIDED,), True),
        ((DECIDED, KILLED), True),
        ((DECIDED, DRAINED), False),
        ((DECIDED, FINISHED), False),
    ],
    ids=["nothing", "killed at once", "interrupted", "resumed", "finished"],
)
def test_a_decision_ends_the_run_once(
    tmp_path: Path, held: tuple[Event, ...], *, is_drained: bool
) -> None:
    driver = _Driver()
    decider = Decider(
        folder=RunFolder(tmp_path),
        log=_Log(*held),  # type: ignore[arg-type] - all that is asked of it
        work=None,  # type: ignore[arg-type] - nobody looks
        driver=driver,  # type: ignore[arg-type] - as the log
        clock=_Never(),  # type: ignore[arg-type] - as the log
        notify=lambda _: None,
        looking=DecisionContext(
            stopping=StoppingRule(metric="accuracy"), decide=lambda *_: None
        ),  # type: ignore[arg-type, return-value] - nobody looks
    )

    async def take_up() -> None:
        async with decider.deciding():
            for _ in range(5):
                await asyncio.sleep(0)

    asyncio.run(take_up())
    assert driver.is_drained is is_drained
    assert (decider.decided is not None) is is_drained


def test_what_is_taken_back_before_it_was_answered_is_never_carried_out(
    tmp_path: Path,
) -> None:
    async def main() -> None:
        live = Live(tmp_path, items=2)
        live.ask("limits", rpm=7000)
        live.ask("limits", rpm=8000)
        live.ask("withdraw", id="limits-0")
        live.ask("withdraw", id="limits-0")
        live.ask("withdraw", id="limits-1")
        await live.run(nothing, found="drained")
        answers = await live.answers()
        dropped, accepted, applied = answers[:3]
        assert isinstance(dropped, CommandRejected)
        assert (dropped.command, dropped.reason) == ("limits-0", "withdrawn by ops")
        assert accepted.command == applied.command == "withdraw-2"
        assert applied.effect == "limits (by ops) dropped"
        assert [a.command for a in answers[3:]] == [
            "limits-1",
            "withdraw-4",
            "withdraw-4",
            "withdraw-3",
        ]
        assert isinstance(answers[-1], CommandRejected)
        assert answers[-1].reason == "no pending request has that id"
        assert live.told[0] == "Waiting was limits (by ops): withdrawn by ops."
        await live.run(nothing)
        assert await live.answers() == answers, "a restart answers nothing again"

    run_virtual(main())


def test_what_an_earlier_process_began_cannot_be_taken_back(tmp_path: Path) -> None:
    async def main() -> None:
        live = Live(tmp_path, items=2)
        live.ask("limits", rpm=7000)
        live.ask("withdraw", id="limits-0")
        await live.bench.log.append(
            CommandAccepted(
                command="limits-0", kind="limits", author="ops", payload='{"rpm": 7000}'
            )
        )
        await live.run(nothing)
        answers = await live.answers()
        assert isinstance(answers[2], CommandApplied)
        assert answers[2].command == "limits-0"
        assert isinstance(answers[3], CommandRejected)
        assert answers[3].command == "withdraw-1"

    run_virtual(main())
