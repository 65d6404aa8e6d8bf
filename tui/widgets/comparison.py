"""Widgets of the Compare screen: choices, lists, progress."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from itertools import islice
from typing import Any, Generic, TypeAlias

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.message import Message
from textual.widgets import Input
from textual.worker import Worker

from store.clock import Clock
from store.printable import printable
from tui.render.comparison import (
    CHOICE_COLUMNS,
    failed,
    filter_choices,
    no_choice,
    stopped,
    waiting,
)
from tui.render.glyphs import Glyphs
from tui.render.layout import RowT
from tui.run_screens import WatchedRun
from tui.sources.command import CommandFailed
from tui.sources.comparison import (
    ComparisonChoice,
    NothingToCompare,
    Words,
    choice_typed,
    comparison_choices,
)
from tui.sources.run_snapshot import ReadProblem
from tui.widgets.panel import TextBlock
from tui.widgets.table import PagedTable

Fits: TypeAlias = Callable[[Mapping[int, RowT], str], Mapping[int, RowT]]
"""Returns the rows that match the typed text."""


class FilteredTable(Vertical, Generic[RowT]):
    """A list in memory, with a filter."""

    DEFAULT_CSS = """
    FilteredTable Input.-textual-compact { padding: 0 1; background: $panel; }
    FilteredTable PagedTable { height: 1fr; }
    """

    def __init__(
        self,
        table: PagedTable[RowT],
        fits: Fits[RowT],
        placeholder: str,
        *,
        id: str | None = None,  # noqa: A002 - as every widget calls it
    ) -> None:
        """Create a table under its filter.

        Args:
            table: shows the rows.
            fits: selects the rows that match the typed text.
            placeholder: placeholder of the input line.
            id: for style sheets.
        """
        super().__init__(id=id)
        self.table = table
        self._fits = fits
        self._field = Input(
            placeholder=placeholder, compact=True, select_on_focus=False
        )
        self._all: Mapping[int, RowT] = {}
        self._visible_rows: Mapping[int, RowT] | None = None

    def compose(self) -> ComposeResult:
        """Yield the input line, and the table below."""
        yield self._field
        yield self.table

    @property
    def part(self) -> str:
        """The typed text."""
        return self._field.value.strip()

    @property
    def count(self) -> int:
        """Number of listed rows."""
        return len(self._visible_rows or ())

    def show(self, rows: Mapping[int, RowT]) -> None:
        """List other rows, by stable numbers; the cursor stays on its row."""
        self._all = rows
        self._list()

    def begin(self, rows: Mapping[int, RowT]) -> None:
        """List unrelated rows, unfiltered."""
        self._all, self._visible_rows = rows, None
        self._field.value = ""
        self.table.relist(())
        self._list()

    def _list(self) -> None:
        visible_rows = self._fits(self._all, self.part)
        if visible_rows != self._visible_rows:
            self._visible_rows = visible_rows
            self.table.show(visible_rows)

    @on(Input.Changed)
    def _typed(self, message: Input.Changed) -> None:
        message.stop()
        self._list()

    @on(Input.Submitted)
    def _entered(self, message: Input.Submitted) -> None:
        message.stop()
        self.table.focus()
        if self.part and not self._visible_rows:
            self.take(self.part)

    def take(self, text: str) -> None:
        """Handle text that matches no row and was entered: ignored here."""

    def type_in(self) -> None:
        """Focus the input line."""
        # at once: characters typed right after the key belong to the field
        self.screen.set_focus(self._field)

    def clear(self) -> None:
        """Clear the filter."""
        self._field.value = ""


OFFERED = 2_000
"""Maximum listed choices; others can be typed."""


class ComparisonPicker(FilteredTable[ComparisonChoice]):
    """Lists the models of the run and of other runs of its job."""

    class Chosen(Message):
        """A comparison was chosen."""

        def __init__(self, words: Words) -> None:
            super().__init__()
            self.words = words

    class Refused(Message):
        """The typed text is not comparable; the sentence has the reason."""

        def __init__(self, sentence: str) -> None:
            super().__init__()
            self.sentence = sentence

    def __init__(self, watched: WatchedRun, reference: str, *, id: str) -> None:  # noqa: A002 - as every widget calls it
        """Create a list of choices.

        Args:
            watched: the run that is A.
            reference: A as an argument of the command.
            id: for style sheets.
        """
        super().__init__(
            PagedTable(CHOICE_COLUMNS, watched.glyphs),
            filter_choices,
            "what to compare with: a part of its name, or RUN, RUN:MODEL, FOLDER",
            id=id,
        )
        self._listing = watched.sources.listing
        self._source_a = watched.sources.run(watched.folder)
        self._reference = reference
        self._numbers: dict[Words, int] = {}  #: each choice keeps its number

    def on_unmount(self) -> None:
        """Close the log."""
        self._source_a.close()

    def poll(self) -> None:
        """Update the list of runs, or report that the run is gone."""
        snapshot_a = self._source_a.poll()
        if isinstance(snapshot_a, ReadProblem):
            self.show({})
            self.table.explain(f"{snapshot_a.sentence}.")
            return
        listed_runs = self._listing.poll()
        choices = islice(
            comparison_choices(snapshot_a, self._reference, listed_runs), OFFERED
        )
        self.show(
            {
                self._numbers.setdefault(choice.words, len(self._numbers)): choice
                for choice in choices
            }
        )
        is_whole = all(listed_run.snapshot is not None for listed_run in listed_runs)
        runs_dir = str(self._listing.runs_dir)
        sentence = no_choice(
            snapshot_a.status.job, runs_dir, self.part, is_whole=is_whole
        )
        self.table.explain(sentence)

    @on(PagedTable.Chosen)
    def _chosen(self, message: PagedTable.Chosen) -> None:
        message.stop()
        choice: Any = message.table.row
        if choice is not None:
            self.post_message(self.Chosen(choice.words))

    def take(self, text: str) -> None:
        """Use text that matches no listed choice as typed."""
        try:
            words = choice_typed(self._reference, text)
        except NothingToCompare as error:
            self.post_message(self.Refused(str(error)))
        else:
            self.post_message(self.Chosen(words))


Work: TypeAlias = Callable[[], Coroutine[Any, Any, None]]


class ProgressLine(TextBlock):
    """Runs one request at a time and shows its progress or failure."""

    class Changed(Message):
        """The shown text changed or disappeared."""

    def __init__(self, name: str, glyphs: Glyphs, clock: Clock) -> None:
        """Start without a request.

        Args:
            name: for style sheets.
            glyphs: the characters to show.
            clock: measures the duration.
        """
        super().__init__(name, glyphs)
        self._clock = clock
        self._activity = ""
        self._begun = 0.0
        self._is_busy = False
        self._problem = ""

    @property
    def is_busy(self) -> bool:
        """Whether a request is running."""
        return self._is_busy

    @property
    def is_silent(self) -> bool:
        """Whether there is no message, so that something else can be shown."""
        return not self._is_busy and not self._problem

    def ask(self, activity: str, work: Work) -> None:
        """Run *work* in the background; stops an earlier request."""
        self._activity, self._begun = activity, self._clock.monotonic()
        self._is_busy, self._problem = True, ""
        _: Worker[None] = self.run_worker(partial(self._do, work), exclusive=True)
        self._change()

    async def _do(self, work: Work) -> None:
        try:
            await work()
        except CommandFailed as error:
            self._problem = str(error)
        self._is_busy = False
        self._change()

    def stop(self) -> None:
        """Stop the request, and show that."""
        if self._is_busy:
            seconds = self._clock.monotonic() - self._begun
            self.workers.cancel_node(self)
            self._is_busy = False
            self.refuse(stopped(self._activity, seconds))

    def refuse(self, sentence: str) -> None:
        """Show why there is no result."""
        self._problem = sentence
        self._change()

    def hush(self) -> None:
        """Clear the message about a failed or stopped request."""
        self._problem = ""
        self._change()

    def poll(self) -> None:
        """Update the displayed duration."""
        if self._is_busy:
            seconds = self._clock.monotonic() - self._begun
            self.say(printable(waiting(self._activity, seconds)))
        elif self._problem:
            self.say(printable(failed(self._problem)))

    def _change(self) -> None:
        self.poll()
        self.post_message(self.Changed())
