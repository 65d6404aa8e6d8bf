"""Shows one run in eight lines under the prompt, until it ends or the user quits.

Textual supports this on Unix only.
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
from tui.render.format import utc
from tui.render.glyphs import Glyphs
from tui.render.layout import MUTED, Room, one_line
from tui.render.progress import stages
from tui.render.run_panels import header
from tui.render.sentences import farewell
from tui.sources.run_snapshot import ReadProblem, RunSnapshot, SnapshotSource
from tui.terminal.shell import RefreshRate, TerminalApp
from tui.widgets.panel import TextBlock

LINES = 8
_AROUND = 5
"""Lines of the header (three), the errors and the footer."""


def brief(snapshot: RunSnapshot, room: Room) -> Content:
    """Draw the header, the stages, the errors, and how to quit."""
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
    # most frequent first, ties by name
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
        self.snapshot: RunSnapshot | None = None  #: the last snapshot

    def compose(self) -> ComposeResult:
        """Yield the lines."""
        yield self._brief

    def on_unmount(self) -> None:
        """Close the log."""
        self._source.close()

    def on_resize(self) -> None:
        """Redraw lines for the new width."""
        self.poll()

    def poll(self) -> None:
        """Refresh, and quit when the run has ended."""
        snapshot = self._source.poll()
        if isinstance(snapshot, ReadProblem):
            self.app.exit(return_code=1, message=printable(f"{snapshot.sentence}."))
            return
        self.snapshot = snapshot
        room = Room(width=self.size.width, height=LINES, glyphs=self._glyphs)
        self._brief.say(brief(snapshot, room))
        if snapshot.is_ended:
            # after the last figures were drawn, which stay on the terminal
            self.call_after_refresh(self.app.exit, "")


class InlineMonitor(TerminalApp):
    """Watches one run without using the whole terminal."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,escape", "detach", "Quit", id="inline.detach")
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
        """Create the monitor.

        Args:
            source: reads the run.
            clock: measures refreshes and frames.
            glyphs: the characters that the terminal supports.
            theme: its theme.
            pace: the refresh rate; None: the default.
        """
        super().__init__(clock, glyphs=glyphs, theme=theme, pace=pace, has_mouse=False)
        self._inline_screen = InlineScreen(source, glyphs)

    def on_mount(self) -> None:
        """Show the run."""
        self.push_screen(self._inline_screen)

    def action_detach(self) -> None:
        """Quit; show that the run continues."""
        self.exit(farewell(self._inline_screen.snapshot))
