"""Shows all runs of a folder, the newest first."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from store.document import plural
from store.runs import RunFolder
from tui.render.charts import bar, sparkline
from tui.render.format import amount, duration, money, percent, utc
from tui.render.glyphs import Glyphs, substitute_glyphs
from tui.render.layout import clip, joined, one_line
from tui.render.models import limited_by, names_of
from tui.render.run_panels import state_of
from tui.render.sentences import ending, sentence, spent
from tui.sources.run_list import ListedRun, RunListSource
from tui.sources.run_snapshot import ReadProblem, RunSnapshot
from tui.widgets.keys import KeyLine
from tui.widgets.panel import TextBlock, TooSmall, laid_out

MIDDLE, WIDE, WIDEST, LARGE = 98, 116, 150, 180
"""Screen widths from which more is shown: the rate; the job; budget, start and a bar;
the models and a sparkline."""
_CURSOR, _STATE, _NAME, _DONE, _RATE = 2, 13, 40, 9, 9
_SPENT, _COST, _END = 10, 19, 17
_BAR, _SPARKLINE, _JOB, _STARTED, _MODELS = 12, 10, 20, 11, 24
_MOST_MODELS = 48

_STATES = (
    *("live", "quiet", "draining", "stalled", "lost", "paused", "budget_stop"),
    *("drained", "finished", "cancelled"),
)
"""In the order of the summary."""


def newest(listed_runs: Sequence[ListedRun]) -> list[ListedRun]:
    """Return runs by their start, the newest first; unread ones come last."""

    def start(listed_run: ListedRun) -> int:
        snapshot = listed_run.snapshot
        return -snapshot.created_us if isinstance(snapshot, RunSnapshot) else 1

    return sorted(listed_runs, key=start)


def matches(listed_run: ListedRun, words: str) -> bool:
    """Return whether a run's name, job, state or group contains all words."""
    snapshot = listed_run.snapshot
    searched = [listed_run.folder.run_id]
    if isinstance(snapshot, RunSnapshot):
        searched += [snapshot.status.job, snapshot.state.replace("_", " ")]
        searched += [snapshot.status.group or ""]
    text = " ".join(searched).lower()
    return all(word in text for word in words.lower().split())


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRows:
    """Layout of the list's rows: its width, and that of the longest id."""

    width: int
    longest: int
    glyphs: Glyphs

    @classmethod
    def of(
        cls, listed_runs: Sequence[ListedRun], width: int, glyphs: Glyphs
    ) -> RunRows:
        """Return the layout for the rows of one list."""
        longest = max(
            (len(listed_run.folder.run_id) for listed_run in listed_runs), default=0
        )
        return cls(width=width, longest=longest, glyphs=glyphs)

    @property
    def name(self) -> int:
        """Width of the ids, within limits."""
        others = _CURSOR + _STATE + 2 + _DONE + self.cost + 2 + _END
        for from_width, more in (
            (MIDDLE, _RATE),
            (WIDE, _JOB + 2),
            (WIDEST, _STARTED + _BAR + 4),
            (LARGE, self.models + _SPARKLINE + 4),
        ):
            others += more if self.width >= from_width else 0
        return max(8, min(_NAME, self.width - others, self.longest))

    @property
    def cost(self) -> int:
        """Width of the cost; wider for a budget."""
        return _SPENT if self.width < WIDEST else _COST

    @property
    def models(self) -> int:
        """Width of the models, which take half of the room that a large list leaves."""
        return min(_MOST_MODELS, _MODELS + max(0, self.width - LARGE) // 2)

    def header_line(self) -> str:
        """Return the column headings."""
        parts = [" " * _CURSOR, clip("state", _STATE), "  ", clip("run", self.name)]
        if self.width >= WIDE:
            parts += ["  ", clip("job", _JOB)]
        if self.width >= LARGE:
            parts += ["  ", clip("models", self.models)]
        if self.width >= WIDEST:
            parts += ["  ", clip("started", _STARTED)]
        if self.width >= WIDEST:
            parts.append(" " * (_BAR + 2))
        parts.append(clip("progress", _DONE, is_right=True))
        if self.width >= LARGE:
            parts.append(" " * (_SPARKLINE + 2))
        if self.width >= MIDDLE:
            parts.append(clip("rate/min", _RATE, is_right=True))
        parts += [clip("cost", self.cost, is_right=True), "  left"]
        return clip("".join(parts), self.width)

    def row(self, listed_run: ListedRun, *, is_current: bool) -> Content:
        """Draw one run."""
        cursor = clip(self.glyphs.cursor if is_current else "", _CURSOR)
        name = clip(listed_run.folder.run_id, self.name)
        snapshot = listed_run.snapshot
        if isinstance(snapshot, RunSnapshot):
            return self._seen(snapshot, cursor, name)
        sign = "" if snapshot is None else f"{self.glyphs.stalled} unreadable"
        line = f"{cursor}{clip(sign, _STATE)}  {name}  {_unseen(snapshot)}"
        return Content(clip(line, self.width))

    def _seen(self, seen: RunSnapshot, cursor: str, name: str) -> Content:
        share = seen.share
        state = state_of(seen, self.glyphs)
        blank = " " * max(0, _STATE - state.cell_length)
        parts: list[str | Content | tuple[str, str]] = [
            cursor,
            state,
            blank,
            "  ",
            name,
        ]
        if self.width >= WIDE:
            parts += ["  ", clip(seen.status.job, _JOB)]
        if self.width >= LARGE:
            parts += ["  ", clip(" ".join(names_of(seen).values()), self.models)]
        if self.width >= WIDEST:
            started = utc(seen.created_us)
            parts += ["  ", f"{started[5:10]} {started[11:16]}"]
            parts += ["  ", (bar(share or 0.0, _BAR, self.glyphs), "$state-done")]
        parts.append(clip(percent(share, tenths=True), _DONE, is_right=True))
        if self.width >= LARGE:
            parts += [
                "  ",
                sparkline(
                    seen.completed_by_minute[-_SPARKLINE:], _SPARKLINE, self.glyphs
                ),
            ]
        if self.width >= MIDDLE:
            parts.append(clip(amount(seen.rate), _RATE, is_right=True))
        cost = spent(seen) if self.cost == _COST else money(seen.status.cost_usd)
        parts += [clip(cost, self.cost, is_right=True), "  "]
        used = Content.assemble(*parts)
        left = max(0, self.width - used.cell_length)
        return Content.assemble(used, clip(ending(seen), left))


def about(listed_run: ListedRun, width: int) -> tuple[str, str]:
    """Describe a run beyond its row, in two lines; of the second, what fits."""
    snapshot = listed_run.snapshot
    if not isinstance(snapshot, RunSnapshot):
        return listed_run.folder.run_id, _unseen(snapshot)
    tasks = snapshot.status.tasks
    share = tasks.failed / snapshot.total_tasks if snapshot.total_tasks else None
    oldest, failure = snapshot.facts.oldest, snapshot.facts.last_failure
    limit = limited_by(snapshot)
    parts = [
        f"{plural(snapshot.progress.done, 'task')} done",
        f"{round(snapshot.progress.remaining.expected):,} remaining",
        f"failed {tasks.failed:,} ({percent(share, tenths=True)})",
        f"waiting {tasks.waiting:,}",
        *([f"oldest in flight {_ago(snapshot, oldest[0].since_us)}"] if oldest else []),
        *([f"limited by {limit}"] if limit else []),
        *([f"last error {_ago(snapshot, failure.at_us)} ago"] if failure else []),
    ]
    status = snapshot.status
    job = f"{listed_run.folder.run_id} · {status.job} {status.job_version}"
    group = snapshot.status.group and f"group {snapshot.status.group}"
    title_parts = [job, *filter(None, [group, sentence(snapshot)])]
    return " · ".join(title_parts), joined(parts, width)


def _ago(seen: RunSnapshot, at_us: int) -> str:
    return duration(seen.age_s(at_us))


def summary(listed_runs: Sequence[ListedRun]) -> str:
    """Describe the number of runs by state."""
    words = Counter(
        listed_run.snapshot.state
        if isinstance(listed_run.snapshot, RunSnapshot)
        else "unread"
        if listed_run.snapshot is None
        else "unreadable"
        for listed_run in listed_runs
    )
    states = sorted(
        words,
        key=lambda word: (
            _STATES.index(word) if word in _STATES else len(_STATES),
            word,
        ),
    )
    return " · ".join(f"{words[word]} {word.replace('_', ' ')}" for word in states)


def _unseen(problem: ReadProblem | None) -> str:
    return "not read yet" if problem is None else problem.sentence


_PADDING = 2


class RunsScreen(Screen[None]):
    """The list of runs, and two lines about the current one.

    Rows keep their positions after the cursor was moved; they are sorted again on
    request.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j", "move('down')", "Down", show=False, id="move.down"),
        Binding("k", "move('up')", "Up", show=False, id="move.up"),
        Binding("g", "move('first')", "First", show=False, id="move.first"),
        Binding("G", "move('last')", "Last", show=False, id="move.last"),
        # priority: the list has keys of these names, which the line of keys omits
        Binding(
            "enter,right",
            "open",
            "Open",
            key_display="enter",
            id="open",
            priority=True,
        ),
        # priority: of keys that arrive together, later ones are typed into the field
        Binding("slash", "find", "Find", id="filter", priority=True),
        Binding("r", "sort", "Sort again", show=False, id="refresh"),
        Binding("space", "freeze", "Freeze", show=False, id="runs.freeze"),
        Binding("escape,x", "all", "All runs", show=False, id="clear"),
    ]

    class Opened(Message):
        """A run was chosen."""

        def __init__(self, folder: RunFolder) -> None:
            super().__init__()
            self.folder = folder

    def __init__(
        self, listing: RunListSource, glyphs: Glyphs, *, is_read_only: bool = False
    ) -> None:
        super().__init__()
        self._is_read_only = is_read_only
        self._listing = listing
        self._glyphs = glyphs
        self._all: list[ListedRun] = []  # in row order
        self._visible_runs: list[ListedRun] = []  # the visible ones
        self._rendered_rows: dict[int, Content] = {}
        self._is_frozen = False  # display is frozen
        self._is_settled = False  # the cursor was moved: rows keep their positions
        self._words = ""
        self._wanted = ""  # the run on which the cursor stays until it is moved
        self._options = OptionList(id="runs", markup=False)
        self._input = Input(id="find", placeholder="name, job or state", compact=True)
        self._heading, self._columns, self._empty, self._about = (
            TextBlock(name, glyphs) for name in ("heading", "columns", "empty", "about")
        )

    def compose(self) -> ComposeResult:
        """Yield the heading, the list, details of one run, the keys."""
        yield self._heading
        yield self._input
        yield self._columns
        yield self._options
        yield self._empty
        yield TooSmall(self._glyphs)
        yield self._about
        yield KeyLine(self._glyphs)

    def on_mount(self) -> None:
        """Draw rows when they become visible."""
        self.watch(self._options, "scroll_y", self._draw, init=False)
        self._options.focus()

    @property
    def current(self) -> RunFolder | None:
        """The run under the cursor."""
        at = self._options.highlighted
        return None if at is None else self._visible_runs[at].folder

    def go_to(self, folder: RunFolder) -> None:
        """Move the cursor to a run at the next poll, or as soon as it is listed."""
        self._wanted = folder.run_id

    def on_resize(self) -> None:
        """Redraw lines for the new width."""
        self.poll()

    def on_screen_resume(self) -> None:
        """Update after another screen was in front."""
        self.poll()

    def poll(self) -> None:
        """Read and show changes."""
        with self.app.batch_update():
            if not self._is_frozen:
                self._take_in(self._listing.poll())
            self._arrange()
            self._draw()
            self._show_heading()

    def _take_in(self, listed_runs: list[ListedRun]) -> None:
        """Update the runs; rows keep their order, new ones come first."""
        if not self._is_settled:
            self._all = newest(listed_runs)
            return
        new = {listed_run.folder.run_id: listed_run for listed_run in listed_runs}
        order = [listed_run.folder.run_id for listed_run in self._all]
        known_runs = [new.pop(run_id) for run_id in order if run_id in new]
        self._all = [*new.values(), *known_runs]

    def _arrange(self) -> None:
        """Show the matching rows; the cursor stays on its run."""
        options = self._options
        at = options.highlighted
        current = "" if at is None else self._visible_runs[at].folder.run_id
        current = self._wanted or current
        order = [listed_run.folder.run_id for listed_run in self._visible_runs]
        self._visible_runs = [
            listed_run
            for listed_run in self._all
            if not self._words or matches(listed_run, self._words)
        ]
        ids = [listed_run.folder.run_id for listed_run in self._visible_runs]
        if len(ids) != len(order):
            options.clear_options()
            options.add_options(Option("") for _ in ids)
        if ids != order:
            self._rendered_rows = {}
        if ids and (ids != order or self._wanted):
            stays = current in ids and (self._is_settled or bool(self._wanted))
            options.highlighted = ids.index(current) if stays else 0

    def _draw(self) -> None:
        """Redraw changed visible lines."""
        options = self._options
        rows = RunRows.of(self._visible_runs, self.size.width - _PADDING, self._glyphs)
        first = round(options.scroll_offset.y)
        last = min(len(self._visible_runs), first + max(1, options.size.height) + 1)
        for at in range(min(first, last), last):
            is_current = at == options.highlighted
            line = substitute_glyphs(
                self._glyphs, rows.row(self._visible_runs[at], is_current=is_current)
            )
            previous_line = self._rendered_rows.get(at)
            if previous_line is None or not line.is_same(previous_line):
                self._rendered_rows[at] = line
                options.replace_option_prompt_at_index(at, line)
        self._columns.say(rows.header_line())
        current = options.highlighted
        width = self.size.width - _PADDING
        words = ("", "")
        if current is not None:
            words = about(self._visible_runs[current], width)
        if self._is_frozen:
            words = ("FROZEN: space continues", words[0])
        self._about.say("\n".join(one_line(line, width) for line in words))

    def _show_heading(self) -> None:
        folder = one_line(str(self._listing.runs_dir), 60)
        mode = "read-only" if self._is_read_only else ""
        match_count = (
            f"{len(self._visible_runs):,} of {len(self._all):,} found · x shows all · "
        )
        seen = [
            listed_run.snapshot
            for listed_run in self._all
            if isinstance(listed_run.snapshot, RunSnapshot)
        ]
        now = max((snapshot.now_us for snapshot in seen), default=None)
        as_of = "" if now is None else f"as of {utc(now)[11:19]} UTC"
        words = (
            f"RUNS  {match_count if self._words else ''}{summary(self._all)}  "
            f"in {folder}"
        )
        right = " · ".join(filter(None, (as_of, mode)))
        # never cut: age, and read-only mode
        self._heading.say(laid_out(words, right, self.size.width)[1:-1])
        self.set_class(not self._visible_runs, "-empty")
        if not self._all:
            self._empty.say(
                f"There is no run in {folder} yet. Start one with 'siftlog run "
                "JOB'; it appears here by itself. Leave with q."
            )
        elif not self._visible_runs:
            self._empty.say(
                f"No run has {one_line(self._words, 40)!r} in its name, job or state. "
                "Show all of them with esc."
            )

    def on_option_list_option_highlighted(self) -> None:
        """Move the cursor's sign, and describe the run under it."""
        current = self.current
        if current is not None and current.run_id != self._wanted:
            self._wanted = ""  # moved by a key or the mouse
        self._draw()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Open the selected run, on which the cursor then stays."""
        self._is_settled = True
        self.post_message(self.Opened(self._visible_runs[event.option_index].folder))

    def action_open(self) -> None:
        """Open the run under the cursor."""
        self._options.action_select()

    def action_move(self, direction: str) -> None:
        """Move the cursor."""
        self._is_settled, self._wanted = True, ""
        options = self._options
        moves = {
            "down": options.action_cursor_down,
            "up": options.action_cursor_up,
            "first": options.action_first,
            "last": options.action_last,
        }
        moves[direction]()

    def action_sort(self) -> None:
        """Sort again: the newest run first."""
        self._is_settled = False
        self.poll()
        self._is_settled = True

    def action_freeze(self) -> None:
        """Freeze the display or continue; the runs are not affected."""
        self._is_frozen = not self._is_frozen
        self.set_class(self._is_frozen, "-frozen")
        self.poll()

    def action_find(self) -> None:
        """Filter runs by words in their name, job or state."""
        self.add_class("-finding")
        self.set_focus(self._input)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Let the field receive its keys."""
        del parameters
        return action not in {"find", "open"} or self.focused is not self._input

    def on_input_changed(self, event: Input.Changed) -> None:
        """Filter by the new words."""
        self._words = event.value
        self.poll()

    def on_input_submitted(self) -> None:
        """Keep the words; focus the list."""
        self._options.focus()

    def action_all(self) -> None:
        """Show all runs again."""
        self._input.value = ""
        self.remove_class("-finding")
        self._options.focus()
