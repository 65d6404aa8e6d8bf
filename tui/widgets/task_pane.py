"""The pane of one task: its attempts, and the texts of the chosen one."""

from __future__ import annotations

import asyncio
import enum
import sqlite3
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import replace
from difflib import unified_diff
from functools import partial
from types import MappingProxyType
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widget import Widget
from textual.worker import Worker

from store.errors import StoreError
from store.task import TaskState
from tui.render.format import money, task_name
from tui.render.glyphs import Glyphs
from tui.render.tasks import (
    ailment,
    attempt_columns,
    no_reply,
    score_text,
    state_words,
    time_of_day,
)
from tui.sources.item_text import CLOSE, OPEN
from tui.sources.task_texts import NO_TEXT, AttemptText, TextKind, failure_of
from tui.sources.tasks import AttemptLine, TaskDetail, TaskSource
from tui.terminal.export import copied, copy_text, page, save_text
from tui.widgets.panel import TextLine
from tui.widgets.table import PagedTable
from tui.widgets.text_view import NO_TONES, TextView

MOST = 5_000
"""Maximum lines of either text that are compared: the time grows with their product."""

TONES = MappingProxyType({"+": "added", "-": "removed", "@": "dim"})
"""Colours of a difference's lines, by their first character."""


def difference(before: str, after: str) -> str:
    """Return a unified difference with three lines of context."""
    old, new = before.split("\n"), after.split("\n")
    lines = unified_diff(old[:MOST], new[:MOST], lineterm="")
    # the first two lines are file names
    changes = [line for number, line in enumerate(lines) if number > 1]
    if max(len(old), len(new)) > MOST:
        changes.append(f"… only the first {MOST:,} lines are compared")
    return "\n".join(changes)


class Tab(enum.Enum):
    """The texts below the attempts; the value is the name."""

    PROMPT = "prompt"
    REPLY = "reply"
    PARSED = "parsed"
    TEXT = "item's text"
    SCORE = "score"
    EVENTS = "events"


_KINDS = {
    Tab.PROMPT: TextKind.PROMPT,
    Tab.REPLY: TextKind.REPLY,
    Tab.PARSED: TextKind.PARSED,
    Tab.TEXT: TextKind.ITEM,
}
_ABSENT = {
    Tab.PROMPT: "No request of ours is kept for this attempt.",
    Tab.REPLY: "The reply is empty: tab shows the other texts.",
    Tab.PARSED: "The reply is not JSON: tab shows the other texts.",
    Tab.TEXT: "No request of ours is kept, so there is no text: tab shows the reply.",
}


def chosen_attempt(attempts: Sequence[AttemptLine], failure: str | None) -> int:
    """Return the position of the attempt that is shown first.

    Args:
        attempts: at least one, ascending.
        failure: its error or reason; empty: any; None: the last attempt, whatever its
            outcome.
    """
    fits = [
        at
        for at, line in enumerate(attempts)
        if failure is not None
        and failure_of(line.row) is not None
        and failure in {"", failure_of(line.row)}
    ]
    return fits[-1] if fits else len(attempts) - 1


_MOST_ATTEMPTS = 5
"""Attempts that are visible at once."""


