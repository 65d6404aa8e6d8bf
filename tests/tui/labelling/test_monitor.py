"""The key `l` in the monitor: from Run all items, from Tasks that of the task."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from textual.pilot import Pilot

from store.clock import SystemClock
from store.database import open_reader
from store.labels.events import LabelRecorded
from store.labels.folder import read_labels
from store.read.tasks import tasks
from store.runs import RunFolder
from tests.commands import siftlog
from tui.app import Monitor
from tui.labelling.screen import LabelScreen
from tui.render.glyphs import UNICODE
from tui.run_screens import MonitorSources
from tui.screens.tasks import TasksScreen

CHUNKED = ("ask", "--chunk=80", "--limit=2", "--run-id=r")


@dataclass(frozen=True)
class Seat:
    """Before the monitor of a run."""

    pilot: Pilot[str]
    app: Monitor

    def shown(self) -> str:
        """The cells of the screen, as lines of text."""
        strips = self.app.screen._compositor.render_strips()
        return "\n".join("".join(part.text for part in strip) for strip in strips)

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait for what workers bring about."""
        for _ in range(1500):
            if holds():
                return
            await self.pilot.pause(0.02)
        pytest.fail(f"it does not get there:\n{self.shown()}")

    async def labelling(self) -> None:
        """Press the key, and wait for the first question."""
        await self.pilot.press("l")
        await self.until(lambda: isinstance(self.app.screen, LabelScreen))
        await self.until(lambda: " of " in self.shown().split("\n")[0])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> RunFolder:
    """A run whose papers were asked about chunk by chunk."""
    cwd = tmp_path_factory.mktemp("monitored")
    siftlog("run", *CHUNKED, "--boot-b=0", "--no-report", cwd=cwd)
    return RunFolder(cwd / "runs" / "r")


@pytest.fixture(autouse=True)
def _labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIFTLOG_LABELS", str(tmp_path / "labels"))
    monkeypatch.setenv("SIFTLOG_AUTHOR", "ann")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))


def monitored(
    run: RunFolder,
    act: Callable[[Seat], Awaitable[None]],
    *,
    is_read_only: bool = False,
) -> None:
    """Sit before the monitor of a run."""

    async def watch() -> None:
        sources = MonitorSources.of(
            run.path.parent, SystemClock(), is_read_only=is_read_only
        )
        app = Monitor(sources, glyphs=UNICODE, run=run)
        async with app.run_test(size=(120, 40), notifications=True) as pilot:
            seat = Seat(pilot, app)
            await seat.until(lambda: "q Quit" in seat.shown())
            await act(seat)

    asyncio.run(watch())


def recorded(tmp_path: Path) -> list[LabelRecorded]:
    return [one.event for one in read_labels(tmp_path / "labels").labels]


def test_from_run_the_items_are_labelled_blind(made: RunFolder, tmp_path: Path) -> None:
    async def act(seat: Seat) -> None:
        await seat.labelling()
        await seat.pilot.press("n")
        await seat.until(lambda: bool(recorded(tmp_path)))
        await seat.pilot.press("q")
        await seat.until(lambda: not isinstance(seat.app.screen, LabelScreen))
        assert "q Quit" in seat.shown()

    monitored(made, act)
    (label,) = recorded(tmp_path)
    assert (label.author, label.run, label.is_blind) == ("ann", "r", True)


def test_from_tasks_a_chunk_stands_for_its_paper(
    made: RunFolder, tmp_path: Path
) -> None:
    with open_reader(made.log) as reader:
        chunk = next(row for row in tasks(reader, limit=100) if row.stage == "chunk")
    item = chunk.key.rpartition("#")[0]

    async def act(seat: Seat) -> None:
        await seat.pilot.press("t")
        screen = seat.app.screen
        assert isinstance(screen, TasksScreen)
        await seat.until(lambda: bool(screen.items))
        assert screen.items == (chunk.key,)
        await seat.labelling()
        assert item in seat.shown()
        await seat.pilot.press("n")
        await seat.until(lambda: bool(recorded(tmp_path)))

    monitored(made, act)
    (label,) = recorded(tmp_path)
    assert label.item == item
    assert label.is_blind is False, "the list of tasks shows what models replied"


def test_a_monitor_that_only_reads_labels_nothing(
    made: RunFolder, tmp_path: Path
) -> None:
    async def act(seat: Seat) -> None:
        await seat.pilot.press("l")
        await seat.pilot.pause(0.2)
        assert not isinstance(seat.app.screen, LabelScreen)

    monitored(made, act, is_read_only=True)
    assert not (tmp_path / "labels").exists()
