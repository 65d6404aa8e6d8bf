"""What a filter may go on with: its keys, and the values that this run has."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from textual.suggester import Suggester

from store.event_query import EVENT_KEYS
from store.events import KINDS
from store.printable import printable
from store.query import KEYS
from tui.drawing.glyphs import STATE_WORDS
from tui.sources.tasks import Names

Values: TypeAlias = Callable[[Names], Mapping[str, Sequence[str]]]
"""The keys of a language, with the values that a run has for them."""


def task_values(names: Names) -> Mapping[str, Sequence[str]]:
    """Of the filter of tasks."""
    return dict.fromkeys(KEYS, ()) | {
        "state": (*STATE_WORDS.values(), "open", "final", "held"),
        "stage": names.stages,
        "model": names.models,
        "err": names.errors,
        "parse": names.parse_failures,
        "reason": (*names.errors, *names.parse_failures),
    }


def event_values(names: Names) -> Mapping[str, Sequence[str]]:
    """Of the filter of events."""
    return dict.fromkeys(EVENT_KEYS, ()) | {
        "kind": tuple(KINDS),
        "stage": names.stages,
        "model": names.models,
        "err": names.errors,
        "reason": (*names.errors, *names.parse_failures),
    }


class Completion(Suggester):
    """Completes the last word of a filter; `names` may change at any time."""

    def __init__(self, values: Values = task_values) -> None:
        # the names of a live run grow: yesterday's answer is not today's
        super().__init__(use_cache=False, case_sensitive=True)
        self.names = Names(total=0)
        self._values = values

    async def get_suggestion(self, value: str) -> str | None:
        """The whole filter with its last word completed; None: nothing fits."""
        return completed(value, self.names, self._values)


def completed(value: str, names: Names, values: Values = task_values) -> str | None:
    """*value* with its last word completed by the first that fits.

    >>> completed("stage:ju", Names(total=0, stages=("ask", "judge")))
    'stage:judge'
    """
    before, blank, word = value.rpartition(" ")
    minus = "-" if word.startswith("-") else ""
    begun = word.removeprefix("-")
    if not begun:
        return None
    for candidate in _candidates(values(names)):
        if candidate.startswith(begun) and candidate != begun:
            return f"{before}{blank}{minus}{candidate}"
    return None


def _candidates(values: Mapping[str, Sequence[str]]) -> list[str]:
    keys = [f"{key}:" for key in values]
    return keys + [
        f"{key}:{_quoted(value)}"
        for key, found in values.items()
        for value in found
        # names come from outside: one that would have to be changed is not offered
        if printable(value) == value and '"' not in value
    ]


def _quoted(value: str) -> str:
    return f'"{value}"' if " " in value else value
