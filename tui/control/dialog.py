"""Asks for confirmation, with a preview, before a command is sent.

The focus is on No, so that an extra key does no harm, unless the command is as easily
undone; a value that was typed moves it to Yes. A choice, a value and the run's name are
plain fields; `y` counts only once the preview is shown.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.events import Key
from textual.timer import Timer
from textual.widgets import Button, Input, OptionList
from textual.widgets.option_list import Option
from textual.worker import Worker

from store.control import Payload, preview_sentence, words_of
from store.errors import StoreError
from store.printable import printable
from tui.control.actions import Action, CommandChoice, NotAValue
from tui.control.commands import command_line, is_futile, requires_name
from tui.render.glyphs import Glyphs, substitute_glyphs
from tui.render.layout import one_line
from tui.screens.base import Modal
from tui.sources.command_log import RequestSource
from tui.widgets.panel import TextBlock

DEBOUNCE_S = 0.15
_CELLS = 70
"""Maximum width of a choice's line and of the dialog."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfirmedCommand:
    """A confirmed command."""

    kind: str
    payload: Payload
    words: str  #: for notices about its outcome


class Dialog(Modal[ConfirmedCommand | None]):
    """Asks for confirmation; returns a command, or None."""

    DEFAULT_CSS = """
    Dialog { align: center middle; }
    Dialog #dialog {
        width: 78; max-width: 100%; height: auto; max-height: 100%;
        border: round $accent; padding: 0 1; background: $background;
    }
    Dialog.-ascii #dialog { border: ascii $accent; }
    Dialog #choices {
        height: auto; max-height: 9; border: none; padding: 0;
        background: $background; background-tint: transparent;
    }
    Dialog #choices > .option-list--option-highlighted {
        background: $panel; color: $foreground; text-style: bold;
    }
    Dialog TextBlock { height: 1; }
    Dialog #effect { height: 3; margin-top: 1; }
    Dialog #line { height: 2; color: $state-queued; }
    Dialog #asked-name { color: $state-waiting; text-style: bold; }
    /* an empty field is seen by its ends where there is no background colour */
    Dialog Input.-textual-compact {
        height: 1; padding: 0; background: $panel;
        border-left: vkey $accent !important; border-right: vkey $accent !important;
    }
    Dialog #buttons { height: 1; margin-top: 1; }
    Dialog Button { margin-right: 2; }
    Dialog .-off { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("n,escape,q", "no", "No", id="dialog.no"),
        Binding("y", "yes", "Yes", id="dialog.yes"),
        Binding("j,down", "choose(1)", "Next", show=False, id="dialog.next"),
        Binding("k,up", "choose(-1)", "Previous", show=False, id="dialog.previous"),
        Binding("g", "choose(-1000)", "First", show=False, id="dialog.first"),
        Binding("G", "choose(1000)", "Last", show=False, id="dialog.last"),
    ]

    def __init__(
        self,
        action: Action,
        choices: Sequence[CommandChoice],
        *,
        run_id: str,
        state: str,
        source: RequestSource,
        glyphs: Glyphs,
    ) -> None:
        """Create the dialog.

        Args:
            action: the action.
            choices: at least one.
            run_id: the run's id, which must be typed for irreversible commands.
            state: state of the run at the time of the decision.
            source: reads the figures of previews; owned by the caller.
            glyphs: the characters that the terminal supports.
        """
        super().__init__()
        self._action = action
        self._choices = choices
        self._run_id = run_id
        self._run_state = state
        self._source = source
        self._glyphs = glyphs
        self._at = 0
        self._payload: Payload | None = None  # None: the input is invalid
        self._reckoned = ""  # the input that the preview is for
        self._is_previewed = False  # whether the preview is shown
        self._debounce: Timer | None = None
        self._effect, self._line, self._label, self._name_prompt = (
            TextBlock(name, glyphs)
            for name in ("effect", "line", "label", "asked-name")
        )
        self.set_class(bool(glyphs.plain), "-ascii")

    def compose(self) -> ComposeResult:
        """Yield choices, a field, the preview, and the two answers."""
        with VerticalScroll(id="dialog", can_focus=False) as box:
            title = f"{self._action.title}: {self._run_id}, {self._run_state}"
            box.border_title = Content(one_line(title, _CELLS))
            yield OptionList(
                *(Option(self._choice_line(at)) for at in range(len(self._choices))),
                id="choices",
                markup=False,
            )
            yield self._label
            yield Input(id="value", compact=True, select_on_focus=False)
            yield self._effect
            yield self._line
            yield self._name_prompt
            yield Input(id="name", compact=True, select_on_focus=False)
            with Horizontal(id="buttons"):
                yield Button("No (n)", id="no", compact=True)
                yield Button("Yes (y)", id="yes", compact=True)

    def _choice_line(self, at: int) -> Content:
        sign = self._glyphs.cursor if at == self._at else " "
        words = one_line(self._choices[at].words, _CELLS)
        return substitute_glyphs(self._glyphs, Content(f"{sign} {words}"))

    def on_descendant_focus(self) -> None:
        """Say what the keys do now."""
        field = self._choice.field
        match self.focused:
            case Input(id="value"):
                keys = "enter goes on to Yes, esc no"
            case Input():
                keys = "enter is yes, esc no"
            case Button(id="yes"):
                keys = "j/k choose, enter or y yes, n no"
            case _ if field is not None and field.is_number:
                keys = "j/k choose, type a number, then enter twice, n no"
            case _:
                keys = "j/k choose, y yes, enter or n no"
        self.query_one("#dialog").border_subtitle = keys

    def on_mount(self) -> None:
        """Focus the first choice, and the answer that enter gives."""
        self._name_prompt.say(f"Type {printable(self._run_id)} to confirm, then enter:")
        self.query_one("#choices", OptionList).highlighted = 0
        self._focus_answer()
        self._take(0)

    # Choice and input

    @property
    def _choice(self) -> CommandChoice:
        return self._choices[self._at]

    @property
    def _typed(self) -> str:
        return self.query_one("#value", Input).value

    def _take(self, at: int) -> None:
        before, self._at = self._at, at
        options = self.query_one("#choices", OptionList)
        for index in (before, at):
            options.replace_option_prompt_at_index(index, self._choice_line(index))
        field = self._choice.field
        value = self.query_one("#value", Input)
        self._label.set_class(field is None, "-off")
        value.set_class(field is None, "-off")
        if field is not None:
            self._label.say(f"{field.label}:")
            value.value = field.value
        self._reckon()

    @on(OptionList.OptionHighlighted, "#choices")
    def _chosen(self) -> None:
        # its current position: several keys may have preceded this message
        at = self.query_one("#choices", OptionList).highlighted
        if at is not None and at != self._at:
            self._take(at)

    @on(OptionList.OptionSelected, "#choices")
    def _go_on(self) -> None:
        """Focus the answers: a choice alone is none."""
        self._focus_answer()

    def _focus_answer(self) -> None:
        name = "#yes" if self._action.is_reversible else "#no"
        self.set_focus(self.query_one(name, Button))

    @on(Input.Submitted, "#value")
    def _take_value(self) -> None:
        """Focus Yes after a valid value, which is deliberate; else stay here."""
        if self._typed != self._reckoned:
            self._reckon()
        if self._payload is not None:
            self.set_focus(self.query_one("#yes", Button))

    def on_key(self, event: Key) -> None:
        """Start the value with a digit, whatever has the focus."""
        field = self._choice.field
        is_digit = event.character is not None and event.character.isdecimal()
        is_free = not isinstance(self.focused, Input)
        if event.character and is_digit and is_free and field and field.is_number:
            event.stop()
            value = self.query_one("#value", Input)
            self.set_focus(value)
            value.insert_text_at_cursor(event.character)

    @on(Input.Changed, "#value")
    def _changed(self, message: Input.Changed) -> None:
        if message.value == self._reckoned:
            return  # set by a choice, already handled
        self._is_previewed = False
        if self._debounce is not None:
            self._debounce.stop()
        self._debounce = self.set_timer(DEBOUNCE_S, self._reckon)

    # Preview

    def _reckon(self) -> None:
        """Compute the preview; cancels an earlier computation."""
        self._is_previewed, self._payload = False, None
        self._ask_name(is_required=False)
        choice, self._reckoned = self._choice, self._typed
        try:
            self._payload = choice.payload_with(self._reckoned)
        except NotAValue as error:
            self.workers.cancel_group(self, "stakes")
            line = command_line(choice.kind, choice.example, self._run_id)
            self._say(f"{error}.".capitalize(), line)
            return
        line = command_line(choice.kind, self._payload, self._run_id)
        if choice.effect is not None:
            self._is_previewed = True
            self._say(choice.effect, line)
            return
        self._say("Counting …", line)
        _: Worker[None] = self.run_worker(
            self._count(choice, self._payload),
            group="stakes",
            exclusive=True,
            exit_on_error=False,
        )

    async def _count(self, choice: CommandChoice, payload: Payload) -> None:
        try:
            preview = await self._source.preview(choice.kind, payload)
        except (StoreError, sqlite3.Error, OSError) as error:
            self._say(f"{error}.", "")
            return
        self._is_previewed = not is_futile(choice.kind, preview)
        self._say(
            preview_sentence(choice.kind, payload, preview, self._run_id),
            command_line(choice.kind, payload, self._run_id),
        )
        self._ask_name(
            is_required=self._is_previewed and requires_name(choice.kind, preview)
        )

    def _say(self, effect: str, line: str) -> None:
        self._effect.say(printable(effect))
        self._line.say(f"$ {printable(line)}" if line else "")
        self.refresh_bindings()

    def _ask_name(self, *, is_required: bool) -> None:
        self._name_prompt.set_class(not is_required, "-off")
        self.query_one("#name", Input).set_class(not is_required, "-off")

    # Answer

    @property
    def _is_sure(self) -> bool:
        """Whether yes is allowed: previewed, and the name typed if required."""
        name = self.query_one("#name", Input)
        is_typed = name.has_class("-off") or name.value.strip() == self._run_id
        return self._is_previewed and is_typed

    @on(Button.Pressed, "#yes")
    @on(Input.Submitted, "#name")
    def action_yes(self) -> None:
        """Confirm, if allowed."""
        if self._is_sure and self._payload is not None:
            choice, payload = self._choice, self._payload
            words = (
                words_of(choice.kind, payload)
                if choice.effect is None
                else choice.words
            )
            self.dismiss(
                ConfirmedCommand(kind=choice.kind, payload=payload, words=words)
            )
        elif not self.query_one("#name", Input).has_class("-off"):
            self.query_one("#name", Input).focus()

    @on(Button.Pressed, "#no")
    def _decline(self) -> None:
        """Say that enter was No: it may have been meant as Yes."""
        self.app.notify(
            f"Nothing was sent; y confirms {self._choice.kind}.", markup=False
        )
        self.action_no()

    def action_no(self) -> None:
        """Dismiss the dialog without a command."""
        self.dismiss(None)

    def action_choose(self, by: int) -> None:
        """Select another choice."""
        options = self.query_one("#choices", OptionList)
        at = self._at if options.highlighted is None else options.highlighted
        options.highlighted = min(max(at + by, 0), len(self._choices) - 1)
