"""Everything about one task: its attempts, and the texts of the chosen one."""

from __future__ import annotations

import enum
import sqlite3
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.widget import Widget
from textual.worker import Worker

from store.errors import StoreError
from store.views import AttemptRow
from tui.drawing.format import money
from tui.drawing.glyphs import Glyphs
from tui.drawing.task_columns import (
    ailment,
    attempt_columns,
    state_words,
    task_name,
    time_of_day,
)
from tui.sources.tasks import TaskDetail, TaskSource
from tui.widgets.line import Line
from tui.widgets.table import Table
from tui.widgets.text_view import TextView


class Tab(enum.Enum):
    """What is shown below the attempts; the value is its name."""

    PROMPT = "prompt"
    REPLY = "reply"
    SCORE = "score"
    EVENTS = "events"


_ABSENT = {
    Tab.PROMPT: "No request of ours is kept for this attempt.",
    Tab.REPLY: "Nothing has been received for this attempt.",
}


class TaskPane(Vertical):
    """One task; `show` says which."""

    DEFAULT_CSS = """
    TaskPane { background: $background; }
    TaskPane .head { text-style: bold; }
    TaskPane Table { height: 6; }
    TaskPane .tabs { background: $panel; text-style: bold; }
    TaskPane TextView { height: 1fr; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "tab(1)", "Next text", id="task.tab"),
        Binding("w", "write", "Write to file", id="task.write"),
        Binding("shift+tab", "tab(-1)", "Text before", show=False, id="task.untab"),
    ]

    def __init__(self, source: TaskSource, glyphs: Glyphs) -> None:
        super().__init__()
        self._source = source
        self._glyphs = glyphs
        self._detail: TaskDetail | None = None
        self._seen: int | None = None
        self._tab = Tab.PROMPT

    def compose(self) -> ComposeResult:
        """Two lines about the task, its attempts, the tabs and the text."""
        yield Line(self._glyphs, id="task-head")
        yield Line(self._glyphs, id="task-key")
        yield Table(attempt_columns(), self._glyphs, id="attempts")
        yield Line(self._glyphs, id="task-tabs")
        yield TextView(self._glyphs, id="task-text")

    def on_mount(self) -> None:
        """The lines that stand out."""
        self.query_one("#task-head").add_class("head")
        self.query_one("#task-tabs").add_class("tabs")

    def is_inside(self, widget: Widget | None) -> bool:
        """Whether *widget* is a part of this."""
        return widget is not None and self in widget.ancestors

    @property
    def _attempts(self) -> Table[AttemptRow]:
        return self.query_one("#attempts", Table)

    def show(self, task: int | None) -> None:
        """Show a task as it is now."""
        if task is not None:
            self._work(partial(self._reading, task), "task")

    def look(self, task: int) -> None:
        """Show a task anew if anything has happened since the last look."""
        self._work(partial(self._looking, task), "look")

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
        is_other = self._detail is None or self._detail.line.row.task != task
        self._detail = detail
        self._say(detail)
        self._attempts.show({row.attempt: row for row in detail.attempts})
        if is_other and detail.attempts:
            self._attempts.action_move("LAST")
        await self._show_text()

    def _say_only(self, sentence: str) -> None:
        self._detail = None
        self.query_one("#task-head", Line).say(sentence)

    def _say(self, detail: TaskDetail) -> None:
        row = detail.line.row
        cost = None if row.cost_usd is None else money(row.cost_usd)
        head = (
            task_name(row.task),
            state_words(detail.line, self._glyphs),
            ailment(detail.line),
            cost,
        )
        self.query_one("#task-head", Line).say(" · ".join(filter(None, head)))
        self.query_one("#task-key", Line).say(
            f"{row.stage} · {row.model} · {row.key}",
            f"replicate {row.replicate}" if row.replicate > 1 else "",
        )

    @on(Table.Moved, "#attempts")
    def _moved(self, message: Table.Moved) -> None:
        message.stop()
        self._retell()

    @on(Table.Chosen, "#attempts")
    def _chosen(self, message: Table.Chosen) -> None:
        message.stop()
        self.query_one(TextView).focus()

    def action_tab(self, by: int) -> None:
        """Another text."""
        tabs = list(Tab)
        self._tab = tabs[(tabs.index(self._tab) + by) % len(tabs)]
        self._retell()

    def action_write(self) -> None:
        """Keep the text that is shown, as it is, in a file of the current folder."""
        if self._detail is None:
            return
        attempt = self._attempts.row
        words = [task_name(self._detail.line.row.task), self._tab.value]
        if attempt is not None and self._tab in _ABSENT:
            words.insert(1, str(attempt.attempt))
        path = Path(f"{'-'.join(words)}.txt")
        try:
            with path.open("x", encoding="utf-8", errors="backslashreplace") as file:
                file.write(self.query_one(TextView).text)
        except OSError as error:
            why = error.strerror or type(error).__name__
            said = f"{path} was not written ({why}): move what is there away."
            self.notify(said, severity="error", markup=False)
        else:
            self.notify(f"{path} written", timeout=3, markup=False)

    def _retell(self) -> None:
        self._work(self._show_text, "text")

    def _work(self, work: Callable[[], Coroutine[Any, Any, None]], group: str) -> None:
        # no coroutine: a worker that is replaced before it starts would never await it
        _: Worker[None] = self.run_worker(
            work, group=group, exclusive=True, exit_on_error=False
        )

    async def _show_text(self) -> None:
        names = (
            f"[{tab.value}]" if tab is self._tab else f" {tab.value} " for tab in Tab
        )
        attempt = self._attempts.row
        shown = f"attempt {attempt.attempt}" if attempt is not None else ""
        self.query_one("#task-tabs", Line).say(" ".join(names), shown)
        if self._detail is None:
            return
        try:
            text = await self._text(self._detail, attempt)
        except (StoreError, sqlite3.Error) as error:
            text = f"{error}."
        self.query_one(TextView).show(text)

    async def _text(self, detail: TaskDetail, attempt: AttemptRow | None) -> str:
        if self._tab is Tab.SCORE:
            return _score(detail)
        if self._tab is Tab.EVENTS:
            return "\n".join(
                f"{each.seq:>9}  {time_of_day(each.at_us)}  {each.kind}  {each.facts}"
                for each in detail.happenings
            )
        if attempt is None:
            return "No attempt has been made yet."
        is_request = self._tab is Tab.PROMPT
        seq = attempt.started_seq if is_request else attempt.ended_seq
        text = seq and await self._source.text(seq, is_request=is_request)
        return text or _ABSENT[self._tab]


def _score(detail: TaskDetail) -> str:
    if detail.scoring is None:
        return "The run has not been scored: siftlog score does."
    if not detail.verdicts:
        return f"Scoring {detail.scoring} has no verdict on this task."
    lines = [f"Scoring {detail.scoring}", ""]
    for verdict in detail.verdicts:
        word = {True: "right", False: "wrong", None: "not judged"}[verdict.correct]
        lines += [
            word,
            f"  value      {verdict.value}",
            f"  expected   {verdict.expected}",
            f"  rule       {verdict.rule}",
            "",
        ]
    return "\n".join(lines)
