"""Shows a run over time: charts with one cursor, and the job's metrics."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from functools import partial
from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.screen import Screen
from textual.worker import Worker

from store.errors import StoreError
from store.fold_state import US_PER_S
from store.printable import printable
from tui.render.charts import columns_in
from tui.render.format import duration
from tui.render.headline import headline
from tui.render.metrics import SERIES, ChartedHistory, chart, column_caption, figures
from tui.render.run_panels import sign_of
from tui.render.sentences import age, sentence
from tui.run_screens import WatchedRun
from tui.sources.history import US_PER_MINUTE, HistoryRequest, RunHistory
from tui.sources.run_snapshot import ENDED, ReadProblem, RunSnapshot
from tui.widgets.headline import HeadlinePanel
from tui.widgets.keys import KeyLine
from tui.widgets.panel import TextBlock, TextLine, TitledPanel, TooSmall


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeCursor:
    """Marks a minute, or follows the present: the last column."""

    minute: int | None = None  #: minutes since 1970 UTC; None: follows the present

    def position(self, history: RunHistory) -> int | None:
        """Return its column; None: the last."""
        columns = history.columns
        if self.minute is None or not columns:
            return None
        position = (self.minute - columns[0].first) // history.width
        return max(0, min(len(columns) - 1, position))

    def put(self, history: RunHistory, position: int) -> TimeCursor:
        """Move to a column; past the last one it follows the present."""
        columns = history.columns
        if not columns:
            return self
        is_past = position >= len(columns)
        return TimeCursor(minute=None if is_past else columns[max(0, position)].first)

    def moved(self, history: RunHistory, by: int) -> TimeCursor:
        """Move by some columns."""
        position, last = self.position(history), len(history.columns) - 1
        return self.put(history, by + (last if position is None else position))


WINDOWS: tuple[tuple[int | None, str], ...] = (
    (15, "last 15 min"),
    (60, "last hour"),
    (360, "last 6 h"),
    (None, "whole run"),
)
"""Minutes and names of the windows."""
_HOUR = 1
REST_S = 5
"""Interval of reads within a minute, in which only marks can change."""
_HEADLINE = "headline"


class MetricsScreen(Screen[None]):
    """Charts of a run on one time axis, and its headline metrics."""

    DEFAULT_CSS = """
    MetricsScreen #head { text-style: bold; background: $panel; }
    MetricsScreen #tabs { height: 1; padding: 0 1; color: $accent; }
    MetricsScreen #charts {
        height: 1fr; layout: grid; grid-size: 2 3; grid-rows: 1fr;
    }
    MetricsScreen #why { display: none; height: auto; padding: 1 2; }
    MetricsScreen TitledPanel {
        border: round $foreground 25%;
        border-title-color: $accent;
        border-title-style: bold;
        padding: 0 1;
    }
    MetricsScreen #charts TitledPanel { height: 100%; }
    MetricsScreen.-ascii TitledPanel { border: ascii $state-queued; }
    MetricsScreen #headline { height: 25%; min-height: 6; }
    MetricsScreen #moment { color: $state-waiting; }

    MetricsScreen.-wide #tabs, MetricsScreen.-middle #tabs { display: none; }
    MetricsScreen.-small #charts { grid-size: 1 1; }
    MetricsScreen.-small TitledPanel { display: none; }
    MetricsScreen.-small TitledPanel.-current { display: block; }
    MetricsScreen.-small.-scores #charts { display: none; }
    MetricsScreen.-small #headline { height: 1fr; }

    MetricsScreen.-imported #why, MetricsScreen.-imported #headline { display: block; }
    MetricsScreen.-imported #headline { height: 1fr; }
    MetricsScreen.-imported #charts, MetricsScreen.-imported #tabs,
    MetricsScreen.-imported #figures, MetricsScreen.-imported #moment { display: none; }
    MetricsScreen.-trouble #charts, MetricsScreen.-trouble #headline,
    MetricsScreen.-trouble #figures, MetricsScreen.-trouble #moment { display: none; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("z", "window", "Window", id="metrics.window"),
        Binding("b", "model", "By model", id="metrics.model"),
        Binding(
            "h,left", "move(-1)", "Cursor", key_display="h/l", id="metrics.earlier"
        ),
        Binding("l,right", "move(1)", "Later", show=False, id="metrics.later"),
        Binding("g,home", "end(0)", "Earliest", show=False, id="metrics.earliest"),
        Binding("G,end", "end(1)", "Now", show=False, id="metrics.now"),
        Binding("n", "mark(1)", "Next mark", show=False, id="metrics.next-mark"),
        Binding("N", "mark(-1)", "Mark before", show=False, id="metrics.mark-before"),
        Binding("r", "compute", "Compute", id="metrics.compute"),
        Binding("tab", "part(1)", "Next panel", show=False, id="metrics.next-panel"),
        Binding(
            "shift+tab", "part(-1)", "Previous panel", show=False, id="metrics.previous"
        ),
        Binding("space", "freeze", "Freeze", id="metrics.freeze"),
        Binding("escape", "back", "Back", id="metrics.back"),
    ]

    def __init__(self, watched: WatchedRun) -> None:
        super().__init__()
        sources, glyphs = watched.sources, watched.glyphs
        self._glyphs = glyphs
        self._run = sources.run(watched.folder)
        self._source = sources.history(watched.folder, sources.clock)
        self._snapshot: RunSnapshot | None = None
        self._frozen_snapshot: RunSnapshot | None = (
            None  # snapshot at the time of freezing
        )
        self._history: RunHistory | None = None
        self._last_request: HistoryRequest | None = None
        self._failing = ""  # error of the last read
        self._charted: ChartedHistory | None = None
        self._read_at: RunSnapshot | None = None  # snapshot at the last read
        self._window = _HOUR
        self._model: str | None = None
        self._cursor = TimeCursor()
        self._part = 0
        self._charts = {
            series.name: TitledPanel(
                partial(chart, series), series.title, glyphs, series.name
            )
            for series in SERIES
        }
        self._headline = HeadlinePanel(
            sources.headline(watched.folder, sources.child(), sources.answers),
            sources.clock,
            glyphs,
            _HEADLINE,
            headline,
        )
        self._head, self._figures, self._caption = (
            TextLine(glyphs, id=name) for name in ("head", "figures", "moment")
        )
        self._tabs, self._explanation, self._problem, self._age = (
            TextBlock(name, glyphs) for name in ("tabs", "why", "trouble", "age")
        )
        self.set_class(bool(glyphs.plain), "-ascii")

    def compose(self) -> ComposeResult:
        """Yield the heading, the charts, the selected figures, the headline."""
        yield self._head
        yield self._tabs
        yield self._problem
        yield TooSmall(self._glyphs)
        yield self._explanation
        with Container(id="charts"):
            yield from self._charts.values()
        yield self._figures
        yield self._caption
        yield self._headline
        yield self._age
        yield KeyLine(self._glyphs)

    def on_mount(self) -> None:
        """Show the first part."""
        self._turn_to(0)

    def on_unmount(self) -> None:
        """Close the log."""
        self._run.close()
        self._source.close()

    def on_screen_resume(self, event: events.ScreenResume) -> None:
        """Update after another screen was in front."""
        del event
        self.poll()

    def on_resize(self, event: events.Resize) -> None:
        """Update the number of columns."""
        del event
        self.call_after_refresh(self.poll)

    # Display

    def poll(self) -> None:
        """Read and show changes; called by the application's timer."""
        snapshot = self._run.poll()
        self.set_class(isinstance(snapshot, ReadProblem), "-trouble")
        if isinstance(snapshot, ReadProblem):
            self._problem.say(
                f"{printable(snapshot.sentence)}.\n\n"
                "Leave with q, or go to all runs with 1."
            )
            return
        self._snapshot = snapshot
        self._say()
        if self._frozen_snapshot is not None:
            return
        if not snapshot.status.imported and self._is_stale(snapshot):
            self._read()
        result = snapshot.result
        self._headline.poll(snapshot.ended, None if result is None else result.headline)

    def _is_stale(self, snapshot: RunSnapshot) -> bool:
        """Return whether to read again: after a minute, or another change."""
        if any(worker.group == "read" for worker in self.workers):
            return False
        if self._history is None or not self._history.is_whole:
            return True
        if self._ask() != self._last_request:
            return True
        read = self._read_at
        if (
            read is None
            or snapshot.now_us // US_PER_MINUTE != read.now_us // US_PER_MINUTE
        ):
            return True
        return (
            snapshot.status.last_seq != read.status.last_seq
            and snapshot.now_us - read.now_us >= REST_S * US_PER_S
        )

    def _ask(self) -> HistoryRequest:
        visible_panels = (panel for panel in self._charts.values() if panel.display)
        width = max((panel.content_size.width for panel in visible_panels), default=0)
        return HistoryRequest(
            minutes=WINDOWS[self._window][0],
            columns=columns_in(width or self.size.width // 2, self._glyphs),
            model=self._model,
        )

    def _read(self) -> None:
        self._last_request = self._ask()
        self._read_at = self._snapshot
        _: Worker[None] = self.run_worker(
            partial(self._reading, self._last_request),
            group="read",
            exclusive=True,
            exit_on_error=False,
        )

    async def _reading(self, ask: HistoryRequest) -> None:
        try:
            self._history = await self._source.read(ask)
        except (StoreError, sqlite3.Error) as error:
            self._failing = str(error)
        else:
            self._failing = ""
        self._say()

    def _say(self) -> None:
        """Show the data, or the frozen ones."""
        snapshot = self._frozen_snapshot or self._snapshot
        if snapshot is None:
            return
        self.set_class(snapshot.status.imported, "-imported")
        with self.app.batch_update():
            self._show_heading(snapshot)
            self._show_charts(snapshot)
            self._headline.redraw()
            self._show_age()

    def _show_heading(self, snapshot: RunSnapshot) -> None:
        heartbeat_s = snapshot.heartbeat_s
        ended = snapshot.state in ENDED or heartbeat_s is None
        alive = "" if ended else f" (heartbeat {duration(heartbeat_s)})"
        state = (
            f"{sign_of(snapshot.state, self._glyphs)} "
            f"{snapshot.state.replace('_', ' ')}"
        )
        by = "" if self._history is None else f", {self._history.width} min per column"
        left = f"METRICS {snapshot.status.run_id}  {state}"
        right = f"{self._window_name()}{by} · {self._model or 'all models'}"
        # blanks at both ends, and two between
        room = self.size.width - cell_len(left) - cell_len(right) - 4
        self._head.say(f"{left}{alive}" if len(alive) <= room else left, right)

    def _window_name(self) -> str:
        """Name the window; a run that is younger is shown as a whole."""
        minutes, name = WINDOWS[self._window]
        history = self._history
        if history is None or minutes is None:
            return name
        span = len(history.columns) * history.width
        return name if span >= minutes else f"whole run, {span} min"

    def _show_charts(self, snapshot: RunSnapshot) -> None:
        if snapshot.status.imported:
            self._explanation.say(
                "This run was imported: its log has answers but no "
                "timeline. Their summary is below."
            )
            return
        if self._history is None:
            self._caption.say(self._failing or "the log is being read")
            return
        charted = ChartedHistory(
            history=self._history,
            cursor=self._cursor.position(self._history),
            is_priced=snapshot.status.cost_usd is not None,
        )
        if charted != self._charted:
            self._charted = charted
            for panel in self._charts.values():
                panel.show(charted)
        room = self.size.width - 2
        self._figures.say(figures(charted, room))
        # what needs the user's action comes first, unless a time is selected
        has_notice = self._cursor.minute is None and snapshot.state != "finished"
        notice = sentence(snapshot) if has_notice else ""
        self._caption.say(self._failing or notice or column_caption(charted))

    def _show_age(self) -> None:
        self.set_class(self._frozen_snapshot is not None, "-frozen")
        if self._snapshot is not None:
            self._age.say(age(self._snapshot, self._frozen_snapshot))

    # Cursor

    def _put(self, cursor: TimeCursor) -> None:
        self._cursor = cursor
        self._say()

    def action_move(self, by: int) -> None:
        """Move by a column."""
        if self._history is not None:
            self._put(self._cursor.moved(self._history, by))

    def action_end(self, end: int) -> None:
        """Move to the first column, or back to the present."""
        if self._history is not None:
            past = len(self._history.columns)
            self._put(self._cursor.put(self._history, end * past))

    def action_mark(self, by: int) -> None:
        """Move to the next or previous column with a mark."""
        if self._charted is None:
            return
        position = self._charted.nearest_flag(by)
        if position is not None:
            self._put(self._cursor.put(self._charted.history, position))

    # Other keys

    def action_window(self) -> None:
        """Select the next longer window; after the whole run the shortest."""
        self._window = (self._window + 1) % len(WINDOWS)
        self._read_now()

    def action_model(self) -> None:
        """Select the next model; after the last one all of them."""
        if self._snapshot is None:
            return
        names = sorted({queue.model for queue in self._snapshot.status.queues})
        choices: list[str | None] = [None, *names]
        here = choices.index(self._model) if self._model in choices else 0
        self._model = choices[(here + 1) % len(choices)]
        self._read_now()

    def _read_now(self) -> None:
        """Read another part of the run, also while the display is frozen."""
        self._say()
        self._read()

    def action_compute(self) -> None:
        """Compute the headline, unless that is running."""
        self._headline.compute()

    def action_freeze(self) -> None:
        """Freeze the display or continue; the run is not affected."""
        self._frozen_snapshot = None if self._frozen_snapshot else self._snapshot
        self.poll()

    def action_part(self, by: int) -> None:
        """Show the next part, if there is space for one at a time."""
        self._turn_to((self._part + by) % (len(self._charts) + 1))
        self.call_after_refresh(self.poll)

    def _turn_to(self, part: int) -> None:
        self._part = part
        names = [*self._charts, _HEADLINE]
        for name, panel in (*self._charts.items(), (_HEADLINE, self._headline)):
            panel.set_class(name == names[part], "-current")
        self.set_class(names[part] == _HEADLINE, "-scores")
        self._tabs.say(
            "".join(
                f"[{name}]" if at == part else f" {name} "
                for at, name in enumerate(names)
            )
        )

    def action_back(self) -> None:
        """Go back to the run."""
        self.app.pop_screen()
