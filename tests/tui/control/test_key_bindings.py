"""Asking something of a run: from the key to what became of it, over any screen."""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from runner.cli.command_table import cli
from store.control import CommandOutcome
from store.read.limits import ObservedLimits
from store.read.status import Pause
from store.runs import RunFolder
from tests.store.memory_log import FakeClock
from tests.tui.fake_events import FakeEvents
from tests.tui.fake_requests import FakeControl, FakeRequests, request
from tests.tui.fake_tasks import FakeTasks
from tests.tui.sights import (
    FakeConfig,
    FakeListing,
    FakeSource,
    snapshot,
    with_signs,
    with_status,
)
from tui.app import Monitor
from tui.control.actions import ACTIONS
from tui.control.dialog import Dialog
from tui.control.key_bindings import POLL_S
from tui.render.glyphs import UNICODE
from tui.run_screens import MonitorSources
from tui.sources.run_list import ListedRun
from tui.sources.run_snapshot import RunSnapshot, SnapshotOrProblem
from tui.widgets.panel import TextBlock


@dataclass
class Seat:
    """Before a monitor of one run that can be asked."""

    sight: SnapshotOrProblem
    is_read_only: bool = False

    def __post_init__(self) -> None:
        self.clock = FakeClock()
        self.requests = FakeRequests()
        self.control = FakeControl(self.requests)
        self.source = FakeSource([self.sight])
        folder = RunFolder(Path("runs/r1"))
        self.app = Monitor(
            MonitorSources(
                listing=FakeListing([ListedRun(folder=folder, snapshot=self.sight)]),
                run=lambda _: self.source,
                tasks=lambda _: FakeTasks(20),
                events=lambda _: FakeEvents(),
                config=lambda _: FakeConfig(),
                clock=self.clock,
                requests=lambda _: self.requests,
                control=lambda _: None if self.is_read_only else self.control,
            ),
            glyphs=UNICODE,
            run=folder,
        )
        self.told: list[str] = []  #: so far, the latest last
        notify = self.app.notify

        def recorded(message: str, **options: Any) -> None:
            # a notice leaves the screen after some seconds, which may pass in a test
            self.told.append(message)
            notify(message, **options)

        self.app.notify = recorded  # type: ignore[method-assign]

    def watch(self, act: Callable[[Seat, Pilot[str]], Awaitable[None]]) -> None:
        async def main() -> None:
            async with self.app.run_test(size=(120, 40)) as pilot:
                await pilot.pause()
                await self.until(pilot, lambda: "q Quit" in self.shown())
                await act(self, pilot)

        asyncio.run(main())

    async def press(self, pilot: Pilot[str], *keys: str) -> None:
        for key in keys:
            await pilot.press(key)
        await pilot.pause(0.05)

    async def reckoned(self, pilot: Pilot[str], kind: str, **payload: str) -> None:
        """Wait until the figures of a request have been asked for."""
        await self.until(pilot, lambda: (kind, payload) in self.requests.reckoned)

    async def until(self, pilot: Pilot[str], holds: Callable[[], bool]) -> None:
        """Wait for what workers and threads bring about in their own time."""
        for _ in range(1500):
            if holds():
                return
            await pilot.pause(0.02)
        pytest.fail(f"reckoned: {self.requests.reckoned}\n{self.shown()}")

    async def later(self, pilot: Pilot[str], seconds: float = POLL_S) -> None:
        self.clock.advance(seconds)
        await pilot.pause(0.05)

    def shown(self) -> str:
        strips = self.app.screen._compositor.render_strips()
        return "\n".join("".join(part.text for part in strip) for strip in strips)

    def offered(self, title: str) -> Callable[[], Any] | None:
        """What a command of the palette does; None: there is no such command."""
        commands = self.app.get_system_commands(self.app.screen)
        return next((c.callback for c in commands if c.title == title), None)

    def grey(self) -> set[str]:
        """Actions that the keys of the screen in front cannot begin."""
        active = self.app.screen.active_bindings.values()
        return {
            bound.binding.id or ""
            for bound in active
            if bound.binding.action.startswith("ask(") and not bound.enabled
        }


def test_a_pause_is_told_from_the_request_to_its_effect_over_whatever_is_in_front(
    tmp_path: Path,
) -> None:
    async def act(seat: Seat, pilot: Pilot[str]) -> None:
        assert "read-only" not in seat.shown()
        await seat.press(pilot, ":", *"drain")
        await seat.until(pilot, lambda: "Stop…  (C)" in seat.shown())
        await seat.press(pilot, "escape")
        await seat.press(pilot, "P", "y")
        assert seat.control.wishes == [("pause", {}, "live")]
        assert seat.told == ["Sent: pause."]
        await seat.press(pilot, "t")
        seat.requests.answer(CommandOutcome.ACCEPTED)
        await seat.later(pilot)
        assert seat.told[-1] == "Accepted: pause."
        seat.requests.answer(CommandOutcome.APPLIED, "paused: the run")
        await seat.later(pilot)
        assert seat.told[-1] == "Applied: paused: the run."
        await seat.later(pilot)
        assert len(seat.told) == 3

    seat = Seat(snapshot(tmp_path / "r1"))
    seat.watch(act)


