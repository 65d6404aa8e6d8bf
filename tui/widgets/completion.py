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

_OPERATORS = {"latency": ">", "cost": ">", "attempts": ">"}
"""Of keys whose values are figures, the one that is wanted most."""
_FIGURES = {"latency": "5s", "cost": "0.01", "attempts": "1"}
"""And a value that shows how one is written."""


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


def _quoted(value: str) -> str:
    return f'"{value}"' if " " in value else value
