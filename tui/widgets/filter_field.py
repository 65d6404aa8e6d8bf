"""The filter field, with completion, error messages and history."""

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
from store.verdicts import OUTCOMES
from tui.render.glyphs import STATE_WORDS
from tui.sources.filters import FilterMemory
from tui.sources.tasks import Names

_OPERATORS = {"latency": ">", "cost": ">", "attempts": ">"}
"""The most frequent operator of numeric keys."""
_FIGURES = {"latency": "5s", "cost": "0.01", "attempts": "1"}
"""An example value of numeric keys."""


Words: TypeAlias = Callable[[Names], Sequence[str]]
"""Returns the words of a filter language, with the names of a run."""


def task_words(names: Names) -> Sequence[str]:
    """Return the words of the task filter."""
    values = {
        "state": (*STATE_WORDS.values(), "open", "final", "held"),
        "stage": names.stages,
        "model": names.models,
        "err": names.errors,
        "parse": names.parse_failures,
        "reason": (*names.errors, *names.parse_failures),
        "outcome": (*OUTCOMES, *names.errors, *names.parse_failures),
    }
    keys = (f"{key}{_OPERATORS.get(key, ':')}" for key in KEYS)
    figures = (f"{key}{_OPERATORS[key]}{value}" for key, value in _FIGURES.items())
    return [*keys, *figures, *_key_value_pairs(values)]


def event_words(names: Names) -> Sequence[str]:
    """Return the words of the event filter."""
    values = {
        "kind": tuple(KINDS),
        "stage": names.stages,
        "model": names.models,
        "err": names.errors,
        "reason": (*names.errors, *names.parse_failures),
    }
    return [*(f"{key}:" for key in EVENT_KEYS), *_key_value_pairs(values)]


def _key_value_pairs(values: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Yield every key with each value that can be offered."""
    for key, names in values.items():
        for value in names:
            # untrusted names that would need escaping are not offered
            if printable(value) == value and '"' not in value:
                yield f"{key}:{_quoted(value)}"


class Completion(Suggester):
    """Completes the last word of a filter; `names` may change at any time."""

    def __init__(self, words: Words = task_words) -> None:
        # the names of a live run grow, so results are not cached
        super().__init__(use_cache=False, case_sensitive=True)
        self.names = Names(total=0)
        self._words = words

    async def get_suggestion(self, value: str) -> str | None:
        """Return the filter with its last word completed; None: no match."""
        return completed(value, self.names, self._words)


def completed(value: str, names: Names, words: Words = task_words) -> str | None:
    """Return *value* with its last word completed by the first match.

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
    """A filter language, as the user sees it."""

    parse: Callable[[str], Query]  #: raises QueryError
    words: Words
    example: str  #: placeholder of an empty field


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
    """Posts the typed filter if it is valid, or its error."""

    DEFAULT_CSS = """
    FilterField.-textual-compact { padding: 0 1; background: $panel; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "older(1)", "Filter before", show=False, id="filter.older"),
        Binding("down", "older(-1)", "Filter after", show=False, id="filter.newer"),
    ]

    class Read(Message):
        """The filter changed."""

        def __init__(self, query: Query, expression: str) -> None:
            super().__init__()
            self.query = query
            self.expression = expression

    class Wrong(Message):
        """The filter is invalid; an empty sentence: it is valid again."""

        def __init__(self, sentence: str, column: int | None = None) -> None:
            super().__init__()
            self.sentence = sentence
            self.column = column  #: cell of the error in the field

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
            # typing replaces the filter that is there; an arrow key goes on with it
            select_on_focus=True,
            suggester=self._completion,
        )
        self._memory = memory
        self._debounce: Timer | None = None
        self._read = ""  #: the last posted filter
        self._is_wrong = False
        self._before = ""  #: the filter that typing replaces
        self._at = -1  #: index of the shown history entry; -1: none
        self._typed = ""  #: the text before an entry was shown

    @property
    def expression(self) -> str:
        """The last posted filter."""
        return self._read

    def validate_value(self, value: str) -> str:
        """Remove unprintable characters from pasted text."""
        return "".join(
            character
            for character in value
            if character == printable(character) != "\n"
        )

    def offer(self, names: Names) -> None:
        """Set the names for completion."""
        self._completion.names = names

    def action_older(self, step: int) -> None:
        """Show an older filter from the history, starred ones first; or go back."""
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
        """Post and remember the filter; parents handle the submission too."""
        self.read()
        self.remember()

    def on_focus(self) -> None:
        """Remember the filter, which a wrong one would lose."""
        if not self._is_wrong:
            self._before = self._read

    def restore(self) -> bool:
        """Replace a wrong filter by the one before it; return whether it was wrong."""
        is_wrong = self._is_wrong
        if is_wrong:
            self.value = self._before
            self.read()
        return is_wrong

    def on_blur(self) -> None:
        """Post and remember the filter, although it was not submitted."""
        self.read()
        self.remember()

    def remember(self) -> None:
        """Add the filter to the history, if it is valid."""
        self._at = -1
        if self._read == self.value.strip():
            self._memory.use(self._read)

    def read(self) -> None:
        """Post the current filter."""
        if self._debounce is not None:
            self._debounce.stop()
        expression = self.value.strip()
        try:
            query = self._language.parse(self.value)
        except QueryError as error:
            self._is_wrong = True
            end = "" if str(error).endswith("?") else "."
            sentence = f"{error}{end} esc undoes it."
            self.post_message(self.Wrong(sentence, self._column(error.position)))
            return
        if self._is_wrong:
            self._is_wrong = False
            self.post_message(self.Wrong(""))
        if expression != self._read:
            self._read = expression
            self.post_message(self.Read(query, expression))

    def _column(self, position: int) -> int | None:
        """Return the cell of a character, if it is visible."""
        before = cell_len(self.value[:position])
        column = self.styles.padding.left + before - self.scroll_offset.x
        return column if 0 <= column < self.size.width else None
