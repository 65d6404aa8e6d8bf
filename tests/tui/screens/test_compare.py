"""The Compare screen: what there is to choose, how it is computed, where it leads."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from textual.pilot import Pilot
from textual.widgets import Input

from store.runs import RunFolder
from tests.store.logs import written
from tests.store.memory_log import FakeClock
from tests.store.samples import plan, task
from tests.tui.comparisons import FakeChild, pair, record
from tests.tui.fake_events import FakeEvents
from tests.tui.fake_tasks import FakeTasks
from tests.tui.sights import (
    HOSTILE,
    LIVELY,
    FakeConfig,
    FakeListing,
    FakeSource,
    snapshot,
    with_status,
)
from tui.app import Monitor
from tui.render.glyphs import ASCII, UNICODE, Glyphs
from tui.run_screens import MonitorSources
from tui.screens.compare import CompareScreen
from tui.screens.tasks import TasksScreen
from tui.sources.command import CommandFailed
from tui.sources.run_list import ListedRun
from tui.sources.run_snapshot import ReadProblem, SnapshotOrProblem


@dataclass
class Seat:
    """Before a monitor of r1, with r2 beside it, that compares by a fake child."""

    folder: Path
    child: FakeChild
    models: tuple[str, ...] = ("m-large",)
    is_alone: bool = False
    own: SnapshotOrProblem | None = None
    glyphs: Glyphs = UNICODE
    size: tuple[int, int] = (120, 40)
    clock: FakeClock = field(default_factory=FakeClock)

    def run(self, act: Callable[[Seat], Awaitable[None]]) -> None:
        sources = self._sources()

        async def sit() -> None:
            self.app = Monitor(
                sources, glyphs=self.glyphs, run=RunFolder(self.folder / "r1")
            )
            await self._act(act)

        asyncio.run(sit())

    async def _act(self, act: Callable[[Seat], Awaitable[None]]) -> None:
        async with self.app.run_test(size=self.size) as pilot:
            self.pilot: Pilot[str] = pilot
            await pilot.pause()
            await self.press("c")
            await act(self)

    def _sources(self) -> MonitorSources:
        sights: dict[str, SnapshotOrProblem] = {}
        for name in ("r1", "r2"):
            seen = snapshot(self.folder / name)
            sights[name] = with_status(seen, models={"subject": list(self.models)})
        names = ["r1"] if self.is_alone else ["r1", "r2"]
        listed = [
            ListedRun(folder=RunFolder(self.folder / name), snapshot=sights[name])
            for name in names
        ]
        return MonitorSources(
            listing=FakeListing(listed, self.folder),
            run=lambda _: FakeSource([self.own or sights["r1"]]),
            tasks=lambda _: FakeTasks(50),
            events=lambda _: FakeEvents(10),
            config=lambda _: FakeConfig(),
            clock=self.clock,
            child=lambda: self.child,
        )

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.pilot.pause()

    async def settled(self) -> None:
        """Wait for what is asked."""
        for _ in range(2):
            await self.app.workers.wait_for_complete()
            await self.pilot.pause()

    async def compare(self) -> None:
        await self.press("enter")
        await self.settled()

    @property
    def screen(self) -> CompareScreen:
        assert isinstance(self.app.screen, CompareScreen)
        return self.app.screen

    def shown(self) -> str:
        strips = self.app.screen._compositor.render_strips()
        return "\n".join("".join(part.text for part in strip) for strip in strips)


def seat(tmp_path: Path, *pairs: dict[str, object], **changed: object) -> Seat:
    return Seat(tmp_path, FakeChild([record(*(pairs or (pair(),)))]), **changed)  # type: ignore[arg-type]


def test_a_choice_a_comparison_its_items_and_their_tasks(tmp_path: Path) -> None:
    async def act(at: Seat) -> None:
        text = at.shown()
        assert "COMPARE  r1 with …" in text
        assert "enter compares A r1:m-large  ↔  B r2:m-large" in text
        await at.compare()
        text = at.shown()
        assert "A r1 m-large  ↔  B r2 m-large" in text
        assert "+0.125 … +0.375  B better" in text
        assert "$/1,000 tasks" in text
        assert "as of event 12 of A and 14 of B" in text
        assert len(text.split("\n")) == 24
        await at.press("j")
        assert "612,004 pairs in 120 papers, only A 3, only B 98,110" in at.shown()
        gaps = [{"item": "item-1/q:1", "a": 1.0, "b": 0.0}]
        at.child.answer = [record(pair(items=gaps))]
        await at.compare()
        text = at.shown()
        assert "item-1/q:1" in text
        assert "−1.000" in text
        assert "1 item differs" in text
        await at.compare()
        assert isinstance(at.app.screen, TasksScreen)
        wanted = at.app.screen.query_one("#filter", Input).value
        assert wanted == "item:item-1 model:m-large"
        await at.press("c")
        assert "item-1/q:1" in at.shown()
        await at.press("escape")
        assert "B better" in at.shown()
        assert at.screen.focused is not None
        await at.press("escape")
        assert not isinstance(at.app.screen, CompareScreen)
        assert not at.child.is_closed

    at = seat(tmp_path, size=(80, 24))
    at.run(act)
    assert at.child.is_closed


def test_while_it_computes_its_time_is_told_and_escape_stops_it(tmp_path: Path) -> None:
    async def act(at: Seat) -> None:
        at.child.may.clear()
        await at.press("enter")
        at.clock.advance(3)
        at.screen.poll()
        await at.pilot.pause()
        text = at.shown()
        assert "3.0 s so far" in text
        assert "the runs are not disturbed" in text
        await at.press("escape")
        await at.settled()
        assert at.child.stopped == 1
        assert "stopped after 3.0 s" in at.shown()
        await at.press("escape")
        assert "1 to choose from" in at.shown()
        await at.press("enter", "b")
        await at.settled()
        assert at.child.stopped == 2
        at.child.may.set()
        await at.compare()
        assert "B better" in at.shown()

    seat(tmp_path).run(act)


def test_what_fails_is_a_sentence_with_the_next_keys(tmp_path: Path) -> None:
    async def act(at: Seat) -> None:
        answer, at.child.answer = at.child.answer, CommandFailed(f"no {HOSTILE}")
        await at.compare()
        text = at.shown()
        assert "[/INST]" in text
        assert all(character.isprintable() or character == "\n" for character in text)
        assert "Try again with r, choose another one with b" in text
        at.child.answer = answer
        await at.press("r")
        await at.settled()
        assert "B better" in at.shown()
        assert [asked[:2] for asked in at.child.asked] == [("compare", "r1")] * 2

    seat(tmp_path, models=("m-large", "m-small")).run(act)


def test_alone_it_says_how_to_begin_and_takes_what_is_typed(tmp_path: Path) -> None:
    async def act(at: Seat) -> None:
        text = " ".join(at.shown().split())
        assert "No other run of sample-job" in text
        assert "start one with 'siftlog run sample-job'" in text
        await at.press("slash", *"--csv=x", "enter")
        assert "names no run" in at.shown()
        await at.press("escape", "x", "slash", *"r2:m", "slash", "x")
        at.screen.poll()
        await at.pilot.pause()
        assert "No listed side matches r2:m/x: enter compares" in at.shown()
        await at.compare()
        assert at.child.asked[0][:3] == ("compare", "r1", "r2:m/x")
        assert "B better" in at.shown()

    seat(tmp_path, is_alone=True).run(act)


def test_models_stand_in_groups_and_a_filter_shows_one_metric_of_all(
    tmp_path: Path,
) -> None:
    pairs = [pair(model, not_compared={"z": "unlike"}) for model in ("m-large", "m-s")]

    async def act(at: Seat) -> None:
        await at.compare()
        assert "6 metrics of 2 pairs of models" in at.shown()
        await at.press("slash", *"avg")
        text = at.shown()
        assert text.count("avg_score") == 2
        assert "unsure" not in text
        assert "B r2 m-s" in text
        await at.press("enter", "g", "enter")
        text = at.shown()
        assert "not compared: z: unlike" in text
        assert "avg_score, 612,004 pairs" in text
        await at.press("escape", "x")
        assert at.shown().count("unsure") == 2

    seat(tmp_path, *pairs, models=("m-large", "m-s")).run(act)


def test_events_since_are_counted_and_comparing_again_keeps_the_cursor(
    tmp_path: Path,
) -> None:
    more = [[plan([task(number)], first=number)] for number in range(10, 20)]

    async def act(at: Seat) -> None:
        await at.compare()
        await at.press("j", "j")
        await asyncio.to_thread(written, tmp_path / "log.db", *LIVELY, *more)
        (tmp_path / "log.db").replace(tmp_path / "r2" / "log.db")
        at.clock.advance(6)
        at.screen.poll()
        await at.settled()
        assert "events since: r" in at.shown()
        at.child.answer = [record(pair(), notes=["the settings differ: x"])]
        await at.press("r")
        await at.settled()
        text = at.shown()
        assert "note: the settings differ: x" in text
        assert "▸ few" in text
        assert len(at.child.asked) == 2

    seat(tmp_path).run(act)


def test_hostile_names_are_shown_and_do_nothing(tmp_path: Path) -> None:
    hostile = pair(HOSTILE, metrics={HOSTILE: pair()["metrics"]["avg_score"]})
    hostile["items"] = [{"item": HOSTILE, "a": 1.0, "b": 0.0}]
    hostile["not_compared"] = {HOSTILE: HOSTILE}

    async def act(at: Seat) -> None:
        at.child.answer = [record(hostile, notes=[HOSTILE])]
        await at.compare()
        texts = [at.shown()]
        await at.press("enter")
        texts.append(at.shown())
        await at.press("escape", "j", "enter")
        await at.settled()
        texts.append(at.shown())
        for text in texts:
            assert "[/INST]" in text
            assert text.replace("\n", "").isascii()

    seat(tmp_path, glyphs=ASCII, size=(80, 24)).run(act)


def test_a_run_that_is_gone_is_a_sentence(tmp_path: Path) -> None:
    async def act(at: Seat) -> None:
        assert "the log of r1 is gone: look elsewhere." in at.shown()
        await at.press("escape")
        assert not isinstance(at.app.screen, CompareScreen)

    gone = ReadProblem(sentence="the log of r1 is gone: look elsewhere")
    seat(tmp_path, own=gone).run(act)
