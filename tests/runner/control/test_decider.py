"""What a process that takes a run up makes of what was decided before."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from runner.run.early_stopping import BY, Decider, DecisionContext
from store.events import Event, RecordedEvent, RunDrained, RunFinished
from store.results import StoppingRule
from store.runs import RunFolder
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
