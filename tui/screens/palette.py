"""Shows all commands: command palette and help.

One table in the order of `Monitor.get_system_commands`: keys of the current screen,
destinations, and commands without a key. Names from logs are offered only if they are
plain words, because the palette parses titles as markup.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar, Protocol, runtime_checkable

from textual import on
from textual.app import App, ComposeResult, SystemCommand
from textual.binding import Binding, BindingType
from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.containers import VerticalScroll
from textual.content import Content
from textual.geometry import Size
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Input, OptionList

from store.printable import printable
from store.runs import RunFolder
from store.task import TaskState
from tui.render.glyphs import Glyphs, displayable_text
from tui.screens.base import Modal
from tui.sources.filters import Filters
from tui.sources.run_snapshot import RunSnapshot
from tui.widgets.keys import Key, help_lines


class MonitorPalette(CommandPalette):
    """A searchable list of all commands."""

    def __init__(self) -> None:
        placeholder = "an action, a run, a filter, a theme, or a task by its number"
        super().__init__(placeholder=placeholder, id="--command-palette")

    @on(Input.Changed)
    @on(Input.Submitted)
    @on(OptionList.OptionSelected)
    def _once(self, message: Message) -> None:
        """Ignore messages after a choice."""
        if not self.is_current:
            message.stop()
            message.prevent_default()


_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,59}")
"""Pattern of the class names in `runner.errors`."""
_TASK = re.compile(r"(?:task ?|t-?)?(\d{1,18})", re.IGNORECASE)
_FILTERS = {
    "Tasks that failed": "state:failed",
    "Tasks waiting for a retry": "state:waiting",
    "Tasks running": "state:running",
    "Tasks that are unparsed": "parse:*",
}


class PaletteCommands(Provider):
    """Results of the palette: commands, and a task by its number."""

    async def discover(self) -> Hits:
        """Yield all commands, before any input."""
        for title, about, do, is_discoverable in self.app.get_system_commands(
            self.screen
        ):
            if is_discoverable:
                yield DiscoveryHit(title, do, help=about)

    async def search(self, query: str) -> Hits:
        """Yield the commands that match the input."""
        matcher = self.matcher(query)
        for title, about, do, _ in self.app.get_system_commands(self.screen):
            # "drain" is only in what stopping a run is about
            score = matcher.match(title) or float(query.lower() in about.lower()) / 2
            if score > 0:
                yield Hit(score, matcher.highlight(title), do, help=about)
        for title, about, do, _ in self._typed(query):
            yield Hit(1.0, title, do, help=about)

    def _typed(self, query: str) -> Iterable[SystemCommand]:
        """Yield the commands that the input itself names."""
        app = self.app
        return app.commands_for(query) if isinstance(app, TypedCommands) else ()


@runtime_checkable
class TypedCommands(Protocol):
    """An application with commands for typed text."""

    def commands_for(self, typed: str) -> Iterable[SystemCommand]:
        """Return the commands for the typed text."""


def task_number(typed: str) -> int | None:
    """Parse a task's number from "123", "task 123" or "T-0000123".

    >>> task_number("task 123"), task_number("T-0000123")
    (123, 123)
    """
    match = _TASK.fullmatch(typed.strip())
    return None if match is None else int(match[1])


def key_commands(app: App[Any], keys: Iterable[Key]) -> Iterator[SystemCommand]:
    """Yield a command for each key that does more than move a cursor."""
    for key in keys:
        if key.is_enabled and not key.is_movement and key.id != "commands":
            yield SystemCommand(
                f"{key.about}  ({' '.join(key.names[:2])})",
                key.more,
                partial(app.run_action, key.action, key.node),
            )


def run_commands(
    folders: Sequence[RunFolder], show: Callable[[RunFolder], None]
) -> Iterator[SystemCommand]:
    """Yield a command for each run."""
    for folder in folders:
        if RunFolder.is_valid_id(folder.run_id):
            yield SystemCommand(
                f"Run {folder.run_id}", "Show this run", partial(show, folder)
            )


def task_commands(
    snapshot: RunSnapshot | None, show: Callable[[str], None]
) -> Iterator[SystemCommand]:
    """Yield commands for useful task filters of a run."""
    filters = dict(_FILTERS)
    for queue in snapshot.status.queues if snapshot else ():
        if queue.states.get(TaskState.FAILED) and _PLAIN.fullmatch(queue.stage):
            title = f"Tasks that failed in {queue.stage}"
            filters[title] = f"state:failed stage:{queue.stage}"
    for error in snapshot.facts.errors if snapshot else ():
        if _PLAIN.fullmatch(error.error):
            filters[f"Tasks with the error {error.error}"] = f"err:{error.error}"
    for title, expression in filters.items():
        yield SystemCommand(title, expression, partial(show, expression))


def filter_commands(
    remembered: Filters, show: Callable[[str], None]
) -> Iterator[SystemCommand]:
    """Yield a command for each remembered filter, starred ones first."""
    for expression in remembered.offered:
        # the palette parses brackets as markup
        if printable(expression) == expression and "[" not in expression:
            star = "* " if expression in remembered.starred else ""
            yield SystemCommand(
                f"Tasks: {star}{expression}",
                "A filter used before",
                partial(show, expression),
            )


def theme_commands(
    names: Iterable[str], preferred: Iterable[str], use: Callable[[str], None]
) -> Iterator[SystemCommand]:
    """Yield a command for each theme; Textual's themes only when typed."""
    first = list(preferred)
    for name in [*first, *(name for name in sorted(names) if name not in first)]:
        yield SystemCommand(
            f"Theme {name}", "Use these colours", partial(use, name), name in first
        )


class KeyList(Widget):
    """All keys and what they do, wrapped to the width of the window."""

    DEFAULT_CSS = "KeyList { height: auto; }"

    def __init__(self, keys: Iterable[Key], glyphs: Glyphs) -> None:
        super().__init__()
        self._keys = tuple(keys)
        self._glyphs = glyphs

    def render(self) -> Content:
        """Return the text."""
        text = "\n".join(help_lines(self._keys, self.content_size.width))
        return Content(displayable_text(self._glyphs, text))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        """Return the number of lines at a width."""
        del container, viewport
        return len(help_lines(self._keys, width))


class HelpScreen(Modal[None]):
    """A list of keys over the current screen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,question_mark,q", "dismiss", "Close", id="help.close"),
        Binding("j", "scroll(1)", "Down", show=False, id="help.down"),
        Binding("k", "scroll(-1)", "Up", show=False, id="help.up"),
    ]

    def __init__(self, keys: Iterable[Key], glyphs: Glyphs) -> None:
        super().__init__()
        self._list = KeyList(keys, glyphs)

    def compose(self) -> ComposeResult:
        """Yield the keys and what they do."""
        with VerticalScroll(id="help") as box:
            box.border_title = "keys"
            box.border_subtitle = "esc closes"
            yield self._list

    def action_scroll(self, by: int) -> None:
        """Scroll, if the list is longer than the window."""
        self.query_one(VerticalScroll).scroll_relative(y=by, animate=False)
