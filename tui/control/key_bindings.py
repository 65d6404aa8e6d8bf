"""Binds the keys that send commands to the run in front, and carries them out.

Previews are in `dialog`; the table of actions is in `actions`.

The dialog decides, the run's `CommandSender` writes, and the outcome is shown over the
current screen. Without a sender, none of this happens.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Coroutine, Iterator
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.app import App, SystemCommand
from textual.binding import Binding, BindingType
from textual.events import Key
from textual.worker import Worker

from store.control import CommandOutcome, outcome_sentence
from store.errors import StoreError
from store.printable import printable
from tui.control.actions import ACTIONS, SCORE, Action, withdrawing
from tui.control.commands import (
    CommandNotice,
    CommandSender,
    FollowedCommand,
    expected_state,
)
from tui.run_screens import WatchedRun
from tui.screens.run import RunScreen
from tui.screens.runs import RunsScreen
from tui.sources.command import CommandFailed
from tui.sources.run_snapshot import RunSnapshot
from tui.terminal.shell import SelectingScreen, TerminalApp
from tui.widgets.keys import CONTROL

if TYPE_CHECKING:
    from tui.control.dialog import ConfirmedCommand
    from tui.screens.commands import CommandsScreen


POLL_S = 0.5
"""Interval of checks for an outcome while one is pending."""
FINAL_NOTICE_S, PASSING_S = 8.0, 3.0
"""Display times of the final notice of a command, and of earlier ones."""


class CommandController:
    """Sends commands to one watched run."""

    def __init__(
        self, app: App[str], watched: WatchedRun, control: CommandSender
    ) -> None:
        self._app = app
        self._watched = watched
        self._control = control
        self._clock = watched.sources.clock
        self._source = watched.sources.requests(watched.folder)
        self._run_id = watched.folder.run_id
        self._is_closed = False

    def close(self) -> None:
        """Stop following; commands already sent stay valid."""
        self._is_closed = True
        self._source.close()
        self._control.close()

    def begin(self, action: Action, seen: RunSnapshot, task_filter: str) -> None:
        """Open the dialog of an action.

        Args:
            action: the action.
            seen: the run as displayed.
            task_filter: the current task filter; empty: none.
        """
        from tui.control.dialog import Dialog  # noqa: PLC0415 - not for the first paint

        choices = action.choices(seen, task_filter)
        if not choices:
            return
        state = expected_state(seen)

        def decided(command: ConfirmedCommand | None) -> None:
            if command is not None:
                self._ask(command, state)

        dialog = Dialog(
            action,
            choices,
            run_id=self._run_id,
            state=seen.state,
            source=self._source,
            glyphs=self._watched.glyphs,
        )
        self._app.push_screen(dialog, decided)

    def _ask(self, command: ConfirmedCommand, state: str) -> None:
        if command.kind == "score":
            self._work(self._score(command))
            return
        try:
            # withdrawing is right in any state
            expected = None if command.kind == "withdraw" else state
            name = self._control.ask(command.kind, command.payload, expected)
        except OSError as error:
            problem = f"Not sent: {command.words}: {error.strerror}; check the folder"
            self._notify(CommandNotice(sentence=problem, is_bad=True))
            return
        self._notify(
            CommandNotice(
                sentence=outcome_sentence(CommandOutcome.WAITING, command.words),
                is_passing=True,
            )
        )
        followed = FollowedCommand(
            id=name,
            words=command.words,
            run_id=self._run_id,
            requested_us=self._clock.now_us(),
        )
        self._work(self._follow(followed))

    def _work(self, work: Coroutine[None, None, None]) -> None:
        _: Worker[None] = self._app.run_worker(
            work, group="asking", exit_on_error=False
        )

    async def _score(self, command: ConfirmedCommand) -> None:
        self._notify(
            CommandNotice(sentence=f"Started: {command.words}", is_passing=True)
        )
        try:
            report = await self._control.score()
        except CommandFailed as error:
            self._notify(
                CommandNotice(sentence=f"Failed: {command.words}: {error}", is_bad=True)
            )
        else:
            self._notify(CommandNotice(sentence=f"Done: {command.words}: {report}"))

    async def _follow(self, followed: FollowedCommand) -> None:
        while not (followed.is_over or self._is_closed):
            try:
                requests = await self._source.poll()
            except (StoreError, sqlite3.Error, OSError):
                pass  # the screen in front reports problems with the log
            else:
                followed, news = followed.see(requests, self._clock.now_us())
                if news is not None:
                    self._notify(news)
            await self._clock.sleep_until(self._clock.monotonic() + POLL_S)

    def _notify(self, news: CommandNotice) -> None:
        self._app.notify(
            printable(f"{news.sentence}."),
            severity="warning" if news.is_bad else "information",
            timeout=PASSING_S if news.is_passing else FINAL_NOTICE_S,
            markup=False,
        )


class TerminalControlApp(TerminalApp):
    """An application for one run at a time, to which commands can be sent."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            action.key,
            f"ask('{action.name}')",
            f"{action.title}{CONTROL}",
            tooltip=action.about,
            id=action.name,
        )
        for action in ACTIONS
        if action.key is not None
    ]
    _controller: CommandController | None = None  #: None: commands are not allowed

    def ask_of(self, watched: WatchedRun) -> None:
        """Send later commands to that run, if allowed."""
        if self._controller is not None:
            self._controller.close()
        control = watched.control
        self._controller = (
            None if control is None else CommandController(self, watched, control)
        )

    @property
    def seen(self) -> RunSnapshot | None:
        """The run in front, as last displayed; None: the list of runs."""
        if isinstance(self.screen, RunsScreen):
            return None
        screens = [s for s in self.screen_stack if isinstance(s, RunScreen)]
        return screens[0].snapshot if screens else None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable command keys if commands are not allowed or make no sense.

        They are hidden if no run is in front.
        """
        if action != "ask":
            return super().check_action(action, parameters)
        seen = self.seen
        if seen is None:
            return False
        chosen = next(action for action in ACTIONS if action.name == parameters[0])
        is_open = self._controller is not None and chosen.choices(seen, "")
        return True if is_open else None

    def on_key(self, event: Key) -> None:
        """Say why a disabled command key does nothing."""
        seen = self.seen
        action = next((a for a in ACTIONS if a.key == event.key), None)
        if action is None:
            return
        if seen is None:
            if isinstance(self.screen, RunsScreen):
                self.notify(
                    f"{action.title}: open the run first (enter).", markup=False
                )
            return
        if self._controller is None:
            reason = "this monitor is read-only"
        elif not action.choices(seen, ""):
            reason = f"the run is {seen.state.replace('_', ' ')}"
        else:
            return
        self.notify(f"{action.title}: not possible, {reason}.", markup=False)

    def keyless(self) -> Iterator[SystemCommand]:
        """Yield commands that are only in the palette."""
        if self.check_action("ask", (SCORE.name,)):
            ask = partial(self.action_ask, SCORE.name)
            yield SystemCommand(f"{SCORE.title}{CONTROL}", SCORE.about, ask)

    def action_ask(self, name: str) -> None:
        """Preview an action, and send it if confirmed."""
        chosen = next(action for action in ACTIONS if action.name == name)
        task_filter = (
            self.screen.task_filter if isinstance(self.screen, SelectingScreen) else ""
        )
        self._begin(chosen, task_filter)

    def on_commands_screen_withdrawn(self, message: CommandsScreen.Withdrawn) -> None:
        """Preview the withdrawal of a command, and send it if confirmed."""
        self._begin(withdrawing(message.request), "")

    def _begin(self, action: Action, task_filter: str) -> None:
        for screen in self.screen_stack:
            if isinstance(screen, RunScreen):
                screen.poll()  # it may have been in the background for long
        seen = self.seen
        if self._controller is not None and seen is not None:
            self._controller.begin(action, seen, task_filter)
