"""What a filter may go on with: its keys, and the values that this run has."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TypeAlias

from textual.suggester import Suggester

from store.event_query import EVENT_KEYS
from store.events import KINDS
from store.printable import printable
from store.query import KEYS
from tui.drawing.glyphs import STATE_WORDS
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
    return [*keys, *figures, *_named(values)]


def event_words(names: Names) -> Sequence[str]:
    """Of the filter of events."""
    values = {
        "kind": tuple(KINDS),
        "stage": names.stages,
        "model": names.models,
        "err": names.errors,
        "reason": (*names.errors, *names.parse_failures),
    }
    return [*(f"{key}:" for key in EVENT_KEYS), *_named(values)]


def _named(values: Mapping[str, Sequence[str]]) -> Iterator[str]:
    """Every key with each of its values, where they can be offered."""
    for key, found in values.items():
        for value in found:
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