class TaskPane(Vertical):
    """One task; `open` and `show` set it."""

    DEFAULT_CSS = """
    TaskPane { background: $background; }
    TaskPane .head { text-style: bold; }
    TaskPane PagedTable { height: 6; }
    TaskPane .tabs { background: $panel; text-style: bold; }
    TaskPane .about { color: $state-queued; }
    TaskPane TextView { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "tab(1)", "Next text", id="task.tab"),
        Binding("shift+tab", "tab(-1)", "Text before", show=False, id="task.untab"),
        Binding(
            "o",
            "item_text",
            "Item's text",
            tooltip="The item's text with the reply's quotes marked; again: the next",
            id="task.text",
        ),
        Binding("d", "diff", "Diff attempts", id="task.diff"),
        Binding("v", "page", "Pager", id="task.page"),
        Binding("w", "write", "Write to file", id="task.write"),
        Binding("y", "copy", "Copy text", id="task.copy"),
    ]

    def __init__(self, source: TaskSource, glyphs: Glyphs) -> None:
        super().__init__()
        self._source = source
        self._glyphs = glyphs
        self._detail: TaskDetail | None = None
        self._seen: int | None = None
        self._tab = Tab.PROMPT
        self._failure: str | None = None
        self._is_opening = False  #: the first text has not been chosen yet
        self._is_diff = False
        self._text = NO_TEXT
        self._has_failed = False  #: the last read of the text failed

    def compose(self) -> ComposeResult:
        """Yield two lines about the task, its attempts, the tabs and the text."""
        yield TextLine(self._glyphs, id="task-head", classes="head")
        yield TextLine(self._glyphs, id="task-key")
        yield PagedTable(attempt_columns(), self._glyphs, id="attempts")
        yield TextLine(self._glyphs, id="task-tabs", classes="tabs")
        yield TextLine(self._glyphs, id="task-about", classes="about")
        yield TextView(self._glyphs, id="task-text")

    def is_inside(self, widget: Widget | None) -> bool:
        """Return whether *widget* is a part of this pane."""
        return widget is not None and self in widget.ancestors

    @property
    def detail(self) -> TaskDetail | None:
        """The task as last read; None: not yet, or there is none."""
        return self._detail

    @property
    def _attempts(self) -> PagedTable[AttemptLine]:
        return self.query_one("#attempts", PagedTable)

    def open(
        self, task: int, tab: Tab | None = None, failure: str | None = None
    ) -> None:
        """Show a task from its most telling attempt and text.

        Args:
            task: its number.
            tab: the text; None: the reply if it has a problem, else the prompt.
            failure: error or reason of the attempt to choose; empty: any; None: choose
                the last attempt.
        """
        self._failure, self._is_opening = failure, tab is None
        if tab is not None and tab is not self._tab:
            self._tab, self._is_diff = tab, False
        self.show(task)

    def show(self, task: int | None) -> None:
        """Show the current state of a task."""
        if task is not None:
            self._work(partial(self._reading, task), "task")

    def poll(self, task: int) -> None:
        """Update the task if anything has changed."""
        self._work(partial(self._looking, task), "look")

    def step_back(self) -> bool:
        """Leave the comparison, then the text; return whether there was one."""
        if self._is_diff:
            self.action_diff()
            return True
        is_deep = self.query_one(TextView).has_focus
        self._attempts.focus()
        return is_deep

    async def _looking(self, task: int) -> None:
        try:
            seq = await self._source.last_seq()
        except (StoreError, sqlite3.Error) as error:
            self._say_only(f"{error}.")
            return
        if seq != self._seen:
            self._seen = seq
            await self._reading(task)

    async def _reading(self, task: int) -> None:
        try:
            detail = await self._source.detail(task)
        except (StoreError, sqlite3.Error) as error:
            self._say_only(f"{error}.")
            return
        if detail is None:
            self._say_only(f"There is no {task_name(task)} in this run: esc goes back.")
            return
        is_same = detail == self._detail and not self._has_failed
        if is_same and not self._is_opening:
            return  # other tasks changed: this one's texts are not read again
        is_other = self._detail is None or self._detail.line.row.task != task
        self._detail = detail
        self._say(detail)
        self._attempts.explain(_unasked(detail))
        self._attempts.show({line.row.attempt: line for line in detail.attempts})
        # the heading and the attempts; the text below gets the other lines
        rows = min(_MOST_ATTEMPTS, len(detail.attempts) or _MOST_ATTEMPTS)
        self._attempts.styles.height = 1 + rows
        if detail.attempts and (is_other or self._is_opening):
            self._is_diff = False
            at = chosen_attempt(detail.attempts, self._failure)
            self._attempts.go_to(at)
            if self._is_opening and failure_of(detail.attempts[at].row) is not None:
                self._tab = Tab.REPLY
        self._is_opening = False
        await self._show_text()

    def _say_only(self, sentence: str) -> None:
        self._detail = None
        self.query_one("#task-head", TextLine).say(sentence)

    def _say(self, detail: TaskDetail) -> None:
        row = detail.line.row
        cost = None if row.cost_usd is None else money(row.cost_usd)
        head = (
            task_name(row.task),
            state_words(detail.line, self._glyphs),
            ailment(detail.line),
            cost,
        )
        self.query_one("#task-head", TextLine).say(" · ".join(filter(None, head)))
        self.query_one("#task-key", TextLine).say(
            " · ".join(
                filter(None, (row.stage, row.model, row.key, detail.line.title))
            ),
            f"replicate {row.replicate}" if row.replicate > 1 else "",
        )

    @on(PagedTable.Moved, "#attempts")
    def _moved(self, message: PagedTable.Moved) -> None:
        message.stop()
        self._retell()

    @on(PagedTable.Chosen, "#attempts")
    def _chosen(self, message: PagedTable.Chosen) -> None:
        message.stop()
        self.query_one(TextView).focus()

    def action_tab(self, by: int) -> None:
        """Show another text."""
        tabs = list(Tab)
        self._tab = tabs[(tabs.index(self._tab) + by) % len(tabs)]
        self._is_diff = self._is_diff and self._tab in _KINDS
        self._retell()

    def action_item_text(self) -> None:
        """Show the item's text with the reply's quotes; then go to the next one."""
        if self._tab is not Tab.TEXT:
            self._tab, self._is_diff = Tab.TEXT, False
            self._retell()
        elif not self.query_one(TextView).next_mark():
            self._refuse("Nothing of the reply is marked in this text.")

    def action_diff(self) -> None:
        """Show the difference from the previous attempt, or the text again."""
        if not self._is_diff and self._tab not in _KINDS:
            self._refuse("d compares prompts and replies: tab shows them.")
        elif not self._is_diff and self._pair() is None:
            self._refuse("There is no other attempt to compare this one with.")
        else:
            self._is_diff = not self._is_diff
            self._retell()

    def action_page(self) -> None:
        """Show the text in a pager."""
        if self._has_text():
            self._notify_result(page(self.app, self._text.text), "")

    def action_copy(self) -> None:
        """Copy the displayed text unchanged."""
        if self._has_text():
            self._notify_result(
                copy_text(self.app, self._text.text), copied(self._tab.value)
            )

    def action_write(self) -> None:
        """Write the displayed text unchanged to a file in the current folder."""
        if self._detail is None or not self._has_text():
            return
        words = [f"task-{self._detail.line.row.task}", self._tab.name.lower()]
        attempt = self._attempts.row
        if attempt is not None and self._tab in _KINDS:
            words.insert(1, str(attempt.row.attempt))
        name = "-".join([*words, *(["diff"] if self._is_diff else [])]) + ".txt"
        refusal = save_text(self.app, self._text.text, name)
        self._notify_result(refusal, f"{name} written")

    def _has_text(self) -> bool:
        if not self._text.text:
            self._refuse("There is no text to save: tab shows the others.")
        return bool(self._text.text)

    def _notify_result(self, refusal: str, success: str) -> None:
        if refusal:
            self._refuse(refusal)
        elif success:
            self.notify(success, timeout=3, markup=False)

    def _refuse(self, sentence: str) -> None:
        self.notify(sentence, severity="error", markup=False)

    def _retell(self) -> None:
        self._work(self._show_text, "text")

    def _work(self, work: Callable[[], Coroutine[Any, Any, None]], group: str) -> None:
        # not a coroutine: a worker that is replaced before it starts would never await
        # it
        _: Worker[None] = self.run_worker(
            work, group=group, exclusive=True, exit_on_error=False
        )

    async def _show_text(self) -> None:
        names = (
            f"[{tab.value}]" if tab is self._tab else f" {tab.value} " for tab in Tab
        )
        attempt = self._attempts.row
        attempt_label = f"attempt {attempt.row.attempt}" if attempt is not None else ""
        self.query_one("#task-tabs", TextLine).say(" ".join(names), attempt_label)
        if self._detail is None:
            return
        pair = self._pair() if self._is_diff else None
        try:
            text = await (
                self._chosen_text(self._detail, attempt)
                if pair is None
                else self._difference(*pair)
            )
        except (StoreError, sqlite3.Error) as error:
            text = AttemptText(text="", display_text=f"{error}.")
            self._has_failed = True
        else:
            self._has_failed = False
        self._text = text
        self.query_one("#task-about", TextLine).say(text.about)
        self.query_one(TextView).show(
            text.text if text.display_text is None else text.display_text,
            NO_TONES if pair is None else TONES,
            signs=(OPEN, CLOSE) if self._tab is Tab.TEXT and pair is None else None,
        )

    async def _chosen_text(
        self, detail: TaskDetail, attempt: AttemptLine | None
    ) -> AttemptText:
        if self._tab is Tab.SCORE:
            return AttemptText(text=score_text(detail))
        if self._tab is Tab.EVENTS:
            lines = (
                f"{happening.seq:>9}  {time_of_day(happening.at_us)}  "
                f"{happening.kind}  {happening.facts}"
                for happening in detail.happenings
            )
            return AttemptText(text="\n".join(lines), about="   number  UTC")
        if attempt is None:
            return AttemptText(text="No attempt has been made yet.")
        text = await self._text_of(attempt)
        if text.text:
            return text
        words = _ABSENT[self._tab]
        if self._tab in {Tab.REPLY, Tab.PARSED}:
            words = no_reply(attempt) or words
        return replace(text, display_text=words)

    async def _text_of(self, attempt: AttemptLine) -> AttemptText:
        sign = self._glyphs.states[TaskState.FAILED]
        return await self._source.text(attempt.row, _KINDS[self._tab], sign)

    def _pair(self) -> tuple[AttemptLine, AttemptLine] | None:
        """Return the chosen attempt and the previous one, or the first two."""
        chosen = self._attempts.row
        lines = () if self._detail is None else self._detail.attempts
        if chosen is None or len(lines) < 2:  # noqa: PLR2004 - a pair
            return None
        at = max(1, lines.index(chosen))
        return lines[at - 1], lines[at]

    async def _difference(self, before: AttemptLine, after: AttemptLine) -> AttemptText:
        old, new = await self._text_of(before), await self._text_of(after)
        text = await asyncio.to_thread(difference, old.text, new.text)
        same = f"The {self._tab.value} is the same in both attempts."
        signs = f"- attempt {before.row.attempt}, + attempt {after.row.attempt}"
        return AttemptText(
            text=text, about=f"{signs} · d goes back", display_text=text or same
        )


def _unasked(detail: TaskDetail) -> str:
    """Describe why there is no attempt."""
    if detail.line.row.state is TaskState.SKIPPED:
        return "It was skipped and never sent: the events show why."
    return "No attempt yet: the task is queued."
