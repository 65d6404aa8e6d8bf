"""Shows one run: its header, and panels that the style sheet arranges by size."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.events import Click, MouseEvent, MouseScrollDown, MouseScrollUp
from textual.message import Message
from textual.screen import Screen

from store.printable import printable
from tui.render.errors import problem_filter
from tui.render.glyphs import Glyphs
from tui.render.layout import LEAD, Room, shared_lines, visible
from tui.render.run_panels import (
    ENDINGS,
    LEFT,
    OVERVIEW,
    RIGHT,
    RUN_PANELS,
    RunPanel,
    header,
    panels_of,
)
from tui.render.sentences import age
from tui.sources.run_snapshot import ReadProblem, RunSnapshot, SnapshotSource
from tui.widgets.headline import HeadlinePanel
from tui.widgets.keys import KeyLine
from tui.widgets.panel import Ground, TextBlock, TitledPanel, TooSmall

_BORDER = 2
"""Lines of a panel's border."""
LEAST_TABLE, LEAST_CHART = 5, 7
"""Minimum lines of a panel with its border."""


class RowPanel(TitledPanel[RunSnapshot]):
    """A panel of the Run screen.

    A cursor follows one of its rows when their order changes; it is visible while the
    panel has the focus.
    """

    class Picked(Message):
        """A row was clicked, or the panel outside its rows."""

        def __init__(self, name: str, *, is_twice: bool) -> None:
            super().__init__()
            self.name = name
            self.is_twice = is_twice

    def __init__(self, part: RunPanel, glyphs: Glyphs) -> None:
        super().__init__(part.draw, part.title, glyphs, part.name)
        self._part = part
        self._goals: Sequence[str] = ()
        self._at = 0
        self._has_keys = False
        self._lines: int | None = None  # height

    @property
    def goal(self) -> str | None:
        """The filter of the row under the cursor; None: no row."""
        return self._goals[self._at] if self._goals else None

    def show(self, seen: RunSnapshot) -> None:
        """Draw a snapshot; the cursor stays on its row."""
        goal, self._goals = self.goal, self._part.goals(seen)
        if goal in self._goals:
            self._at = self._goals.index(goal)
        self._at = max(0, min(self._at, len(self._goals) - 1))
        super().show(seen)

    def least(self, most: int | None, column: int) -> int:
        """Return its minimum height in a column of some lines.

        Args:
            most: the height of all its content.
            column: lines of the column.
        """
        if most is None:
            return LEAST_CHART
        return min(most, 2 * column // 3 if self._part in ENDINGS else LEAST_TABLE)

    @property
    def drops(self) -> int:
        """Whether it is dropped where lines are scarce, the highest first; 0: never."""
        return self._part.drops

    def most(self, seen: RunSnapshot) -> int | None:
        """Return the height of all its content; None: it takes any height."""
        lines = self._part.height(seen) if self._part.height else None
        return None if lines is None else lines + _BORDER

    def take_lines(self, lines: int) -> None:
        """Set the height; 0 hides the panel."""
        if lines != self._lines:
            self._lines = lines
            self.set_class(lines == 0, "-dropped")
            self.styles.height = lines

    def take_keys(self, *, takes: bool) -> None:
        """Show or hide the cursor."""
        self._has_keys = takes
        self._fit()

    def move(self, by: int) -> None:
        """Move the cursor by some rows, within limits."""
        self._at = max(0, min(self._at + by, len(self._goals) - 1))
        self._fit()

    def mark(self, letter: str) -> None:
        """Show the jump letter, or none."""
        title = self._part.title
        self.border_title = Content(f"[{letter}] {title}" if letter else title)

    def on_click(self, event: Click) -> None:
        """Move the cursor to the clicked row."""
        line = event.get_content_offset(self)
        if line is not None and line.y and self._goals:
            visible_rows = visible(len(self._goals), self._room())
            self._at = visible_rows[min(line.y, len(visible_rows)) - 1]
        self.post_message(self.Picked(self._part.name, is_twice=event.chain > 1))

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        """Move the cursor, and with it the visible rows."""
        self._wheel(event, 1)

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """Move the cursor, and with it the visible rows."""
        self._wheel(event, -1)

    def _wheel(self, event: MouseEvent, by: int) -> None:
        event.stop()
        self.post_message(self.Picked(self._part.name, is_twice=False))
        self.move(by)

    def _room(self) -> Room:
        width, height = self.content_size
        cursor = self._at if self._has_keys and self._goals else None
        return Room(
            width=max(0, width - LEAD),
            height=height,
            glyphs=self._glyphs,
            has_lead=True,
            cursor=cursor,
        )

    def _fit(self) -> None:
        room = self._room()
        if self._value is not None and room.width and room.height:
            self.say(self._draw(self._value, room))


LEFT_COLUMN = (*ENDINGS, *LEFT)
ROOMY = 160
"""Width from which the metrics so far have room."""
_MOST_METRICS = 20
"""Maximum lines of the metrics so far, with their border."""
_FIRST_KEYS = ("tasks", "problems", "pause", "limits", "next-panel", "events", "retry")
"""Keys that a narrow line shows, too: what leads further, and control."""


class RunScreen(Screen[None]):
    """Shows a run, or a frozen snapshot of it."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding(
            "p",
            "problems",
            "Problems",
            tooltip="Tasks with errors or rejected replies, else the wrong ones",
            id="problems",
        ),
        Binding("space", "freeze", "Freeze", id="freeze"),
        Binding("tab", "part(1)", "Panel", id="next-panel"),
        Binding("shift+tab", "part(-1)", "Previous panel", show=False, id="previous"),
        Binding("ctrl+o", "jump", "Jump to a panel", show=False, id="jump"),
        Binding("j,down", "move(1)", "Down", show=False, id="move.down"),
        Binding("k,up", "move(-1)", "Up", show=False, id="move.up"),
        Binding("g", "move(-1000)", "First", show=False, id="move.first"),
        Binding("G", "move(1000)", "Last", show=False, id="move.last"),
        Binding("enter,right", "open", "Tasks of the row", show=False, id="open"),
        Binding("escape,h,left", "app.runs", "Runs", id="back"),
    ]

    class TasksRequested(Message):
        """Requests the list of tasks that match a filter."""

        def __init__(self, expression: str) -> None:
            super().__init__()
            self.expression = expression

    def __init__(
        self,
        source: SnapshotSource,
        glyphs: Glyphs,
        *,
        is_read_only: bool = True,
        headline: HeadlinePanel | None = None,
    ) -> None:
        """Create the screen.

        Args:
            source: the run; closed with the screen.
            glyphs: the characters that the terminal supports.
            is_read_only: whether no commands can be sent.
            headline: the metrics so far, shown where there is room; None: none.
        """
        super().__init__()
        self._headline = headline
        self._source = source
        self._glyphs = glyphs
        self._is_read_only = is_read_only
        self._frozen_snapshot: RunSnapshot | None = None  # shown while frozen
        self._last: RunSnapshot | None = None
        self._part = 0
        self._body = Ground(id="body")
        self._parts = list(RUN_PANELS)  # those that the run has
        self._is_jumping = False
        draw = partial(header, is_read_only=is_read_only)
        self._header = TitledPanel(draw, "", glyphs, "header")
        self._panels = {part.name: RowPanel(part, glyphs) for part in RUN_PANELS}
        self._tabs, self._problem, self._age = (
            TextBlock(name, glyphs) for name in ("tabs", "trouble", "age")
        )
        self.set_class(bool(glyphs.plain), "-ascii")

    def compose(self) -> ComposeResult:
        """Yield the header, the panels, the keys."""
        yield self._header
        yield self._tabs
        yield self._problem
        yield TooSmall(self._glyphs)
        with self._body:
            yield self._panels[OVERVIEW.name]
            with Ground(id="left"):
                yield from (self._panels[part.name] for part in LEFT_COLUMN)
            with Ground(id="right"):
                if self._headline is not None:
                    yield self._headline
                yield from (self._panels[part.name] for part in RIGHT)
        yield self._age
        yield KeyLine(self._glyphs, _FIRST_KEYS)

    def on_mount(self) -> None:
        """Show the first part."""
        self._turn_to(0)

    def on_unmount(self) -> None:
        """Close the log."""
        self._source.close()

    def on_screen_resume(self, event: events.ScreenResume) -> None:
        """Update after another screen was in front."""
        del event
        self.poll()

    @property
    def snapshot(self) -> RunSnapshot | None:
        """The latest snapshot."""
        return self._last

    def poll(self) -> None:
        """Read and show changes."""
        snapshot = self._source.poll()
        self.set_class(isinstance(snapshot, ReadProblem), "-trouble")
        if isinstance(snapshot, ReadProblem):
            self._problem.say(
                f"{printable(snapshot.sentence)}.\n\n"
                "Leave with q, or go to all runs with 1."
            )
            return
        if self._last is None or self._last.state != snapshot.state:
            self.refresh_bindings()  # the possible commands depend on the state
        before, self._last = self._last, snapshot
        if before is None or not snapshot.is_same_as(before):
            # a separate step: keys wait for the read or for the drawing, not both
            self.call_next(self._show, snapshot)

    async def _show(self, snapshot: RunSnapshot) -> None:
        seen = self._frozen_snapshot or snapshot
        self._arrange(seen)
        self._share_lines()
        self._show_age(snapshot)
        with self.app.batch_update():  # one frame for all of them
            for panel in (self._header, *self._panels.values()):
                # in a step of the loop of its own: keys wait for one panel, not for all
                panel.show(seen)
                await asyncio.sleep(0)
            await asyncio.sleep(0)  # the last one has announced its change

    def _arrange(self, snapshot: RunSnapshot) -> None:
        """Show the panels that the run has; the end of one opens its result."""
        parts = panels_of(snapshot)
        if parts == self._parts:
            return
        self._parts = parts
        for panel in RUN_PANELS:
            self._panels[panel.name].set_class(panel not in parts, "-absent")
        self._turn_to(0)

    def on_resize(self, event: events.Resize) -> None:
        """Share the lines of the new size."""
        del event
        self.call_after_refresh(self._share_lines)

    def _share_lines(self) -> None:
        """Give each panel the lines that its content takes, and charts the rest."""
        snapshot = self._frozen_snapshot or self._last
        if snapshot is None:
            return
        is_small = self.has_class("-small")
        height = self._body.size.height
        of_headline = self._headline_lines(snapshot)
        for column, taken in ((LEFT_COLUMN, 0), (RIGHT, of_headline)):
            panels = [self._panels[p.name] for p in column if p in self._parts]
            # one at a time is as high as all together
            lines = [height] * len(panels)
            if not is_small:
                most = [panel.most(snapshot) for panel in panels]
                least = [p.least(m, height) for p, m in zip(panels, most, strict=True)]
                drops = [panel.drops for panel in panels]
                lines = shared_lines(height - taken, least, most, drops)
            for panel, n in zip(panels, lines, strict=True):
                panel.take_lines(n)

    def _headline_lines(self, snapshot: RunSnapshot) -> int:
        """Return the height of the metrics so far; 0: they are not shown.

        They are computed now and then while a run is live; an ended one has a result.
        """
        panel = self._headline
        if panel is None:
            return 0
        is_live = not snapshot.is_ended and bool(snapshot.status.tasks.completed)
        is_visible = is_live and self.size.width >= ROOMY
        panel.set_class(not is_visible, "-absent")
        if not is_visible:
            return 0
        if self._frozen_snapshot is None:
            panel.poll(snapshot.ended)
            panel.redraw()  # their age grows
        seen = panel.headline
        # the source and its line, the columns' titles, and a note
        lines = _BORDER + 1 + (2 + len(seen.metrics) if seen is not None else 0)
        lines = min(lines, _MOST_METRICS, self._body.size.height // 2)
        panel.styles.height = lines
        return lines

    def _show_age(self, snapshot: RunSnapshot) -> None:
        """Show the age of the displayed data, and whether the screen is read-only."""
        self.set_class(self._frozen_snapshot is not None, "-frozen")
        mode = (
            "read-only · "
            if self._is_read_only and self._frozen_snapshot is None
            else ""
        )
        self._age.say(f"{mode}{age(snapshot, self._frozen_snapshot)}")

    def action_freeze(self) -> None:
        """Freeze the display or continue; polling continues."""
        self._frozen_snapshot = None if self._frozen_snapshot else self._last
        if self._last is not None:
            self.call_next(self._show, self._last)

    def action_part(self, by: int) -> None:
        """Focus the next panel that has rows; on a small screen, show the next one."""
        n = len(self._parts)
        order = [(self._part + by * step) % n for step in range(1, n + 1)]
        is_small = self.has_class("-small")
        self._turn_to(next((at for at in order if is_small or self._has_rows(at)), 0))

    def _has_rows(self, part: int) -> bool:
        panel = self._panels[self._parts[part].name]
        return panel.goal is not None and not panel.has_class("-dropped")

    def action_jump(self) -> None:
        """Show the letter of each panel; the next key selects one."""
        self._is_jumping = True
        self._mark()

    def on_key(self, event: events.Key) -> None:
        """Select a panel by its letter; any other key cancels."""
        if not self._is_jumping:
            return
        event.stop()
        event.prevent_default()
        self._is_jumping = False
        positions = [
            at for at, part in enumerate(self._parts) if part.letter == event.key
        ]
        self._turn_to(positions[0] if positions else self._part)

    def action_move(self, by: int) -> None:
        """Move the cursor of the focused panel."""
        self._current.move(by)

    def action_open(self) -> None:
        """List the tasks of the row under the cursor."""
        if self._current.goal is not None:
            self.post_message(self.TasksRequested(self._current.goal))

    def action_problems(self) -> None:
        """List the tasks that need a look."""
        if self._last is not None:
            self.post_message(self.TasksRequested(problem_filter(self._last)))

    def on_row_panel_picked(self, message: RowPanel.Picked) -> None:
        """Focus the clicked panel; a second click on a row opens it."""
        names = [part.name for part in self._parts]
        self._turn_to(names.index(message.name))
        if message.is_twice:
            self.action_open()

    @property
    def _current(self) -> RowPanel:
        return self._panels[self._parts[self._part].name]

    def _turn_to(self, part: int) -> None:
        self._part = part
        for panel in self._panels.values():
            panel.set_class(panel is self._current, "-current")
            panel.take_keys(takes=panel is self._current)
        self._mark()

    def _mark(self) -> None:
        """Draw the titles, with letters while a jump key is expected."""
        tabs = []
        for at, part in enumerate(self._parts):
            panel = self._panels[part.name]
            panel.mark(part.letter if self._is_jumping else "")
            name = f"{part.letter}:{part.name}" if self._is_jumping else part.name
            tabs.append(f"[{name}]" if at == self._part else f" {name} ")
        self._tabs.say(f"tab {''.join(tabs)}")
