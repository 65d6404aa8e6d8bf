"""The two lines above a run: is it alive, when does it end, what does it cost."""

from __future__ import annotations

from textual.content import Content

from store.task import TaskState
from tui.drawing.clip import one_line
from tui.drawing.format import amount, duration, percent
from tui.drawing.glyphs import Glyphs
from tui.drawing.room import Room
from tui.drawing.run.models import limited_by
from tui.drawing.words import eta, sentence, spent
from tui.sources.sight import ENDED, Snapshot

DOT = " · "
WIDE = 110
"""Columns from which on the job stands beside the run."""
#: Style of a state's word; the others are as running.
_STYLES = {
    "finished": "$state-done",
    "stalled": "$state-failed bold",
    "lost": "$state-failed bold",
    "budget_stop": "$state-waiting bold",
    "paused": "$state-waiting bold",
    "quiet": "$state-waiting",
    "draining": "$state-waiting",
}


#: What a person may do next where the sentence names no command.
_NEXT = {
    "quiet": "1 lists the other runs",
    "stalled": "t lists the tasks, e the events",
    "draining": "q leaves it to end",
    "cancelled": "t lists the tasks",
    "finished": "t lists the tasks",
}


def sign_of(state: str, glyphs: Glyphs) -> str:
    """The glyph of a run's state."""
    if state in {"stalled", "lost", "budget_stop"}:
        return glyphs.stalled
    if state in {"paused", "draining", "drained", "cancelled"}:
        return glyphs.paused
    done = TaskState.COMPLETED if state == "finished" else TaskState.RUNNING
    return glyphs.states[done]


def state_of(snapshot: Snapshot, glyphs: Glyphs) -> Content:
    """A run's state: a sign, a word, and a colour."""
    state = snapshot.state
    word = f"{sign_of(state, glyphs)} {state.replace('_', ' ')}"
    return Content.styled(word, _STYLES.get(state, "$state-running bold"))


def header(snapshot: Snapshot, room: Room) -> Content:
    """Both lines; the second says what a person may have to act upon."""
    status = snapshot.status
    beat = snapshot.heartbeat_s
    share = snapshot.ended / snapshot.asked if snapshot.asked else None
    alive = (
        ""
        if snapshot.state in ENDED or beat is None
        else f" (heartbeat {duration(beat)})"
    )
    name = one_line(status.run_id, max(12, room.width // 3))
    job = f" · {status.job} {status.job_version}" if room.width >= WIDE else ""
    first = Content.assemble(
        (name, "bold"),
        one_line(job, room.width // 4),
        "  ",
        state_of(snapshot, room.glyphs),
        f"{alive}  {percent(share, tenths=True)}",
        f"  ETA {eta(snapshot)}" if snapshot.state not in ENDED else "",
    )
    return Content("\n").join(
        [first.truncate(room.width, ellipsis=True), _second(snapshot, room)]
    )


def _second(snapshot: Snapshot, room: Room) -> Content:
    said = sentence(snapshot)
    if said:
        key = _NEXT.get(snapshot.state, "")
        if key and len(said) + len(key) + len(DOT) <= room.width:
            said = f"{said}{DOT}{key}"
        return Content.styled(one_line(said, room.width), "$state-waiting")
    held = limited_by(snapshot)
    share = snapshot.of_best
    # what limits the run comes before how it compares, which stands below too
    is_compared = share is not None and room.width >= WIDE
    rate = f", {percent(share)} of best" if is_compared else ""
    window = "" if snapshot.rate is None else f" over {snapshot.recent_minutes} min"
    parts = [
        spent(snapshot),
        f"{amount(snapshot.rate)} a minute{window}{rate}",
        *([f"limited by {held}"] if held else []),
        f"{snapshot.status.job} {snapshot.status.job_version}",
    ]
    return Content(one_line(DOT.join(parts), room.width))
