"""One run: its header, and panels that the style sheet arranges by size."""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.message import Message
from textual.screen import Screen
from textual.widgets import Footer

from store.estimates import US_PER_S
from store.printable import printable
from tui.drawing import panels
from tui.drawing.format import count, duration
from tui.drawing.glyphs import Glyphs
from tui.drawing.header import header
from tui.drawing.words import utc
from tui.sources.run import Snapshot, Source, Trouble
from tui.widgets.panel import Panel, Said, TooSmall

#: Name, title and drawing, in the order of the keys that lead through them. Where the
#: screen is small, one of them is shown at a time; "overview" only there.
_PARTS: tuple[tuple[str, str, panels.Draw], ...] = (
    ("overview", "overview", panels.overview),
    ("stages", "stages", panels.stages),
    ("models", "models, last full minute", panels.models),
    ("errors", "failed attempts, whole run", panels.errors),
    ("goodput", "completed a minute, last hour", panels.goodput),
    ("latency", "latency, whole run", panels.latencies),
    ("cost", "cost", panels.cost),
    ("oldest", "oldest in flight", panels.oldest),
)
_LEFT = ("stages", "models", "errors")


class RunScreen(Screen[None]):
    """Shows what a source sees; keeps it still while it is frozen."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("space", "freeze", "Freeze", id="freeze"),
        Binding("tab", "part(1)", "Next panel", id="next-panel"),
        Binding("shift+tab", "part(-1)", "Previous panel", show=False, id="previous"),
        Binding("escape", "app.runs", "Runs", id="back"),
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
        self._header = Panel(header, "", glyphs, "header")
        self._panels = {
            name: Panel(draw, title, glyphs, name) for name, title, draw in _PARTS
        }
        self._tabs, self._trouble, self._age = (
            Said(name, glyphs) for name in ("tabs", "trouble", "age")
        )
        self.set_class(bool(glyphs.plain), "-ascii")

    def compose(self) -> ComposeResult:
        """A header, the panels, the keys."""
        yield self._header
        yield self._tabs
        yield self._trouble
        yield TooSmall(self._glyphs)
        with Container(id="body"):
            yield self._panels["overview"]
            with Container(id="left"):
                yield from (self._panels[name] for name in _LEFT)
            with Container(id="right"):
                yield from (
                    panel
                    for name, panel in self._panels.items()
                    if name not in {"overview", *_LEFT}
                )
        yield self._age
        yield Footer(show_command_palette=False)

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
                "Leave with q, or go to all runs with escape."
            )
            return
        if self._last is None or self._last.state != sight.state:
            self.refresh_bindings()  # another state, other things that can be asked
        before, self._last = self._last, sight
        if before is None or not sight.is_told_as(before):
            self._show(sight)

    def _show(self, sight: Snapshot) -> None:
        with self.app.batch_update():
            for panel in (self._header, *self._panels.values()):
                panel.show(self._held or sight)
            self._tell_age(sight)

    def _tell_age(self, sight: Snapshot) -> None:
        """How old what is shown is, and whether nothing can be asked from here."""
        held = self._held
        self.set_class(held is not None, "-frozen")
        if held is None:
            seen = f"event {count(sight.status.last_seq)}"
            mode = "read-only · " if self._is_read_only else ""
            self._age.say(f"{mode}{seen} · as of {utc(sight.now_us)[11:19]} UTC")
            return
        seconds = (sight.now_us - held.now_us) / US_PER_S
        missed = sight.status.last_seq - held.status.last_seq
        self._age.say(
            f"FROZEN {duration(seconds)}, {missed:,} events since: space goes on"
        )

    def action_freeze(self) -> None:
        """Hold what is shown, or go on; the run and the looks at it go on anyhow."""
        self._held = None if self._held else self._last
        if self._last is not None:
            self._show(self._last)

    def action_part(self, by: int) -> None:
        """The next part, where there is room for one at a time."""
        self._turn_to((self._part + by) % len(_PARTS))

    def _turn_to(self, part: int) -> None:
        self._part = part
        names = list(self._panels)
        for name, panel in self._panels.items():
            panel.set_class(name == names[part], "-current")
        self._tabs.say(
            "".join(
                f"[{name}]" if at == part else f" {name} "
                for at, name in enumerate(names)
            )
        )
