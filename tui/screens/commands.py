"""Shows the commands log: commands sent to a run, with author and outcome."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.screen import Screen
from textual.widgets import OptionList
from textual.widgets.option_list import Option
from textual.worker import Worker

from store.control import CommandOutcome, CommandRecord, outcome_sentence
from store.errors import StoreError
from store.fold_state import US_PER_S
from store.printable import printable
from tui.render.format import UNKNOWN, duration, utc
from tui.render.glyphs import Glyphs, substitute_glyphs
from tui.render.layout import clip, one_line
from tui.run_screens import WatchedRun
from tui.sources.command_log import CommandRequests
from tui.widgets.keys import KeyLine
from tui.widgets.panel import TextBlock, TooSmall

_HEADERS = ("UTC", "by", "answer", "after", "what")
_MOST = (19, 24, 9, 9)
"""Maximum widths of all columns but the last, which takes the rest."""
_NARROW = 100
"""Width below which times have no date, and authors no host."""
_TIMESTAMP = slice(0, 19)
"""The part of a UTC time without the Z, which the heading has."""


def lines(
    requests: Sequence[CommandRecord], width: int, glyphs: Glyphs, current: int | None
) -> list[str]:
    """Format the names of the columns, then each command on one line.

    A column is as wide as its widest text, so that what was sent has the rest.

    Args:
        requests: the commands.
        width: cells of a line.
        glyphs: the characters that the terminal supports.
        current: position of the command under the cursor.
    """
    rows = [_HEADERS, *(_cells(request, width) for request in requests)]
    sizes = [
        min(most, max(cell_len(printable(row[at])) for row in rows))
        for at, most in enumerate(_MOST)
    ]
    cursor = None if current is None else current + 1
    return [
        _line(glyphs.cursor if at == cursor else " ", row, sizes, width)
        for at, row in enumerate(rows)
    ]


def _cells(request: CommandRecord, width: int) -> tuple[str, str, str, str, str]:
    is_narrow = width < _NARROW
    return (
        _timestamp(request.asked_us)[-8 if is_narrow else 0 :],
        request.author if is_narrow else _author(request),
        request.answer.value,
        _after(request, request.answered_us or request.accepted_us),
        request.words,
    )


def about(request: CommandRecord) -> str:
    """Describe a command in full: request, condition, outcome."""
    condition = request.expected_state
    parts = (
        f"{request.words}, sent by {_author(request)}",
        f" on condition that the run is {condition}" if condition else "",
        ". ",
        "Not answered yet."
        if request.answer is CommandOutcome.WAITING
        else f"{outcome_sentence(request.answer, request.words, request.said)}.",
        " W withdraws it." if can_be_withdrawn(request) else "",
    )
    return "".join(parts)


def can_be_withdrawn(request: CommandRecord) -> bool:
    """Return whether the command is still pending."""
    return request.answer is CommandOutcome.WAITING and request.kind != "withdraw"


def summary(requests: Sequence[CommandRecord], *, is_alive: bool) -> str:
    """Describe the number of commands and of pending ones."""
    waiting = sum(request.answer is CommandOutcome.WAITING for request in requests)
    counts = f"{len(requests):,} sent"
    if not waiting:
        return counts
    note = "" if is_alive else "; no process works on the run, the next one reads them"
    return f"{counts}, {waiting:,} without an answer{note}"


def _line(mark: str, cells: Sequence[str], sizes: Sequence[int], width: int) -> str:
    fitted = (clip(cell, size) for cell, size in zip(cells[:-1], sizes, strict=True))
    return one_line(f"{mark} {'  '.join(fitted)}  {cells[-1]}", width)


def _author(request: CommandRecord) -> str:
    host = "" if request.host is None else f"@{request.host}"
    return f"{request.author}{host}"


def _timestamp(at_us: int | None) -> str:
    return UNKNOWN if at_us is None else utc(at_us)[_TIMESTAMP].replace("T", " ")


def _after(request: CommandRecord, at_us: int | None) -> str:
    """Format the time until the answer; clocks of two machines may differ."""
    if at_us is None or request.asked_us is None:
        return UNKNOWN
    return duration(max(0.0, (at_us - request.asked_us) / US_PER_S))


MAX_REQUESTS = 200
"""Only the newest are shown: users send few, and a program's thousands do not help."""
NO_REQUESTS = (
    "No control commands were sent. Unless grey, P pauses the run, L "
    "sets limits, R retries tasks and C ends it; esc goes back."
)
NO_REQUESTS_READ_ONLY = (
    "No control commands were sent, and this monitor is read-only: esc goes back."
)
_PADDING = 2


