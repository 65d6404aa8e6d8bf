"""What the screens look like, kept as texts in `golden/`: a change of looks is a diff.

`SIFTLOG_GOLDEN=write` in the environment writes them anew; look at the difference.
"""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from store.errors import LogBusy
from store.events import Input, RunStarted
from store.read.history import CompletedSecond, Completions
from store.read.live import MinuteRow
from store.read.usage import ReplyShares
from store.runs import RunFolder
from tests.replacing import replace
from tests.store.memory_log import FakeClock
from tests.tui.comparisons import FakeChild, pair, record
from tests.tui.fake_events import FakeEvents
from tests.tui.fake_history import HEADLINE, FakeHeadline, FakeHistory
from tests.tui.fake_requests import FakeControl, FakeRequests, request
from tests.tui.fake_tasks import FakeTasks, settled
from tests.tui.golden_view import THEME, cells, styles
from tests.tui.sights import (
    STATES,
    FakeConfig,
    FakeListing,
    FakeSource,
    every_state,
    later,
    snapshot,
    with_signs,
    with_status,
)
from tui.app import Monitor
from tui.render.glyphs import ASCII, UNICODE
from tui.run_screens import MonitorSources
from tui.sources.config import RunSetup
from tui.sources.result import ResultFinding, ScoringResult
from tui.sources.run_list import ListedRun
from tui.sources.run_snapshot import ReadProblem, RunSnapshot, SnapshotOrProblem
from tui.terminal.shell import FilteringScreen, RefreshingScreen

KEPT = Path(__file__).parent / "golden"
SMALL, MIDDLE, WIDE, WIDEST = (80, 24), (100, 30), (120, 40), (160, 50)
LARGE = (200, 60)
BEGAN = RunStarted(
    run_id="r1",
    job="sample-job",
    job_version="1",
    code_sha256="c0de" * 16,
    settings='{"limit": 5}',
    models={"subject": ["m-large", "m-small"]},
    replicates=1,
    inputs=[Input(setting="papers", path="papers", sha256="ab12" * 16)],
    siftlog_version="0.1.0",
    budget_usd=5.0,
)


Seen = Mapping[str, SnapshotOrProblem | None]


@dataclass
class Seat:
    """Before a monitor, whose screens are written down one below the other."""

    pilot: Pilot[str]
    app: Monitor
    source: FakeSource
    tasks: FakeTasks
    seen: Seen
    written: list[str] = field(default_factory=list)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await settled(self.pilot)

    async def look(self, sight: SnapshotOrProblem) -> None:
        self.source.sights = [sight]
        screen = self.app.screen
        assert isinstance(screen, RefreshingScreen)
        screen.poll()
        await settled(self.pilot)

    def write(self, about: str, *, has_styles: bool = True) -> None:
        screen = self.app.screen
        self.written += [f"== {about}", *cells(screen)]
        if has_styles:
            self.written += ["-- styles", *styles(screen)]

    async def write_at(self, *sizes: tuple[int, int], has_styles: bool = True) -> None:
        for width, height in sizes:
            await self.pilot.resize_terminal(width, height)
            await settled(self.pilot)
            self.write(f"{width}x{height}", has_styles=has_styles)


