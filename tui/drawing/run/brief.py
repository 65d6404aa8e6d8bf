"""A run in eight lines, for a monitor that stays under the prompt."""

from __future__ import annotations

from collections import Counter

from textual.content import Content

from tui.drawing.clip import one_line
from tui.drawing.room import MUTED, Room
from tui.drawing.run.header import header
from tui.drawing.run.stages import stages
from tui.drawing.words import utc
from tui.sources.sight import Snapshot

LINES = 8
_AROUND = 4
"""The header's two, that of the errors and the last one."""


def brief(snapshot: Snapshot, room: Room) -> Content:
    """The header, the stages, the errors, and how to leave."""
    middle = Room(width=room.width, height=LINES - _AROUND, glyphs=room.glyphs)
    table = stages(snapshot, middle)
    missing = middle.height - len(table.plain.split("\n"))
    last = f"q leaves, the run goes on · as of {utc(snapshot.now_us)[11:19]} UTC"
    return Content("\n").join(
        [
            header(snapshot, room),
            table,
            *[Content("")] * missing,
            Content(one_line(_errors(snapshot), room.width)),
            Content.styled(one_line(last, room.width), MUTED),
        ]
    )


def _errors(snapshot: Snapshot) -> str:
    counted: Counter[str] = Counter()
    for error in snapshot.facts.errors:
        counted[error.error] += error.n
    if not counted:
        return "no attempt has failed"
    # most frequent first, and by name where they are as frequent
    ordered = sorted(counted.items(), key=lambda each: (-each[1], each[0]))
    return "failed attempts: " + " · ".join(f"{name} {n:,}" for name, n in ordered)
