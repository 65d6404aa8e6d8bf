"""Shows one run in eight lines under the prompt, until it ends or somebody leaves.

Textual draws under the prompt on Unix only.
"""

from __future__ import annotations

from collections import Counter
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.content import Content
from textual.screen import Screen

from store.clock import Clock
from store.printable import printable
from tui.render.glyphs import Glyphs
from tui.render.layout import MUTED, Room, one_line
from tui.render.progress import stages
from tui.render.run_panels import header
from tui.render.sentences import farewell, utc
from tui.sources.run_snapshot import ReadProblem, RunSnapshot, SnapshotSource
from tui.terminal.shell import RefreshRate, TerminalApp
from tui.widgets.panel import TextBlock

LINES = 8
_AROUND = 4
"""The header's two, that of the errors and the last one."""


def brief(snapshot: RunSnapshot, room: Room) -> Content:
    """The header, the stages, the errors, and how to leave."""
    middle = Room(width=room.width, height=LINES - _AROUND, glyphs=room.glyphs)
    table = stages(snapshot, middle)
    missing = middle.height - len(table.plain.split("\n"))
    last = f"q quits, the run continues · as of {utc(snapshot.now_us)[11:19]} UTC"
    return Content("\n").join(
        [
            header(snapshot, room),
            table,
            *[Content("")] * missing,
            Content(one_line(_errors(snapshot), room.width)),
            Content.styled(one_line(last, room.width), MUTED),
        ]
    )


def _errors(snapshot: RunSnapshot) -> str:
    counted: Counter[str] = Counter()
    for error in snapshot.facts.errors:
        counted[error.error] += error.n
    if not counted:
        return "no attempt has failed"
    # most frequent first, and by name where they are as frequent
    ordered = sorted(
        counted.items(), key=lambda name_count: (-name_count[1], name_count[0])
    )
    return "failed attempts: " + " · ".join(f"{name} {n:,}" for name, n in ordered)


class InlineScreen(Screen[None]):
    """Eight lines about a run."""

    def __init__(self, source: SnapshotSource, glyphs: Glyphs) -> None:
        super().__init__()
        self._source = source
        self._glyphs = glyphs
        self._brief = TextBlock("brief", glyphs)
        self.snapshot: RunSnapshot | None = None  #: what was seen last

    def compose(self) -> ComposeResult:
        """Nothing but the lines."""
        yield self._brief

    def on_unmount(self) -> None:
        """Let go of the log."""
        self._source.close()

    def on_resize(self) -> None:
        """Lines are as long as the terminal is wide."""
        self.poll()

    def poll(self) -> None:
        """Look, and leave when there is nothing more to see."""
        snapshot = self._source.poll()
        if isinstance(snapshot, ReadProblem):
            self.app.exit(return_code=1, message=printable(f"{snapshot.sentence}."))
            return
        self.snapshot = snapshot
        room = Room(width=self.size.width, height=LINES, glyphs=self._glyphs)
        self._brief.say(brief(snapshot, room))
        if snapshot.is_ended:
            # once the last figures are on the screen, where they stay
            self.call_after_refresh(self.app.exit, "")


class InlineMonitor(TerminalApp):
    """Watches one run without taking the terminal away."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,escape", "detach", "Detach", id="inline.detach")
    ]
    ENABLE_COMMAND_PALETTE = False

    def __init__(
        self,
        source: SnapshotSource,
        clock: Clock,
        *,
        glyphs: Glyphs,
        theme: str,
        pace: RefreshRate | None = None,
    ) -> None:
        """A monitor that has not begun.

        Args:
            source: looks at the run.
            clock: what looks and frames are timed by.
            glyphs: the signs that the terminal can show.
            theme: its colours.
            pace: how often to look; None: as usual.
        """
        super().__init__(clock, glyphs=glyphs, theme=theme, pace=pace, has_mouse=False)
        self._inline_screen = InlineScreen(source, glyphs)

    def on_mount(self) -> None:
        """Show the run."""
        self.push_screen(self._inline_screen)

    def action_detach(self) -> None:
        """Leave; say once that the run does not."""
        self.exit(farewell(self._inline_screen.snapshot))
