"""What a monitor may see: snapshots of a run in every state, and sources of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from store.errors import StoreError
from store.events import Entry, Event, LimitObserved
from store.read.live import latencies
from store.read.status import LivenessSigns
from store.runs import RunFolder
from tests.replacing import replace
from tests.store.logs import COURSE, written
from tests.store.memory_log import START_US, FakeClock
from tests.store.samples import failed, plan, started, task
from tui.sources.config import RunSetup
from tui.sources.run_list import ListedRun
from tui.sources.run_snapshot import RunSnapshot, RunSource, SnapshotOrProblem

HOSTILE = (
    "[/INST] [@click=app.quit]x[/] \x1b]0;owned\x07\x1b[2J \u202eabc\u200b\n\r漢字 🧪"
)
LIVELY: tuple[Sequence[Entry | Event], ...] = (
    *COURSE[:7],
    [plan([task(number) for number in range(6, 10)], first=6)],
    [LimitObserved(model="m-large", concurrency=8, in_flight=0, rpm=60, tpm=5000)],
    [started(6), failed(6, message=HOSTILE)],
)


def snapshot(folder: Path, **signs: Any) -> RunSnapshot:
    """A run that is at work, or as its *signs* have it."""
    folder.mkdir(exist_ok=True)
    run = RunFolder(folder)
    if not run.log.exists():
        written(run.log, *LIVELY)
    with RunSource(run, FakeClock()) as source, closing(run.open_reader()) as reader:
        seen = source.poll()
        of_whole_run = latencies(reader)  # a live run is shown without them
    assert isinstance(seen, RunSnapshot)
    facts = replace(seen.facts, latencies=of_whole_run)
    return with_signs(replace(seen, facts=facts, is_alive=True), **signs)


def with_signs(seen: RunSnapshot, **changed: Any) -> RunSnapshot:
    """It, with other signs of life."""
    signs: LivenessSigns = replace(seen.status.signs, **changed)
    return replace(
        seen, facts=replace(seen.facts, status=replace(seen.status, signs=signs))
    )


def with_status(seen: RunSnapshot, **changed: Any) -> RunSnapshot:
    """It, with other counts."""
    return replace(
        seen, facts=replace(seen.facts, status=replace(seen.status, **changed))
    )


def later(seen: RunSnapshot, seconds: float) -> RunSnapshot:
    """It, after a while without a sign."""
    return replace(seen, now_us=seen.now_us + round(seconds * 1e6))


MINUTE_US = 60_000_000
STATES: dict[str, dict[str, Any]] = {
    "live": {},
    "paused": {"paused_by": "ops"},
    "draining": {"draining_by": "ops"},
    "drained": {"phase": "run_drained", "phase_by": "operator"},
    "budget_stop": {"phase": "run_drained", "phase_by": "budget"},
    "cancelled": {"phase": "run_cancelled", "phase_by": "ops"},
    "finished": {"phase": "run_finished"},
    "stalled": {
        "phase_us": START_US - 10 * MINUTE_US,
        "success_us": START_US - 5 * MINUTE_US,
    },
}
"""Signs that make a run's state; `quiet` and `lost` are a matter of time."""


def every_state(folder: Path) -> Iterator[tuple[str, RunSnapshot]]:
    """A run in each of its states."""
    live = snapshot(folder)
    for state, signs in STATES.items():
        yield state, with_signs(live, **signs)
    yield "quiet", later(live, 7)
    yield "lost", later(live, 60)


@dataclass
class FakeSource:
    """Shows what it is given, the last of it again and again."""

    sights: list[SnapshotOrProblem]
    run_id: str = "r1"
    looks: int = 0
    is_closed: bool = False

    def poll(self) -> SnapshotOrProblem:
        self.looks += 1
        return self.sights.pop(0) if len(self.sights) > 1 else self.sights[0]

    def close(self) -> None:
        self.is_closed = True


@dataclass
class FakeConfig:
    """A run that was set up in some way, or cannot be read."""

    setup: RunSetup | StoreError = field(
        default_factory=lambda: StoreError("there is no setup")
    )
    run_id: str = "r1"
    is_closed: bool = False

    async def read(self) -> RunSetup:
        if isinstance(self.setup, StoreError):
            raise self.setup
        return self.setup

    def close(self) -> None:
        self.is_closed = True


@dataclass
class FakeListing:
    """A folder with the runs it is given."""

    listed: list[ListedRun] = field(default_factory=list)
    runs_dir: Path = Path("runs")

    def poll(self) -> list[ListedRun]:
        return list(self.listed)
