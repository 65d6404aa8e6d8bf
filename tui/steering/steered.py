"""The keys that ask something of the run in front, and when they may.

What they come to is the business of `asking`; the table of them is `actions`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual.app import SystemCommand
from textual.binding import Binding, BindingType

from tui.drawing.keys import CONTROL
from tui.screens.aiming import Aiming
from tui.screens.run import RunScreen
from tui.screens.runs import RunsScreen
from tui.sources.sight import Snapshot
from tui.steering.actions import ACTIONS, SCORE, Action, withdrawing
from tui.steering.asking import Asking
from tui.terminal.shell import Shell
from tui.watched import Watched

if TYPE_CHECKING:  # a place, imported when it is gone to
    from tui.screens.commands import CommandsScreen


class Steered(Shell):
    """A shell around one run at a time, of which things can be asked."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            action.key,
            f"ask('{action.name}')",
            f"{action.title}{CONTROL}",
            show=action.is_shown,
            tooltip=action.about,
            id=action.name,
        )
        for action in ACTIONS
        if action.key is not None
    ]
    _asking: Asking | None = None  #: None: nothing may be asked

    def ask_of(self, watched: Watched) -> None:
        """From now on that run is asked, where anybody may."""
        if self._asking is not None:
            self._asking.close()
        control = watched.control
        self._asking = None if control is None else Asking(self, watched, control)

    @property
    def seen(self) -> Snapshot | None:
        """The run in front, as it was seen last; None: the list of runs is."""
        if isinstance(self.screen, RunsScreen):
            return None
        screens = [s for s in self.screen_stack if isinstance(s, RunScreen)]
        return screens[0].snapshot if screens else None

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Keys that ask something are grey where nothing may be asked, or makes sense.

        They are hidden where no run is in front.
        """
        if action != "ask":
            return super().check_action(action, parameters)
        seen = self.seen
        if seen is None:
            return False
        wanted = next(each for each in ACTIONS if each.name == parameters[0])
        is_open = self._asking is not None and wanted.choices(seen, "")
        return True if is_open else None

    def keyless(self) -> Iterator[SystemCommand]:
        """What can be asked by the palette alone."""
        if self.check_action("ask", (SCORE.name,)):
            ask = partial(self.action_ask, SCORE.name)
            yield SystemCommand(f"{SCORE.title}{CONTROL}", SCORE.about, ask)

    def action_ask(self, name: str) -> None:
        """Say what an action would come to, and ask it of the run if it is meant."""
        wanted = next(each for each in ACTIONS if each.name == name)
        aim = self.screen.aim if isinstance(self.screen, Aiming) else ""
        self._begin(wanted, aim)

    def on_commands_screen_withdrawn(self, message: CommandsScreen.Withdrawn) -> None:
        """Say what taking a request back means, and do it if it is meant."""
        self._begin(withdrawing(message.asked), "")

    def _begin(self, action: Action, aim: str) -> None:
        for screen in self.screen_stack:
            if isinstance(screen, RunScreen):
                screen.look()  # another one may have been in front for long
        seen = self.seen
        if self._asking is not None and seen is not None:
            self._asking.begin(action, seen, aim)
