"""Provides the filter field: completed, explained and remembered."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, TypeAlias

from rich.cells import cell_len
from textual import on
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.suggester import Suggester
from textual.timer import Timer
from textual.widgets import Input

from store.errors import QueryError
from store.events import KINDS
from store.printable import printable
from store.query import EVENT_KEYS, KEYS, Query, parse_event_query, parse_query
from tui.render.glyphs import STATE_WORDS
from tui.sources.filters import FilterMemory
from tui.sources.tasks import Names

_OPERATORS = {"latency": ">", "cost": ">", "attempts": ">"}
"""Of keys whose values are figures, the one that is wanted most."""
_FIGURES = {"latency": "5s", "cost": "0.01", "attempts": "1"}
"""And a value that shows how one is written."""


Words: TypeAlias = Callable[[Names], Sequence[str]]
"""The words of a filter language, with the names that a run has."""


def task_words(names: Names) -> Sequence[str]:
    """Of the filter of tasks."""
    values = {
        "state": (*STATE_WORDS.values(), "open", "final", "held"),
        "stage": names.stages,
        "model": names.models,
        "err": names.errors,
        "parse": names.parse_failures,
        "reason": (*names.errors, *names.parse_failures),
    }
    keys = (f"{key}{_OPERATORS.get(key, ':')}" for key in KEYS)
    figures = (f"{key}{_OPERATORS[key]}{value}" for key, value in _FIGURES.items())
    return [*keys, *figures, *_key_value_pairs(values)]


def event_words(names: Names) -> Sequence[str]:
    """Of the filter of events."""
    values = {
        "kind": tuple(KINDS),
        "stage": names.stages,
        "model": names.models,
        "err": names.errors,
        "reason": (*names.errors, *names.parse_failures),
    }
    return [*(f"{key}:" for key in EVENT_KEYS), *_key_value_pairs(values)]


def _key_value_pairs(values: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Every key with each of its values, where they can be offered."""
    for key, names in values.items():
        for value in names:
            # names come from outside: one that would have to be changed is not offered
            if printable(value) == value and '"' not in value:
                yield f"{key}:{_quoted(value)}"


class Completion(Suggester):
    """Completes the last word of a filter; `names` may change at any time."""

    def __init__(self, words: Words = task_words) -> None:
        # the names of a live run grow: yesterday's answer is not today's
        super().__init__(use_cache=False, case_sensitive=True)
        self.names = Names(total=0)
        self._words = words

    async def get_suggestion(self, value: str) -> str | None:
        """The whole filter with its last word completed; None: nothing fits."""
        return completed(value, self.names, self._words)


def completed(value: str, names: Names, words: Words = task_words) -> str | None:
    """*value* with its last word completed by the first that fits.

    >>> completed("stage:ju", Names(total=0, stages=("ask", "judge")))
    'stage:judge'
    """
    before, blank, word = value.rpartition(" ")
    minus = "-" if word.startswith("-") else ""
    begun = word.removeprefix("-")
    if not begun:
        return None
    for candidate in words(names):
        if candidate.startswith(begun) and candidate != begun:
            return f"{before}{blank}{minus}{candidate}"
    return None


def _quoted(value: str) -> str:
    return f'"{value}"' if " " in value else value


DEBOUNCE_S = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """A filter language, as somebody meets it who types."""

    parse: Callable[[str], Query]  #: raises QueryError
    words: Words
    example: str  #: stands in an empty field


TASKS = Language(
    parse=parse_query,
    words=task_words,
    example="filter: state:failed stage:judge latency>5s -model:m ...",
)
EVENTS = Language(
    parse=parse_event_query,
    words=event_words,
    example="filter: kind:attempt_failed err:Timeout task:12 -model:m ...",
)


class FilterField(Input):
    """Says what was typed once it can be read, and what is wrong where it cannot."""

    DEFAULT_CSS = """
    FilterField.-textual-compact { padding: 0 1; background: $panel; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "older(1)", "Filter before", show=False, id="filter.older"),
        Binding("down", "older(-1)", "Filter after", show=False, id="filter.newer"),
    ]

    class Read(Message):
        """Another filter than before."""

        def __init__(self, query: Query, expression: str) -> None:
            super().__init__()
            self.query = query
            self.expression = expression

    class Wrong(Message):
        """It cannot be read; an empty sentence: it can again."""

        def __init__(self, sentence: str, column: int | None = None) -> None:
            super().__init__()
            self.sentence = sentence
            self.column = column  #: cell of the field where it goes wrong

    def __init__(
        self,
        memory: FilterMemory,
        language: Language,
        *,
        id: str,  # noqa: A002 - as every widget calls it
    ) -> None:
        self._language = language
        self._completion = Completion(language.words)
        super().__init__(
            id=id,
            placeholder=language.example,
            compact=True,
            select_on_focus=False,
            suggester=self._completion,
        )
        self._memory = memory
        self._debounce: Timer | None = None
        self._read = ""  #: the filter that was said last
        self._is_wrong = False
        self._at = -1  #: which of the remembered ones is shown; -1: none
        self._typed = ""  #: what stood there before one of them was

    @property
    def expression(self) -> str:
        """The filter that was said last."""
        return self._read

    def validate_value(self, value: str) -> str:
        """What is pasted may come from a paper: only what can be seen stays."""
        return "".join(
            character
            for character in value
            if character == printable(character) != "\n"
        )

    def offer(self, names: Names) -> None:
        """Complete with these names from now on."""
        self._completion.names = names

    def action_older(self, step: int) -> None:
        """A filter that was used before, those with a star first; or back."""
        offered = self._memory.filters.offered
        at = max(-1, min(len(offered) - 1, self._at + step))
        if at == self._at:
            return
        if self._at < 0:
            self._typed = self.value
        self._at = at
        self.value = self._typed if at < 0 else offered[at]
        self.cursor_position = len(self.value)

    @on(Input.Changed)
    def _changed(self, message: Input.Changed) -> None:
        message.stop()
        if self._debounce is not None:
            self._debounce.stop()
        self._debounce = self.set_timer(DEBOUNCE_S, self.read)

    @on(Input.Submitted)
    def _submitted(self) -> None:
        """For whoever mounts it as well: the filter is to be left."""
        self.read()
        self.remember()

    def on_blur(self) -> None:
        """What was typed and not entered was used all the same."""
        self.read()
        self.remember()

    def remember(self) -> None:
        """Keep the filter for later, if it can be read."""
        self._at = -1
        if self._read == self.value.strip():
            self._memory.use(self._read)

    def read(self) -> None:
        """Say what stands there."""
        if self._debounce is not None:
            self._debounce.stop()
        expression = self.value.strip()
        try:
            query = self._language.parse(self.value)
        except QueryError as error:
            self._is_wrong = True
            self.post_message(self.Wrong(f"{error}.", self._column(error.position)))
            return
        if self._is_wrong:
            self._is_wrong = False
            self.post_message(self.Wrong(""))
        if expression != self._read:
            self._read = expression
            self.post_message(self.Read(query, expression))

    def _column(self, position: int) -> int | None:
        """The cell of a character, if it is in view."""
        before = cell_len(self.value[:position])
        column = self.styles.padding.left + before - self.scroll_offset.x
        return column if 0 <= column < self.size.width else None