class CommandsScreen(Screen[None]):
    """Commands sent to a run, the newest first."""

    DEFAULT_CSS = """
    CommandsScreen #requests {
        height: 1fr; border: none; background: $background; padding: 0 1;
        background-tint: transparent;
    }
    CommandsScreen #requests > .option-list--option-highlighted {
        background: $panel; color: $foreground; text-style: bold;
    }
    CommandsScreen #full { height: 3; padding: 0 1; color: $state-queued; }
    CommandsScreen #nothing { display: none; height: 1fr; padding: 2 4; }
    CommandsScreen.-nothing #nothing { display: block; }
    CommandsScreen.-nothing #requests, CommandsScreen.-nothing #full,
    CommandsScreen.-nothing #columns, .-tiny #requests, .-flat #requests {
        display: none;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("W", "withdraw", "Withdraw…", id="commands.withdraw"),
        Binding("j", "move(1)", "Down", show=False, id="commands.down"),
        Binding("k", "move(-1)", "Up", show=False, id="commands.up"),
        Binding("escape,h,left", "back", "Back", id="commands.back"),
    ]

    class Withdrawn(Message):
        """Requests the withdrawal of a command."""

        def __init__(self, request: CommandRecord) -> None:
            super().__init__()
            self.request = request

    def __init__(self, watched: WatchedRun) -> None:
        super().__init__()
        self._source = watched.sources.requests(watched.folder)
        self._run_id = watched.folder.run_id
        self._glyphs = watched.glyphs
        self._is_read_only = watched.control is None
        self._last_read: CommandRequests | None = None
        self._requests: list[CommandRecord] = []  # in display order
        self._rendered_lines: list[Content] = []
        self._options = OptionList(id="requests", markup=False)
        self._heading, self._columns, self._full, self._empty = (
            TextBlock(name, self._glyphs)
            for name in ("heading", "columns", "full", "nothing")
        )

    def compose(self) -> ComposeResult:
        """Yield the heading, the list, one command in full, the keys."""
        yield self._heading
        yield self._columns
        yield self._options
        yield self._empty
        yield TooSmall(self._glyphs)
        yield self._full
        yield KeyLine(self._glyphs)

    def on_mount(self) -> None:
        """Start reading."""
        self._explain("Reading control commands …")
        self.poll()

    def on_unmount(self) -> None:
        """Close the log."""
        self._source.close()

    def on_screen_resume(self) -> None:
        """Update after another screen was in front."""
        self.poll()

    def on_resize(self) -> None:
        """Redraw lines for the new width."""
        self._draw()

    # Display

    def poll(self) -> None:
        """Check for new commands or answers; called by the app's timer."""
        if not any(worker.group == "look" for worker in self.workers):
            _: Worker[None] = self.run_worker(
                self._poll(), group="look", exit_on_error=False
            )

    async def _poll(self) -> None:
        try:
            requests = await self._source.poll()
        except (StoreError, sqlite3.Error, OSError) as error:
            self._last_read, self._requests, self._rendered_lines = None, [], []
            self._options.clear_options()
            self._explain(f"{error}. Back with esc.")
            return
        if requests != self._last_read:
            self._last_read = requests
            self._arrange(list(reversed(requests.records))[:MAX_REQUESTS])

    def _arrange(self, requests: list[CommandRecord]) -> None:
        """Update the list; the cursor stays on its command."""
        current = self.current
        ids = [request.id for request in requests]
        if ids != [request.id for request in self._requests]:
            self._options.clear_options()
            self._options.add_options(Option("") for _ in ids)
            self._rendered_lines = []
            is_still_listed = current is not None and current.id in ids
            at = ids.index(current.id) if current and is_still_listed else 0
            self._requests = requests
            if ids:
                self._options.highlighted = at
        self._requests = requests
        if requests:
            self.remove_class("-nothing")
        else:
            self._explain(NO_REQUESTS_READ_ONLY if self._is_read_only else NO_REQUESTS)
        self._draw()
        self.refresh_bindings()

    def _explain(self, sentence: str) -> None:
        self.add_class("-nothing")
        self._empty.say(printable(sentence))
        self._draw()

    def _draw(self) -> None:
        """Redraw changed lines."""
        width = max(0, self.size.width - _PADDING)
        mode = " · read-only" if self._is_read_only else ""
        counts = ""
        if self._last_read is not None:
            counts = summary(self._last_read.records, is_alive=self._last_read.is_alive)
        head = f"COMMANDS LOG {self._run_id}  {counts}{mode}"
        self._heading.say(one_line(head, width))
        at = self._options.highlighted
        header, *rows = lines(self._requests, width, self._glyphs, at)
        self._columns.say(header)
        drawn = [substitute_glyphs(self._glyphs, Content(row)) for row in rows]
        for at, line in enumerate(drawn):
            if not self._rendered_lines or not line.is_same(self._rendered_lines[at]):
                self._options.replace_option_prompt_at_index(at, line)
        self._rendered_lines = drawn
        current = self.current
        self._full.say("" if current is None else printable(about(current)))

    # Events

    @property
    def current(self) -> CommandRecord | None:
        """The command under the cursor."""
        at = self._options.highlighted
        return None if at is None or not self._requests else self._requests[at]

    def on_option_list_option_highlighted(self) -> None:
        """Move the cursor's sign, and show the command in full."""
        self._draw()
        self.refresh_bindings()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Allow the withdrawal of pending commands, if commands are allowed."""
        if action != "withdraw":
            return super().check_action(action, parameters)
        current = self.current
        is_open = current is not None and can_be_withdrawn(current)
        return True if is_open and not self._is_read_only else None

    def action_withdraw(self) -> None:
        """Withdraw the command under the cursor, after confirmation."""
        if self.current is not None:
            self.post_message(self.Withdrawn(self.current))

    def action_move(self, by: int) -> None:
        """Move the cursor."""
        if by > 0:
            self._options.action_cursor_down()
        else:
            self._options.action_cursor_up()

    def action_back(self) -> None:
        """Go back."""
        self.app.pop_screen()
