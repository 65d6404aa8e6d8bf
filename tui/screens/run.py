"""One run: its header, and panels that the style sheet arranges by size."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.message import Message
from textual.screen import Screen

from store.printable import printable
from tui.drawing.glyphs import Glyphs
from tui.drawing.run.header import header
from tui.drawing.run.panels import LEFT, OVERVIEW, PARTS, RIGHT
from tui.drawing.words import age
from tui.sources.run import Source
from tui.sources.sight import Snapshot, Trouble
from tui.widgets.key_line import KeyLine
from tui.widgets.panel import TextBlock, TitledPanel, TooSmall
from tui.widgets.row_panel import RowPanel


class RunScreen(Screen[None]):
    """Shows what a source sees; keeps it still while it is frozen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "freeze", "Freeze", id="freeze"),
        Binding("tab", "part(1)", "Panel", id="next-panel"),
        Binding("shift+tab", "part(-1)", "Previous panel", show=False, id="previous"),
        Binding("ctrl+o", "jump", "Jump to a panel", show=False, id="jump"),
        Binding("j,down", "move(1)", "Down", show=False, id="move.down"),
        Binding("k,up", "move(-1)", "Up", show=False, id="move.up"),
        Binding("g", "move(-1000)", "First", show=False, id="move.first"),
        Binding("G", "move(1000)", "Last", show=False, id="move.last"),
        Binding("enter,l,right", "open", "Tasks of the row", show=False, id="open"),
        Binding("escape,h,left", "app.runs", "Runs", id="back"),
    ]

    class TasksWanted(Message):
        """Tasks are to be listed, those that a filter lets through."""

        def __init__(self, expression: str) -> None:
            super().__init__()
            self.expression = expression

    def __init__(
        self, source: Source, glyphs: Glyphs, *, is_read_only: bool = True
    ) -> None:
        super().__init__()
        self._source = source
        self._glyphs = glyphs
        self._is_read_only = is_read_only
        self._held: Snapshot | None = None  # what is shown while frozen
        self._last: Snapshot | None = None
        self._part = 0
        self._is_jumping = False
        self._header = TitledPanel(header, "", glyphs, "header")
        self._panels = {part.name: RowPanel(part, glyphs) for part in PARTS}
        self._tabs, self._trouble, self._age = (
            TextBlock(name, glyphs) for name in ("tabs", "trouble", "age")
        )
        self.set_class(bool(glyphs.plain), "-ascii")

    def compose(self) -> ComposeResult:
        """A header, the panels, the keys."""
        yield self._header
        yield self._tabs
        yield self._trouble
        yield TooSmall(self._glyphs)
        with Container(id="body"):
            yield self._panels[OVERVIEW.name]
            with Container(id="left"):
                yield from (self._panels[part.name] for part in LEFT)
            with Container(id="right"):
                yield from (self._panels[part.name] for part in RIGHT)
        yield self._age
        yield KeyLine(self._glyphs)

    def on_mount(self) -> None:
        """The first of the parts is in front."""
        self._turn_to(0)

    def on_unmount(self) -> None:
        """Let go of the log."""
        self._source.close()

    def on_screen_resume(self, event: events.ScreenResume) -> None:
        """What was missed while another screen was in front."""
        del event
        self.look()

    @property
    def snapshot(self) -> Snapshot | None:
        """What was seen last."""
        return self._last

    def look(self) -> None:
        """Look, and show what has changed."""
        sight = self._source.look()
        self.set_class(isinstance(sight, Trouble), "-trouble")
        if isinstance(sight, Trouble):
            self._trouble.say(
                f"{printable(sight.sentence)}.\n\n"
                "Leave with q, or go to all runs with 1."
            )
            return
        if self._last is None or self._last.state != sight.state:
            self.refresh_bindings()  # another state, other things that can be asked
        before, self._last = self._last, sight
        if before is None or not sight.is_told_as(before):
            # a step of its own: keys wait for the reading or for the drawing, not both
            self.call_next(self._show, sight)

    def _show(self, sight: Snapshot) -> None:
        with self.app.batch_update():
            for panel in (self._header, *self._panels.values()):
                panel.show(self._held or sight)
            self._tell_age(sight)

    def _tell_age(self, sight: Snapshot) -> None:
        """How old what is shown is, and whether nothing can be asked from here."""
        self.set_class(self._held is not None, "-frozen")
        mode = "read-only · " if self._is_read_only and self._held is None else ""
        self._age.say(f"{mode}{age(sight, self._held)}")

    def action_freeze(self) -> None:
        """Hold what is shown, or go on; the run and the looks at it go on anyhow."""
        self._held = None if self._held else self._last
        if self._last is not None:
            self._show(self._last)

    def action_part(self, by: int) -> None:
        """The next panel takes the keys; on a small screen it is the one shown."""
        self._turn_to((self._part + by) % len(PARTS))

    def action_jump(self) -> None:
        """Show the letter of each panel; the next key leads to one."""
        self._is_jumping = True
        self._mark()

    def on_key(self, event: events.Key) -> None:
        """The letter of a panel, while they are shown; any other key ends that."""
        if not self._is_jumping:
            return
        event.stop()
        event.prevent_default()
        self._is_jumping = False
        found = [at for at, part in enumerate(PARTS) if part.letter == event.key]
        self._turn_to(found[0] if found else self._part)

    def action_move(self, by: int) -> None:
        """Move the cursor of the panel that takes the keys."""
        self._current.move(by)

    def action_open(self) -> None:
        """List the tasks that the row under the cursor is about."""
        if self._current.goal is not None:
            self.post_message(self.TasksWanted(self._current.goal))

    def on_row_panel_picked(self, message: RowPanel.Picked) -> None:
        """A panel was clicked; a second click on a row opens it."""
        self._turn_to(list(self._panels).index(message.name))
        if message.is_twice:
            self.action_open()

    @property
    def _current(self) -> RowPanel:
        return self._panels[PARTS[self._part].name]

    def _turn_to(self, part: int) -> None:
        self._part = part
        for at, panel in enumerate(self._panels.values()):
            panel.set_class(at == part, "-current")
            panel.take_keys(takes=at == part)
        self._mark()

    def _mark(self) -> None:
        """The titles, with their letters while one of them is waited for."""
        tabs = []
        for at, part in enumerate(PARTS):
            panel = self._panels[part.name]
            panel.mark(part.letter if self._is_jumping else "")
            name = f"{part.letter}:{part.name}" if self._is_jumping else part.name
            tabs.append(f"[{name}]" if at == self._part else f" {name} ")
        self._tabs.say("".join(tabs))