def test_what_is_not_meant_is_not_asked_and_what_cannot_be_written_is_told(
    tmp_path: Path,
) -> None:
    async def act(seat: Seat, pilot: Pilot[str]) -> None:
        await seat.press(pilot, "P", "n")
        assert not seat.control.wishes
        seat.control.trouble = PermissionError(13, "Permission denied")
        await seat.press(pilot, "P", "y")
        said = "Not sent: pause: Permission denied; check the folder."
        assert seat.told == [said]
        seat.control.trouble = None
        seat.source.sights = [with_signs(live, paused_by="ops")]
        await seat.press(pilot, "t", "P", "y")
        assert seat.control.wishes == [("pause", {}, "paused")], "as it is by then"

    live = snapshot(tmp_path / "r1")
    Seat(live).watch(act)


def test_a_retry_begins_with_the_tasks_that_are_looked_at(tmp_path: Path) -> None:
    async def act(seat: Seat, pilot: Pilot[str]) -> None:
        for keys, expression in (
            (("t", "R"), "state:failed"),
            (("slash", *"PMC", "enter", "R"), "PMC"),
            (("enter", "R"), "task:1"),
        ):
            await seat.press(pilot, *keys)
            await seat.reckoned(pilot, "retry", filter=expression)
            await seat.press(pilot, "n")

    Seat(snapshot(tmp_path / "r1")).watch(act)


def test_a_request_without_an_answer_is_withdrawn_in_the_commands_log(
    tmp_path: Path,
) -> None:
    async def act(seat: Seat, pilot: Pilot[str]) -> None:
        seat.requests.asked.append(request("c0", "retry"))
        await seat.press(pilot, "P", "y")
        await seat.later(pilot, 5.1)
        assert "the run has not answered (heartbeat 12 s ago)" in seat.told[-1]
        await seat.press(pilot, "a", "j", "W")
        assert "The command of ops will be withdrawn" in seat.shown()
        assert _line(seat) == "siftlog commands r1 --withdraw c0"
        await seat.press(pilot, "y")
        assert seat.control.wishes[-1] == ("withdraw", {"id": "c0"}, None)

    Seat(snapshot(tmp_path / "r1")).watch(act)


def test_what_may_not_be_asked_or_makes_no_sense_is_grey_and_not_in_the_palette(
    tmp_path: Path,
) -> None:
    live = snapshot(tmp_path / "r1")
    finished = replace(with_signs(live, phase="run_finished"), is_alive=False)

    async def none(seat: Seat, pilot: Pilot[str]) -> None:
        assert "read-only" in seat.shown()
        assert seat.grey() == {"pause", "limits", "retry", "cancel"}
        assert seat.offered("Score again…") is None
        await seat.press(pilot, *"PLRC")
        assert not isinstance(seat.app.screen, Dialog)
        assert seat.told[0] == "Pause: not possible, this monitor is read-only."
        await seat.press(pilot, "1")
        assert not {key for key in seat.app.screen.active_bindings if key in "PLRC"}
        assert "enter Open" in seat.shown()
        await seat.press(pilot, "C")
        assert seat.told[-1] == "Stop: open the run first (enter)."

    async def few(seat: Seat, pilot: Pilot[str]) -> None:
        assert seat.grey() == {"pause", "limits", "cancel"}
        await seat.press(pilot, "L")
        assert seat.told == ["Limits: not possible, the run is finished."]
        score = seat.offered("Score again…")
        assert score is not None
        score()
        await seat.until(pilot, lambda: "would be scored again" in seat.shown())
        await seat.press(pilot, "y")
        assert seat.told[-1] == "Done: score the answers again: recorded as scoring 2."

    Seat(finished, is_read_only=True).watch(none)
    Seat(finished).watch(few)


def _line(seat: Seat) -> str:
    line = seat.app.screen.query_one("#line", TextBlock).render().plain
    return line.removeprefix("$ ")


def test_every_choice_of_every_dialog_shows_the_command_that_does_it(
    tmp_path: Path,
) -> None:
    """Whoever adds an action finds it here: the table of actions is walked."""
    limits = ObservedLimits(
        model="m", concurrency=8, rpm=3100.0, tpm=None, paused_until_us=None
    )
    pauses = (Pause(stage="ask", model=None, by="ops"),)
    live = with_status(
        snapshot(tmp_path / "r1"), limits=(limits,), budget_usd=5.0, pauses=pauses
    )
    ended = replace(with_signs(live, phase="run_finished"), is_alive=False)
    shown: dict[str, set[str]] = {}

    async def act(seat: Seat, pilot: Pilot[str]) -> None:
        seen = seat.source.sights[0]
        assert isinstance(seen, RunSnapshot)
        for action in ACTIONS:
            choices = action.choices(seen, "")
            if not choices:
                continue
            seat.app.action_ask(action.name)
            await seat.until(pilot, lambda: isinstance(seat.app.screen, Dialog))
            await pilot.pause()
            for at, choice in enumerate(choices):
                line = _line(seat)
                shown.setdefault(action.name, set()).add(line)
                assert shlex.split(line)[:3] == ["siftlog", choice.kind, "r1"], line
                if at + 1 < len(choices):
                    await seat.press(pilot, "j")
            await seat.press(pilot, "escape")

    Seat(live).watch(act)
    Seat(ended).watch(act)
    assert set(shown) == {action.name for action in ACTIONS}
    for line in set().union(*shown.values()):
        _, verb, *words = shlex.split(line.replace(" N", " 7").replace(" USD", " 7"))
        context = cli.make_context("siftlog", [verb])
        command = cli.get_command(context, verb)
        assert command is not None, line
        command.make_context(verb, words, parent=context)
    assert "siftlog limits r1 --model m --rpm N" in shown["limits"]
    assert "siftlog budget r1 --add USD" in shown["limits"]
    assert "siftlog resume r1 --stage ask" in shown["pause"]
