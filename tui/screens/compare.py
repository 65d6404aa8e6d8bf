"""Compares a run with another, metric by metric, and lists items that differ."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Input
from textual.worker import Worker

from store.printable import printable
from tui.render import comparison as drawing
from tui.render import comparison as words_of
from tui.render.comparison import about_choice
from tui.render.layout import one_line
from tui.run_screens import WatchedRun
from tui.screens.run import RunScreen
from tui.sources.command import CommandFailed
from tui.sources.comparison import (
    ComparisonSource,
    ItemPair,
    MetricPair,
    PricedComparison,
    Words,
)
from tui.widgets.comparison import ComparisonPicker, FilteredTable, ProgressLine
from tui.widgets.keys import KeyLine
from tui.widgets.panel import TextBlock, TextLine, TooSmall
from tui.widgets.table import GroupedTable, PagedTable
from tui.widgets.text_view import TextView

CHECK_S = 5.0
"""Interval of checks for new events in the logs."""


class CompareView(enum.Enum):
    """The views; the value is the id of the widget."""

    CHOICES = "choices"
    METRICS = "metrics"
    ITEMS = "items"
    MORE = "more"  #: details about two models


class CompareScreen(Screen[None]):
    """Chooses a comparison, runs it, and shows metrics and items."""

    DEFAULT_CSS = """
    CompareScreen #head { text-style: bold; }
    CompareScreen #views { height: 1fr; }
    CompareScreen #said, CompareScreen #more { padding: 1 2; height: 1fr; }
    CompareScreen #notes, CompareScreen #row { height: 2; padding: 0 1; }
    CompareScreen #notes { color: $state-waiting; }
    CompareScreen #row, CompareScreen #foot { color: $state-queued; }
    CompareScreen #views > *, CompareScreen #notes, CompareScreen #said {
        display: none;
    }
    CompareScreen.-choices #choices, CompareScreen.-metrics #metrics,
    CompareScreen.-items #items, CompareScreen.-more #more,
    CompareScreen.-noted.-metrics #notes, CompareScreen.-said #said {
        display: block;
    }
    CompareScreen.-said #views, CompareScreen.-tiny #views,
    CompareScreen.-flat #views { display: none; }
    CompareScreen.-said #notes, CompareScreen.-said #row { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        # priority: of keys that arrive together, later ones are typed into the field
        Binding("slash", "filter", "Filter", id="compare.filter", priority=True),
        Binding("x", "clear", "Clear filter", show=False, id="compare.clear"),
        Binding("b", "other", "Choose B", id="compare.other"),
        Binding("r", "again", "Again", id="compare.again"),
        Binding("escape,h,left", "back", "Back", id="compare.back"),
    ]

    def __init__(self, watched: WatchedRun) -> None:
        super().__init__()
        sources, path = watched.sources, watched.folder.path.absolute()
        runs_dir = sources.listing.runs_dir.absolute()
        self._glyphs = watched.glyphs
        self._clock = sources.clock
        self._source = ComparisonSource(runs_dir, sources.child(), sources.answers)
        #: A as an argument of the command
        self._reference = path.name if path.parent == runs_dir else str(path)
        self._words: Words = ()  #: the last requested comparison
        self._comparison: PricedComparison | None = None
        self._row: drawing.ComparisonRow | None = None  #: row of the listed items
        self._now: Mapping[str, int] = {}  #: last events by run, at the last check
        self._checked = self._clock.monotonic()
        self._view = CompareView.CHOICES
        self._head = TextLine(self._glyphs, id="head")
        self._foot = TextLine(self._glyphs, id="foot", is_rule=True)
        self._progress = ProgressLine("said", self._glyphs, self._clock)
        self._notes, self._about = (
            TextBlock(name, self._glyphs) for name in ("notes", "row")
        )
        choices = CompareView.CHOICES.value
        self._choices = ComparisonPicker(watched, self._reference, id=choices)
        self._metrics = FilteredTable(
            GroupedTable(drawing.METRIC_COLUMNS, self._glyphs, lambda row: row.heading),
            drawing.filter_rows,
            "a part of a metric's name",
            id=CompareView.METRICS.value,
        )
        self._items = FilteredTable(
            PagedTable(drawing.ITEM_COLUMNS, self._glyphs),
            drawing.filter_items,
            "a part of an item's key",
            id=CompareView.ITEMS.value,
        )
        self._more = TextView(self._glyphs, id=CompareView.MORE.value)

    def compose(self) -> ComposeResult:
        """Yield the heading, the views or a message, the footer."""
        yield self._head
        yield self._progress
        with Container(id="views"):
            yield from (self._choices, self._metrics, self._items, self._more)
        yield TooSmall(self._glyphs)
        yield self._notes
        yield self._about
        yield self._foot
        yield KeyLine(self._glyphs)

    def on_mount(self) -> None:
        """Start with the choices."""
        self._turn_to(CompareView.CHOICES)

    def on_unmount(self) -> None:
        """Stop running computations."""
        self._source.close()

    def on_screen_resume(self) -> None:
        """Update after another screen was in front."""
        self.poll()

    def on_resize(self) -> None:
        """Redraw lines for the new width."""
        self._show_status()

    @property
    def _pane(self) -> FilteredTable[Any] | None:
        """The list of this view; None: it shows a text."""
        panes: Mapping[CompareView, FilteredTable[Any]] = {
            CompareView.CHOICES: self._choices,
            CompareView.METRICS: self._metrics,
            CompareView.ITEMS: self._items,
        }
        return panes.get(self._view)

    @property
    def _front(self) -> Widget:
        """The widget of this view that takes the keys."""
        return self._more if self._pane is None else self._pane.table

    # Display

    def poll(self) -> None:
        """Update the duration, the list of runs, or the number of new events."""
        now = self._clock.monotonic()
        if not self._progress.is_silent:
            self._progress.poll()
        elif self._view is CompareView.CHOICES:
            self._choices.poll()
        elif self._comparison is not None and now - self._checked >= CHECK_S:
            self._checked = now
            checking = partial(self._checking, self._comparison)
            _: Worker[None] = self.run_worker(checking, exclusive=True)
        self._show_status()

    async def _checking(self, comparison: PricedComparison) -> None:
        try:
            now = await self._source.seqs(comparison.words)
        except CommandFailed:
            return  # what is displayed stays valid; a retry shows the error
        if comparison is self._comparison:
            self._now = now
            self._show_status()

    def _turn_to(self, view: CompareView) -> None:
        self._view = view
        for candidate in CompareView:
            self.set_class(candidate is view, f"-{candidate.value}")
        self._front.focus()
        self.poll()

    def _show_status(self) -> None:
        """Show what is displayed, its method and its age."""
        head, right, foot, notes = (
            f"COMPARE  {self._reference} with …",
            f"{self._choices.count:,} to choose from",
            ("", ""),
            "",
        )
        if self._comparison is not None and self._view is not CompareView.CHOICES:
            compared = self._comparison.compared
            head = f"COMPARE  {words_of.sides(self._comparison.words)}"
            right = words_of.amount_compared(compared)
            foot = words_of.method(compared), words_of.as_of(compared, self._now)
            notes = words_of.notes(compared)
        self._head.say(head, right)
        self._foot.say(*foot)
        self._notes.say(one_line(notes, 2 * (self.size.width - 4)))
        self.set_class(bool(notes), "-noted")
        self._describe_row()

    def _describe_row(self) -> None:
        """Describe the row under the cursor, on two lines."""
        words = ""
        if self._view is CompareView.CHOICES and self._choices.table.row is not None:
            words = about_choice(self._choices.table.row)
        elif self._view is CompareView.METRICS and self._metrics.table.row is not None:
            words = drawing.about(self._metrics.table.row)
        elif self._view is CompareView.ITEMS and self._row is not None:
            words = drawing.about_items(self._row, self._items.count)
        self._about.say(one_line(words, 2 * (self.size.width - 4)))

    # Requests

    def _compare(self, words: Words) -> None:
        self._words = words
        activity = f"Comparing {words_of.sides(words)}"
        self._progress.ask(activity, partial(self._comparing, words))

    async def _comparing(self, words: Words) -> None:
        before, self._comparison = self._comparison, await self._source.compare(words)
        self._now = {}
        rows = dict(enumerate(drawing.rows(self._comparison)))
        if before is not None and before.words == words:
            self._metrics.show(rows)  # same comparison: the cursor stays
        else:
            self._metrics.begin(rows)
        self._turn_to(CompareView.METRICS)

    async def _listing_items(self, row: drawing.ComparisonRow) -> None:
        if self._comparison is None:
            return
        items = await self._source.items(self._comparison, row.pair, row.path)
        self._row = row
        self._items.begin(dict(enumerate(items)))
        self._items.table.explain("No item differs: esc goes back.")
        self._turn_to(CompareView.ITEMS)

    async def _listing_tasks(self, filters: Sequence[str]) -> None:
        if self._comparison is not None:
            expression = await self._source.fitting(self._comparison, filters)
            self.post_message(RunScreen.TasksRequested(expression))

    # Events

    @on(PagedTable.Moved)
    def _moved(self) -> None:
        self._describe_row()

    @on(ComparisonPicker.Chosen)
    def _begun(self, message: ComparisonPicker.Chosen) -> None:
        self._compare(message.words)

    @on(ComparisonPicker.Refused)
    def _refused(self, message: ComparisonPicker.Refused) -> None:
        self._progress.refuse(message.sentence)

    @on(ProgressLine.Changed)
    def _progress_changed(self) -> None:
        has_progress = not self._progress.is_silent
        self.set_class(has_progress, "-said")
        if not has_progress:
            self._front.focus()  # the focus was lost with a hidden widget
        self.poll()

    @on(PagedTable.Chosen)
    def _chosen(self, message: PagedTable.Chosen) -> None:
        match message.table.row:
            case drawing.ComparisonRow(figures=None, pair=pair) if (
                self._comparison is not None
            ):
                self._more.show(words_of.pair_details(self._comparison.compared, pair))
                self._turn_to(CompareView.MORE)
            case drawing.ComparisonRow(figures=MetricPair(standing=None), name=name):
                notice = f"{printable(name)} has no value for each item."
                self.notify(notice, markup=False)
            case drawing.ComparisonRow(figures=MetricPair(), name=name) as row:
                activity = f"Listing the items that differ in {name}"
                self._progress.ask(activity, partial(self._listing_items, row))
            case ItemPair(item=item) if self._row is not None:
                filters = words_of.tasks_of(self._row.pair, item)
                self._progress.ask("Its tasks", partial(self._listing_tasks, filters))
            case _:
                pass

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Let the field receive its key as a character."""
        del parameters
        return action != "filter" or not isinstance(self.focused, Input)

    def action_filter(self) -> None:
        """Focus the filter."""
        if self._pane is not None:
            self._pane.type_in()

    def action_clear(self) -> None:
        """Clear the filter."""
        if self._pane is not None:
            self._pane.clear()

    def action_other(self) -> None:
        """Choose another comparison."""
        self._progress.stop()
        self._progress.hush()
        self._turn_to(CompareView.CHOICES)

    def action_again(self) -> None:
        """Repeat the comparison with the current logs, or retry."""
        if self._words and not self._progress.is_silent:
            self._compare(self._words)
        elif self._comparison is not None:
            self._compare(self._comparison.words)

    def action_back(self) -> None:
        """Leave the computation, the filter, the view, then the screen."""
        if self._progress.is_busy:
            self._progress.stop()
        elif not self._progress.is_silent:
            self._progress.hush()
        elif self.focused is not self._front:
            self._front.focus()
        elif self._view is not CompareView.METRICS and self._comparison is not None:
            self._turn_to(CompareView.METRICS)
        else:
            self.app.pop_screen()
