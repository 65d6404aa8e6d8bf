"""The labelling screen: one item, its question, and one key an answer.

The monitor opens it with `l`, and `siftlog label RUN` is nothing else. Keys of the
screens behind it do nothing here, so that a slip leads nowhere.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Collection, Coroutine
from contextlib import AbstractAsyncContextManager
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingsMap, BindingType
from textual.content import Content
from textual.events import Key
from textual.screen import Screen
from textual.widgets import Input, Static
from textual.worker import Worker

from runner.errors import RunnerError
from store.errors import StoreError
from store.printable import one_line, printable
from tui.labelling.focus import FocusClock
from tui.labelling.view import (
    blindness,
    error_sentence,
    progress_words,
    spans,
    statements,
)
from tui.render.glyphs import Glyphs
from tui.screens.palette import HelpScreen
from tui.sources.item_text import CLOSE, OPEN, with_signs
from tui.widgets.keys import KeyLine, keys_of
from tui.widgets.panel import TextLine, TooSmall
from tui.widgets.text_view import TextView

if TYPE_CHECKING:
    from jobs.kit.labels.session import LabelSession, Question
    from runner.labelling import LabelField

Opening: TypeAlias = Callable[[], AbstractAsyncContextManager["LabelSession"]]
Work: TypeAlias = Callable[[], Coroutine[Any, Any, None]]

_OPEN_VALUE = "="
"""Key that types a value of an open field."""
_NOTE, _VALUE = "note", "value"
_REPLIES = "read"
"""Group of work that the next key waits for."""
_FAILURES = (StoreError, RunnerError, sqlite3.Error, OSError)
"""Errors of files and disks that are shown as a sentence."""


class LabelScreen(Screen[None]):
    """Asks the questions of a session, which it opens and closes."""

    DEFAULT_CSS = """
    LabelScreen { background: $background; }
    LabelScreen #label-head { text-style: bold; background: $panel; }
    LabelScreen Static { padding: 0 1; height: auto; color: $foreground; }
    LabelScreen #label-title { text-style: bold; max-height: 3; color: $accent; }
    LabelScreen TextView { height: 1fr; min-height: 3; }
    LabelScreen #label-rule { color: $state-queued; }
    LabelScreen #label-seen { max-height: 8; overflow-y: auto; }
    LabelScreen #label-note { color: $state-queued; max-height: 2; }
    LabelScreen #label-question { text-style: bold; max-height: 3; }
    LabelScreen #label-answers { max-height: 6; }
    LabelScreen Input.-textual-compact { padding: 0 1; background: $panel; }
    LabelScreen .-absent { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("z,backspace", "undo", "Undo", id="label.undo"),
        Binding(
            "s",
            "skip",
            "Skip",
            tooltip="Put the item off until all others are labelled",
            id="label.skip",
        ),
        Binding(
            "slash",
            "type('note')",
            "Note",
            tooltip="A note is recorded with the answer",
            id="label.note",
        ),
        Binding("equals_sign", "type('value')", "Type a value", id="label.value"),
        Binding(
            "r",
            "reveal",
            "Show replies",
            tooltip="The label is then recorded as assisted",
            id="label.reveal",
        ),
        Binding("down,j", "scroll('DOWN')", "Down", show=False, id="label.down"),
        Binding("up,k", "scroll('UP')", "Up", show=False, id="label.up"),
        Binding(
            "space,pagedown",
            "scroll('PAGE_DOWN')",
            "Page down",
            show=False,
            id="label.page_down",
        ),
        Binding(
            "pageup", "scroll('PAGE_UP')", "Page up", show=False, id="label.page_up"
        ),
        Binding("home", "scroll('FIRST')", "Start", show=False, id="label.first"),
        Binding("end", "scroll('LAST')", "End", show=False, id="label.last"),
        Binding(
            "tab",
            "mark",
            "Next quote",
            show=False,
            tooltip="Scroll to the next quote of a visible reply",
            id="label.mark",
        ),
        Binding("question_mark", "help", "Help", id="help"),
        Binding("q,escape", "back", "Leave", id="label.back"),
    ]
    AUTO_FOCUS = ""  # the keys are the screen's

    def __init__(
        self,
        opening: Opening,
        glyphs: Glyphs,
        clock: FocusClock,
    ) -> None:
        """Create the screen.

        Args:
            opening: opens the session.
            glyphs: the characters that the terminal supports.
            clock: of the session; it stops while the terminal is not in front.
        """
        super().__init__()
        self._opening = opening
        self._glyphs = glyphs
        self._clock = clock
        self._usual_keys = self._bindings.copy()
        self._session: LabelSession | None = None
        self._began_s = 0.0
        self._is_open = asyncio.Event()
        self._is_left = asyncio.Event()
        self._typed: str = _NOTE  #: what the field at the bottom is for

    @property
    def is_modal(self) -> bool:
        """Keys of other screens do not act here."""
        return True

    def compose(self) -> ComposeResult:
        """Yield the heading, the item, what else is visible, the question, the keys."""
        yield TextLine(self._glyphs, id="label-head")
        yield Static(id="label-title", markup=False)
        yield TextView(self._glyphs)
        yield TextLine(self._glyphs, id="label-rule", is_rule=True)
        yield Static(id="label-seen", markup=False)
        yield Static(id="label-note", markup=False)
        yield Static(id="label-question", markup=False)
        yield Static(id="label-answers", markup=False)
        yield Input(id="label-field", classes="-absent", compact=True)
        yield TooSmall(self._glyphs, instead="siftlog label --plain")
        yield KeyLine(self._glyphs)

    def on_mount(self) -> None:
        """Open the session."""
        self.query_one(TextView).can_focus = False
        self.watch(self.app, "app_focus", self._focus_changed)
        self.query_one("#label-head", TextLine).say("LABEL", "opening the run ...")
        self._work(self._hold, "session")
        self._work(self._until_open, _REPLIES)

    def _work(self, work: Work, group: str) -> None:
        _: Worker[None] = self.run_worker(work, group=group, exit_on_error=False)

    async def _hold(self) -> None:
        """Keep the session open until the screen is left."""
        try:
            async with self._opening() as session:
                self._session = session
                self._began_s = self._clock.monotonic()
                self._show()
                self._is_open.set()
                await self._is_left.wait()
        except _FAILURES as error:
            self.app.notify(error_sentence(error), severity="error", markup=False)
        finally:
            self._is_open.set()
        self.dismiss()

    async def _until_open(self) -> None:
        await self._is_open.wait()

    def poll(self) -> None:
        """Update the rate; called by the application's timer."""
        if self.query(TextLine):  # none are left when the application ends
            self._show_head()

    def _focus_changed(self, is_in_front: bool) -> None:
        if is_in_front:
            self._clock.resume()
        else:
            self._clock.pause()

    # Display

    def _show(self) -> None:
        """Show the present question, or that there is none."""
        if self._session is None:
            return
        question = self._session.question
        with self.app.batch_update():
            self._show_head()
            self._show_question(question)
        self._bindings = self._keys_for(question)
        self.refresh_bindings()

    def _show_head(self) -> None:
        session = self._session
        if session is None:
            return
        seconds = self._clock.monotonic() - self._began_s
        right = " · ".join(progress_words(session.progress, seconds))
        question = session.question
        left = f"LABEL as {session.author}"
        if question is not None:
            left += f" · {question.item.key}"
        self.query_one("#label-head", TextLine).say(left, right)

    def _show_question(self, question: Question | None) -> None:
        rule = self.query_one("#label-rule", TextLine)
        if question is None:
            for name in ("title", "seen", "note", "answers"):
                self._say(name, "")
            self.query_one(TextView).show("")
            rule.say("")
            session = self._session
            ending = "" if session is None else session.ending
            has_answers = session is not None and session.progress.answered > 0
            keys = "z undoes, q ends." if has_answers else "q ends."
            self._say("question", one_line(f"{ending} {keys}"))
            return
        item = question.item
        self._say("title", printable(item.title))
        self.query_one(TextView).show(
            with_signs(item.text, spans(question)), signs=(OPEN, CLOSE)
        )
        status = "" if self._session is None else self._session.status
        rule.say(blindness(question), one_line(status))
        lines = [one_line(one.line) for one in statements(question)]
        self._say("seen", "\n".join(lines))
        self._say("note", f"note: {one_line(question.note)}" if question.note else "")
        name = f"{question.field.name}: " if question.field.name else ""
        self._say("question", one_line(f"{name}{question.field.question}"))
        self._say("answers", _answers(question.field))

    def _say(self, name: str, text: str | Content) -> None:
        self.query_one(f"#label-{name}", Static).update(text)
        self.query_one(f"#label-{name}").set_class(not text, "-absent")

    def _keys_for(self, question: Question | None) -> BindingsMap:
        """Return the usual keys, and those of the answers in their place."""
        if question is None:
            return self._usual_keys
        answers = BindingsMap(
            Binding(
                choice.key,
                f"answer({number})",
                one_line(choice.value),
                show=False,
                id=f"label.answer.{number}",
            )
            for number, choice in enumerate(question.field.choices)
        )
        usual = BindingsMap(
            binding
            for key, binding in self._usual_keys
            if key not in answers.key_to_bindings
        )
        return BindingsMap.merge([answers, usual])

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable keys that make no sense now."""
        question = None if self._session is None else self._session.question
        match action:
            case "type" if isinstance(self.focused, Input):
                return False
            case "undo":
                is_possible = bool(self._session and self._session.progress.answered)
            case "skip":
                is_possible = question is not None
            case "reveal":
                return question is not None and question.has_hidden_replies
            case "type" if parameters == (_VALUE,):
                return question is not None and question.field.is_open
            case "type":
                is_possible = question is not None
            case "mark":
                is_possible = bool(question and spans(question))
            case _:
                return super().check_action(action, parameters)
        return True if is_possible else None

    # Keys

    def on_key(self, event: Key) -> None:
        """Say that a character is no answer and does nothing else."""
        is_typing = isinstance(self.focused, Input)
        if event.is_printable and not is_typing and event.key not in self._keys:
            text = f"{event.character} is no key here: ? lists the keys."
            self.notify(one_line(text), timeout=3, markup=False)

    @property
    def _keys(self) -> Collection[str]:
        return self._bindings.key_to_bindings

    async def action_answer(self, number: int) -> None:
        """Record an answer, and show the next question once it is durable."""
        question = None if self._session is None else self._session.question
        if question is not None:
            await self._answer(question.field.choices[number].value)

    async def _answer(self, value: str) -> None:
        if self._session is not None:
            await self._safely(partial(self._session.answer, value))

    async def action_undo(self) -> None:
        """Withdraw the last answer, and ask its question again."""
        if self._session is not None:
            await self._safely(self._session.undo)

    async def _safely(self, work: Callable[[], Awaitable[object]]) -> bool:
        """Do something with the session; a failure is shown, and changes nothing."""
        try:
            await work()
        except _FAILURES as error:
            self.notify(error_sentence(error), severity="error", markup=False)
            return False
        self._show()
        return True

    def action_skip(self) -> None:
        """Put the question off."""
        if self._session is not None:
            self._session.skip()
            self._show()

    async def action_reveal(self) -> None:
        """Show the replies; the label is an assisted one."""
        if self._session is not None:
            load = partial(asyncio.to_thread, self._session.load_replies)
            if await self._safely(load):
                self._session.reveal()
                self._show()

    def action_help(self) -> None:
        """List the keys."""
        keys = keys_of(self.active_bindings.values(), self.app.get_key_display)
        self.app.push_screen(HelpScreen(keys, self._glyphs))

    def action_scroll(self, move: str) -> None:
        """Scroll the text."""
        self.query_one(TextView).action_move(move)

    def action_mark(self) -> None:
        """Scroll to the next quote."""
        self.query_one(TextView).next_mark()

    def action_type(self, what: str) -> None:
        """Open the field for a note, or a value."""
        question = None if self._session is None else self._session.question
        if question is None:
            return
        self._typed = what
        field = self.query_one(Input)
        field.placeholder = f"{what}: enter keeps it, esc goes back"
        field.value = question.note if what == _NOTE else ""
        field.remove_class("-absent")
        field.focus()

    @on(Input.Submitted)
    async def _entered(self, message: Input.Submitted) -> None:
        message.stop()
        self._close_field()
        if self._session is None:
            return
        if self._typed == _NOTE:
            self._session.note(message.value)
            self._show()
        elif message.value.strip():
            await self._answer(message.value)

    def _close_field(self) -> None:
        field = self.query_one(Input)
        field.add_class("-absent")
        self.set_focus(None)

    def action_back(self) -> None:
        """Leave the field, then the screen."""
        if isinstance(self.focused, Input):
            self._close_field()
        else:
            self._is_left.set()


def _answers(field: LabelField) -> Content:
    """The keys of the answers, one after another."""
    keys = [(choice.key, choice.value) for choice in field.choices]
    if field.is_open:
        keys.append((_OPEN_VALUE, "another value"))
    pieces: list[Content | tuple[str, str]] = []
    for key, value in keys:
        pieces += [(f" {key} ", "bold reverse"), Content(f" {one_line(value)}   ")]
    return Content.assemble(*pieces)
