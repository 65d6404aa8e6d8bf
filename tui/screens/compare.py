"""A run against another, metric by metric, and the items on which they differ."""

from __future__ import annotations

import enum
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, ClassVar, TypeAlias

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Footer, Input
from textual.worker import Worker

from store.printable import printable
from tui.drawing import compare_words as words_of
from tui.drawing import comparison as drawing
from tui.drawing.clip import one_line
from tui.drawing.format import count
from tui.screens.run import RunScreen
from tui.sources.child import ChildFailed
from tui.sources.choices import Choice, choices, typed
from tui.sources.comparing import Comparison, Comparisons, ItemGap, Metric, Words
from tui.sources.run import Trouble
from tui.watched import Watched
from tui.widgets.grouped_table import GroupedTable
from tui.widgets.line import Line
from tui.widgets.panel import Said, TooSmall
from tui.widgets.table import Table

OFFERED = 2_000
"""Choices that are listed; typing finds the others."""

Work: TypeAlias = Callable[[], Coroutine[Any, Any, None]]


class View(enum.Enum):
    """What is listed; the value is the id of its table."""

    CHOICES = "choices"
    METRICS = "metrics"
    ITEMS = "items"


_FILTERS = {
    View.CHOICES: "what to compare with: a part of its name, or RUN, RUN:MODEL, FOLDER",
    View.METRICS: "a part of a metric's name",
    View.ITEMS: "a part of an item's key",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """A question under way."""

    what: str
    begun: float  #: by the monotonic clock


class CompareScreen(Screen[None]):
    """Chooses what to compare with, compares, and goes down to items."""

    DEFAULT_CSS = """
    CompareScreen #head { text-style: bold; }
    CompareScreen #filter {
        height: 1; border: none; padding: 0 1; background: $panel;
    }
    CompareScreen Table, CompareScreen #said { height: 1fr; display: none; }
    CompareScreen #said { padding: 2 4; }
    CompareScreen #notes {
        height: auto; max-height: 3; padding: 0 1; color: $state-waiting;
    }
    CompareScreen #about { height: 2; padding: 0 1; color: $state-queued; }
    CompareScreen #foot { color: $state-queued; }
    CompareScreen.-choices #choices, CompareScreen.-metrics #metrics,
    CompareScreen.-items #items, CompareScreen.-said #said { display: block; }
    CompareScreen.-said Table, CompareScreen.-choices #notes { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("slash", "filter", "Filter", id="compare.filter"),
        Binding("x", "clear", "Clear filter", show=False, id="compare.clear"),
        Binding("b", "choose", "Choose B", id="compare.choose"),
        Binding("r", "again", "Compare again", id="compare.again"),
        Binding("escape,h,left", "back", "Back", id="compare.back"),
    ]

    def __init__(self, watched: Watched) -> None:
        super().__init__()
        sources, folder = watched.sources, watched.folder
        self._glyphs = watched.glyphs
        self._clock = sources.clock
        self._listing = sources.listing
        self._own = sources.run(folder)
        runs_dir = self._listing.runs_dir.absolute()
        self._source = Comparisons(runs_dir, sources.child(), sources.answers)
        path = folder.path.absolute()
        #: how the command is told of A
        self._reference = folder.run_id if path.parent == runs_dir else str(path)
        self._view = View.CHOICES
        self._filters = dict.fromkeys(View, "")
        self._shown: Mapping[int, Any] = {}
        self._numbers: dict[Words, int] = {}  #: of choices: each keeps its own
        self._words: Words = ()
        self._comparison: Comparison | None = None
        self._row: drawing.Row | None = None  #: whose items are listed
        self._items: tuple[ItemGap, ...] = ()
        self._now: Mapping[str, int] = {}  #: last events by run, as looked at last
        self._asking: Asking | None = None
        self._trouble = ""
        self._said, self._notes, self._about = (
            Said(name, self._glyphs) for name in ("said", "notes", "about")
        )

    def compose(self) -> ComposeResult:
        """The heading, the filter, one of three tables or a sentence, the foot."""
        glyphs = self._glyphs
        yield Line(glyphs, id="head")
        yield Input(id="filter", compact=True, select_on_focus=False)
        yield self._said
        yield Table(drawing.CHOICE_COLUMNS, glyphs, id=View.CHOICES.value)
        yield GroupedTable(
            drawing.METRIC_COLUMNS,
            glyphs,
            lambda row: row.heading,
            id=View.METRICS.value,
        )
        yield Table(drawing.ITEM_COLUMNS, glyphs, id=View.ITEMS.value)
        yield TooSmall(glyphs)
        yield self._notes
        yield self._about
        yield Line(glyphs, id="foot", is_rule=True)
        yield Footer(compact=True, show_command_palette=False)

    def on_mount(self) -> None:
        """Begin with what there is to choose."""
        self._turn_to(View.CHOICES)

    def on_unmount(self) -> None:
        """End what is running, and let go of the log."""
        self._source.close()
        self._own.close()

    def on_screen_resume(self) -> None:
        """What was missed while another screen was in front."""
        self.look()

    @property
    def _table(self) -> Table[Any]:
        return self.query_one(f"#{self._view.value}", Table)

    # What is shown

    def look(self) -> None:
        """Show how long it takes, which runs there are, or what has come since."""
        if self._asking is not None or self._trouble:
            self._tell()
        elif self._view is View.CHOICES:
            self._list()
        elif self._comparison is not None:
            self._work(partial(self._checking, self._comparison), "check")

    async def _checking(self, comparison: Comparison) -> None:
        try:
            now = await self._source.seqs(self._words)
        except ChildFailed:
            return  # what is shown stays as true as it says; comparing again tells
        if comparison is self._comparison:
            self._now = now
            self._tell()

    def _turn_to(self, view: View) -> None:
        """Show another list, under the filter that it was left with."""
        self._view = view
        for each in View:
            self.set_class(each is view, f"-{each.value}")
        field = self.query_one("#filter", Input)
        field.placeholder = _FILTERS[view]
        field.value = self._filters[view]
        self._shown = {}
        self._list()
        self._table.focus()

    def _list(self) -> None:
        """Show what the filter lets through."""
        shown = self._let_through(self._filters[self._view].strip())
        if shown != self._shown or not shown:
            self._shown = shown
            self._table.show(shown)
        self._tell()

    def _let_through(self, part: str) -> Mapping[int, Any]:
        match self._view:
            case View.CHOICES:
                return self._offered(part)
            case View.METRICS if self._comparison is not None:
                return drawing.wanted(list(drawing.rows(self._comparison)), part)
            case _:
                return {
                    number: gap
                    for number, gap in enumerate(self._items)
                    if part.lower() in gap.item.lower()
                }

    def _offered(self, part: str) -> Mapping[int, Choice]:
        """What there is to choose; a choice keeps its number, and so its place."""
        own = self._own.look()
        if isinstance(own, Trouble):
            self._trouble = own.sentence
            return {}
        listed = self._listing.look()
        found = (
            choice
            for choice in choices(own, self._reference, listed)
            if part.lower() in " ".join(choice.words).lower()
        )
        is_whole = all(each.sight is not None for each in listed)
        runs_dir = str(self._listing.runs_dir)
        why = words_of.no_choice(own.status.job, runs_dir, part, is_whole=is_whole)
        self._table.explain(why)
        return {
            self._numbers.setdefault(choice.words, len(self._numbers)): choice
            for choice in islice(found, OFFERED)
        }

    def _tell(self) -> None:
        """Say what is shown, how it was made and how old it is."""
        said = ""
        if self._asking is not None:
            seconds = self._clock.monotonic() - self._asking.begun
            said = words_of.waiting(self._asking.what, seconds)
        elif self._trouble:
            said = words_of.failed(self._trouble)
        self.set_class(bool(said), "-said")
        self._said.say(printable(said))
        head = f"COMPARE  {self._reference} with …"
        right = f"{count(len(self._shown))} choices"
        foot, notes = ("", ""), ""
        if self._comparison is not None and self._view is not View.CHOICES:
            compared = self._comparison.compared
            head = f"COMPARE  {words_of.sides(self._words)}"
            right = words_of.amount(compared)
            notes = words_of.notes(compared, self.size.width - 2)
            as_of = words_of.as_of(compared.pairs, self._now)
            foot = words_of.method(compared), as_of
        if self._row is not None and self._view is View.ITEMS:
            right = f"{count(len(self._items))} items differ in {self._row.name}"
        self.query_one("#head", Line).say(head, right)
        self.query_one("#foot", Line).say(*foot)
        self._notes.say(notes)
        self._tell_row()

    def _tell_row(self) -> None:
        """What there is to say of the row under the cursor, on two lines."""
        row = self._table.row
        words = drawing.about(row) if isinstance(row, drawing.Row) else ""
        if isinstance(row, ItemGap) and self._row is not None:
            words = f"{row.item} · enter lists its tasks · {self._row.heading}"
        self._about.say(one_line(words, 2 * (self.size.width - 3)))

    # What is asked

    def _ask(self, what: str, work: Work) -> None:
        self._trouble = ""
        self._asking = Asking(what=what, begun=self._clock.monotonic())
        self._work(partial(self._asked, work), "ask")
        self._tell()

    def _work(self, work: Work, group: str) -> None:
        _: Worker[None] = self.run_worker(
            work, group=group, exclusive=True, exit_on_error=False
        )

    async def _asked(self, work: Work) -> None:
        """An answer, or the sentence why there is none."""
        try:
            await work()
        except ChildFailed as error:
            self._trouble = str(error)
        self._asking = None
        self._tell()

    def _compare(self, words: Words) -> None:
        what = f"Comparing {words_of.sides(words)}"
        self._words = words
        self._ask(what, partial(self._comparing, words))

    async def _comparing(self, words: Words) -> None:
        self._comparison = await self._source.compare(words)
        self._now = {}
        self._asking = None
        self._turn_to(View.METRICS)

    async def _listing_items(self, row: drawing.Row) -> None:
        self._items = await self._source.items(self._words, row.pair, row.name)
        self._row = row
        self._filters[View.ITEMS] = ""
        self._asking = None
        self._turn_to(View.ITEMS)

    # What happens

    @on(Table.Moved)
    def _moved(self, message: Table.Moved) -> None:
        if message.table is self._table:
            self._tell_row()

    @on(Table.Chosen)
    def _chosen(self, message: Table.Chosen) -> None:
        match message.table.row:
            case Choice(words=words):
                self._compare(words)
            case drawing.Row(shown=Metric(standing=None), name=name):
                said = f"{printable(name)} has no value for each item."
                self.notify(said, markup=False)
            case drawing.Row(shown=Metric()) as row:
                what = f"Listing the items that differ in {row.name}"
                self._ask(what, partial(self._listing_items, row))
            case ItemGap(item=item) if self._row is not None:
                wanted = words_of.tasks_of(self._words, self._row.pair, item)
                self.post_message(RunScreen.TasksWanted(wanted))
            case _:
                pass

    @on(Input.Changed, "#filter")
    def _typed(self, message: Input.Changed) -> None:
        self._filters[self._view] = message.value
        self._list()

    @on(Input.Submitted, "#filter")
    def _entered(self, message: Input.Submitted) -> None:
        text = message.value.strip()
        if self._view is View.CHOICES and text and not self._shown:
            try:
                self._compare(typed(self._reference, text))
            except ChildFailed as error:
                self._trouble = str(error)
                self._tell()
        self._table.focus()

    def action_filter(self) -> None:
        """Type a filter, or what to compare with."""
        self.query_one("#filter", Input).focus()

    def action_clear(self) -> None:
        """List everything again."""
        self.query_one("#filter", Input).value = ""

    def action_choose(self) -> None:
        """Choose something else to compare with."""
        self._stop()
        self._trouble = ""
        self._turn_to(View.CHOICES)

    def action_again(self) -> None:
        """Compare the same as the logs are now."""
        if self._words:
            self._compare(self._words)

    def _stop(self) -> None:
        self.workers.cancel_group(self, "ask")
        self._asking = None

    def action_back(self) -> None:
        """Leave the filter, what is computed, the items, the screen."""
        if self.focused is not self._table:
            self._table.focus()
        elif self._asking is not None:
            seconds = self._clock.monotonic() - self._asking.begun
            self._trouble = words_of.stopped(self._asking.what, seconds)
            self._stop()
            self._tell()
        elif self._trouble:
            self._trouble = ""
            self._list()
        elif self._view is not View.METRICS and self._comparison is not None:
            self._turn_to(View.METRICS)
        else:
            self.app.pop_screen()
