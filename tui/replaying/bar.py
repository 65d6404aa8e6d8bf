"""The line above every screen of a replay: that it is one, when, and how fast."""

from __future__ import annotations

from textual import events
from textual.content import Content

from store.printable import printable
from tui.drawing.format import count, percent
from tui.drawing.glyphs import Glyphs
from tui.drawing.words import utc
from tui.replaying.playhead import speed_told
from tui.replaying.replay import Replay
from tui.widgets.panel import TextBlock


class ReplayBar(TextBlock):
    """Says where a replay stands."""

    DEFAULT_CSS = """
    ReplayBar {
      dock: top; height: 1; padding: 0 1;
      background: $state-waiting; color: $background; text-style: bold;
    }
    """

    def __init__(self, replay: Replay, glyphs: Glyphs) -> None:
        super().__init__("replay", glyphs)
        self._replay = replay

    def on_mount(self) -> None:
        """Begin to say it."""
        self.tell()

    def on_resize(self, event: events.Resize) -> None:
        """Lines are as long as the terminal is wide."""
        del event
        self.tell()

    def tell(self) -> None:
        """Where it stands now."""
        self.say(Content(printable(replay_line(self._replay))))


def replay_line(replay: Replay) -> str:
    """How a replay goes, and where in its log it is."""
    span, at_us = replay.playhead.span, replay.moment.at_us
    whole_us = span.end_us - span.begin_us
    share = (at_us - span.begin_us) / whole_us if whole_us else 1.0
    return (
        f"REPLAY {_going(replay)} · {utc(at_us)} · {percent(share)} · "
        f"event {count(replay.moment.seq)} of {count(replay.reel.last)}"
    )


def _going(replay: Replay) -> str:
    if replay.failure:
        return f"stopped: {replay.failure}"
    speed = speed_told(replay.playhead.speed)
    if replay.is_seeking:
        return "seeking"
    if replay.is_over:
        return "at the end"
    return f"paused ({speed})" if replay.playhead.is_paused else speed