Act = Callable[[Seat], Awaitable[None]]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where runs r1 and r2 are."""
    folder = tmp_path_factory.mktemp("golden")
    (folder / "runs").mkdir()
    return folder


@pytest.fixture(scope="module")
def seen(folder: Path) -> Seen:
    """What is seen of runs, the one in front first."""
    other = snapshot(folder / "runs" / "r2")
    return {
        "r1": snapshot(folder / "runs" / "r1"),
        "r2": with_status(other, models={"subject": ["m-large"]}),
        "a-run-with-a-name-of-many-words": None,
        "r4": ReadProblem(sentence="r4 is no log"),
        **dict(every_state(folder / "runs" / "r1")),
    }


def _sources(seen: Seen, source: FakeSource, tasks: FakeTasks) -> MonitorSources:
    headline = FakeHeadline()
    headline.may_answer.set()
    requests = FakeRequests([request("c1", payload={"stage": "ask"})])
    listed = [
        ListedRun(folder=RunFolder(Path("runs") / name), snapshot=sight)
        for name, sight in seen.items()
    ]
    return MonitorSources(
        listing=FakeListing(listed),
        run=lambda _: source,
        tasks=lambda _: tasks,
        events=lambda _: FakeEvents(5000),
        config=lambda _: FakeConfig(
            RunSetup(began=BEGAN, planned={"ask": 9}, config={"concurrency": 8})
        ),
        clock=FakeClock(),
        requests=lambda _: requests,
        control=lambda _: FakeControl(requests),
        child=lambda: FakeChild([record(pair())]),
        history=lambda *_: FakeHistory(),
        headline=lambda *_: headline,
    )


async def _seated(name: str, seen: Seen) -> list[str]:
    live = seen["r1"]
    assert live is not None
    source, tasks = FakeSource([live]), FakeTasks(5000)
    app = Monitor(
        _sources(seen, source, tasks),
        glyphs=ASCII if name == "run-ascii" else UNICODE,
        run=None if name == "runs" else RunFolder(Path("runs/r1")),
    )
    app.register_theme(THEME.theme())
    app.theme = THEME.name
    async with app.run_test(size=SMALL) as pilot:
        seat = Seat(pilot, app, source, tasks, seen)
        await settled(pilot)
        await GOLDEN[name](seat)
    return seat.written


# What is written down


def _place(*keys: str) -> Act:
    """A screen that some keys lead to, in two sizes."""

    async def act(seat: Seat) -> None:
        await seat.press(*keys)
        await seat.write_at(SMALL, WIDE)

    return act


async def _run(seat: Seat) -> None:
    await seat.write_at(SMALL, MIDDLE, WIDE, WIDEST)
    busy = busy_for(seat.seen["live"])
    await seat.look(busy)
    await seat.write_at(SMALL, LARGE)
    await seat.look(seat.seen["live"])
    await seat.pilot.resize_terminal(*SMALL)
    await seat.press("P")
    seat.write("a question")


async def _run_in_ascii(seat: Seat) -> None:
    await seat.write_at(SMALL, MIDDLE, WIDE, WIDEST, has_styles=False)
    await seat.look(busy_for(seat.seen["live"]))
    await seat.write_at(LARGE, has_styles=False)


async def _endings(seat: Seat) -> None:
    for state in ("finished", "lost"):
        seen = seat.seen[state]
        assert isinstance(seen, RunSnapshot)
        seat.written.append(f"== {state}")
        await seat.look(replace(seen, result=SCORED if state == "finished" else None))
        await seat.write_at(SMALL, WIDE, has_styles=state == "finished")


def busy_for(seen: SnapshotOrProblem | None) -> RunSnapshot:
    """A run that was at work for six minutes, with two models that replied often."""
    assert isinstance(seen, RunSnapshot)
    seen = later(seen, 6 * 60)
    start = seen.created_us // 1_000_000
    seconds = tuple(
        CompletedSecond(second=second, n=2 + second % 3, cost_usd=0.001)
        for second in range(start, start + 6 * 60)
    )
    completed = Counter[int]()
    for row in seconds:
        completed[row.second // 60] += row.n
    rows = tuple(
        MinuteRow(
            t=minute,
            stage="ask",
            model=model,
            started=n // 2 + 3,
            succeeded=n // 2,
            failed=0,
            retried=3,
            tokens_in=400 * n,
            tokens_out=30 * n,
            cost_usd=0.03,
        )
        for minute, n in completed.items()
        for model in ("m-large", "m-small")
    )
    faults = {"truncated": 3, "refused": 0, "filtered": 40, "empty": 0, "failed": 1}
    replies = (
        ReplyShares(model="m-large", replies=540, unparsed=4, **faults),
        ReplyShares(model="m-small", replies=22, unparsed=4, **faults),
    )
    facts = replace(
        seen.facts,
        minutes=rows,
        completed=dict(completed),
        completions=Completions(since_us=seen.created_us, seconds=seconds),
    )
    seen = with_status(replace(seen, facts=facts), replies=replies, budget_usd=5.0)
    return with_signs(seen, heartbeat_us=seen.now_us, success_us=seen.now_us)


SCORED = ScoringResult(
    number=1,
    folder=Path("runs/r1/scores/1"),
    headline=HEADLINE,
    findings=(
        ResultFinding(severity="warn", where="m-small", message="few replies", n=1),
    ),
    has_report=True,
)


_STATES = (*STATES, "quiet", "lost")


async def _states(seat: Seat) -> None:
    for state in _STATES:
        sight = seat.seen[state]
        assert sight is not None
        await seat.look(sight)
        seat.written += [f"== {state}", *cells(seat.app.screen)[:2]]
    await seat.look(ReadProblem(sentence="the log of r1 is gone"))
    seat.write("unreadable")


async def _tasks(seat: Seat) -> None:
    await seat.press("t")
    await seat.write_at(SMALL, WIDE)
    await seat.pilot.resize_terminal(*SMALL)
    seat.tasks.is_slow = True
    await seat.press("G")
    seat.write("loading", has_styles=False)
    screen: object = seat.app.screen
    assert isinstance(screen, FilteringScreen)
    screen.filter_by("nothing")
    await settled(seat.pilot)
    seat.write("nothing fits", has_styles=False)
    seat.tasks.trouble = LogBusy("the log is busy: try again")
    await seat.press("x")
    seat.write("failed", has_styles=False)


async def _help(seat: Seat) -> None:
    await seat.press("question_mark")
    await seat.write_at(WIDE)


GOLDEN: Mapping[str, Act] = {
    "runs": _place(),
    "run": _run,
    "run-ascii": _run_in_ascii,
    "endings": _endings,
    "states": _states,
    "tasks": _tasks,
    "task": _place("t", "j", "enter"),
    "events": _place("e"),
    "metrics": _place("m"),
    "choices": _place("c"),
    "compare": _place("c", "enter"),
    "asked": _place("a"),
    "config": _place("i"),
    "help": _help,
}


def _compare(name: str, lines: list[str]) -> None:
    path, text = KEPT / f"{name}.txt", "".join(f"{line}\n" for line in lines)
    if os.environ.get("SIFTLOG_GOLDEN") == "write":
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8")


@pytest.mark.parametrize("name", GOLDEN)
def test_a_screen_looks_as_it_did(
    name: str, folder: Path, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    _compare(name, asyncio.run(_seated(name, seen)))


def test_a_timer_that_is_due_as_a_screen_opens_changes_nothing(
    folder: Path, seen: Seen, monkeypatch: pytest.MonkeyPatch
) -> None:
    push = Monitor.push_screen

    def push_and_poll(app: Monitor, *args: Any, **options: Any) -> object:
        opened = push(app, *args, **options)
        app._poll()
        return opened

    monkeypatch.chdir(folder)
    monkeypatch.setattr(Monitor, "push_screen", push_and_poll)
    _compare("asked", asyncio.run(_seated("asked", seen)))


def test_nothing_is_kept_of_a_screen_that_is_not_looked_at() -> None:
    kept = {path.stem for path in KEPT.glob("*")}
    assert kept == set(GOLDEN)
