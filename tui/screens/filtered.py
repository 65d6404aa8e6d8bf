"""What every screen has that lists what a filter lets through.

A heading, the filter, a complaint under it, a table with one of its rows beside it, and
a foot; and reading that may fail, which is a sentence and no end of the monitor.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeAlias

from textual import on
from textual.screen import Screen
from textual.widgets import Static
from textual.worker import Worker

from store.errors import StoreError
from store.printable import printable
from tui.widgets.filter_field import FilterField

PANE_COLUMNS = 140
"""From this width on a row opens beside the table."""

Work: TypeAlias = Callable[[], Coroutine[Any, Any, None]]


class FilteredScreen(Screen[None]):
    """Works in the background, a group at a time, and says what cannot be read."""

    DEFAULT_CSS = """
    FilteredScreen { background: $background; layers: base above; }
    FilteredScreen #head { text-style: bold; }
    FilteredScreen #said {
        layer: above; dock: top; offset: 0 2; display: none; height: auto;
        padding: 0 1; background: $panel; color: $state-failed; text-style: bold;
    }
    FilteredScreen #beside { height: 1fr; }
    FilteredScreen #foot { color: $state-queued; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._failing: set[str] = set()  #: what could not be read the last time

    def _is_at_work(self, group: str) -> bool:
        return any(
            worker.group == group and worker.is_running for worker in self.workers
        )

    def _work(self, work: Work, group: str) -> None:
        """Begin a work; one of its group that is under way is given up."""
        safely = partial(self._safely, work, group)
        _: Worker[None] = self.run_worker(
            safely, group=group, exclusive=True, exit_on_error=False
        )

    async def _safely(self, work: Work, group: str) -> None:
        try:
            await work()
        except (StoreError, sqlite3.Error) as error:
            self._failing.add(group)
            self._complain(f"{error}.")
        else:
            if self._failing == {group}:
                self._complain("")
            self._failing.discard(group)

    def _complain(self, sentence: str, column: int | None = None) -> None:
        """Say what is wrong, under the filter; an empty sentence: nothing is."""
        said = self.query_one("#said", Static)
        mark = "" if column is None else f"{' ' * (column - 1)}^\n"
        said.update(f"{mark}{printable(sentence)}")
        said.display = bool(sentence)

    @on(FilterField.Wrong)
    def _explained(self, message: FilterField.Wrong) -> None:
        self._complain(message.sentence, message.column)
