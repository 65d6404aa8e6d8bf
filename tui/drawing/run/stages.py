"""The matrix of stages and states: how far each is, and when it ends."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from textual.content import Content

from store.forecast import StageForecast
from store.sums import US_PER_S
from store.task import TaskState
from tui.drawing.chart import bar
from tui.drawing.format import UNKNOWN, duration, percent, tight
from tui.drawing.room import GAP, Column, Room, lines_of, table
from tui.drawing.run.goals import term
from tui.sources.sight import Snapshot

BAR = 4
"""The shortest bar."""
LONGEST = 24
ROOMY = 80
"""Cells from which on columns keep two cells' distance."""
_NEXT = 9
_FIGURES = (
    ("run", 4, TaskState.RUNNING, "$state-running"),
    ("queued", 7, TaskState.QUEUED, "$state-queued"),
    ("retry", 5, TaskState.WAITING, "$state-waiting"),
    ("fail", 5, TaskState.FAILED, "$state-failed"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRow:
    """One stage, over all its models."""

    stage: str
    states: Mapping[TaskState, int]
    left: int  #: follow-ups that are not planned yet included, where they are foretold
    told: StageForecast | None
    retry_s: float | None  #: until its next retry is due

    @property
    def share(self) -> float:
        """How much of what is planned has ended, 0 to 1."""
        asked = sum(self.states.values()) - self.states[TaskState.SKIPPED]
        ended = self.states[TaskState.COMPLETED] + self.states[TaskState.FAILED]
        return ended / asked if asked else 1.0

    @property
    def eta(self) -> str:
        """When it ends, or why that is not known."""
        if self.told is None or not self.left:
            return UNKNOWN
        if self.told.seconds is None:
            return f"need {self.told.needs}"
        return duration(self.told.seconds.expected)


def stage_rows(snapshot: Snapshot) -> list[StageRow]:
    """The stages, in the order of the log."""
    by_stage: dict[str, dict[TaskState, int]] = {}
    for lane in snapshot.status.lanes:
        states = by_stage.setdefault(lane.stage, defaultdict(int))
        for state, n in lane.states.items():
            states[state] += n
    told = snapshot.forecast.stages if snapshot.forecast else ()
    forecasts = {stage.stage: stage for stage in told}
    due = _due(snapshot)
    rows = []
    for stage, states in by_stage.items():
        known = forecasts.get(stage)
        open_ = sum(n for state, n in states.items() if state.is_open)
        rows.append(
            StageRow(
                stage=stage,
                states=states,
                left=known.left if known else open_,
                told=known,
                retry_s=due.get(stage),
            )
        )
    return rows


def _due(snapshot: Snapshot) -> dict[str, float]:
    """Seconds until the next retry of each stage; overdue ones wait for a slot."""
    due: dict[str, float] = {}
    for (stage, _), at_us in snapshot.facts.retries.items():
        seconds = max(0.0, (at_us - snapshot.now_us) / US_PER_S)
        due[stage] = min(seconds, due.get(stage, seconds))
    return due


def goals(snapshot: Snapshot) -> list[str]:
    """The filter of each row."""
    return [term("stage", row.stage) for row in stage_rows(snapshot)]


def stages(snapshot: Snapshot, room: Room) -> Content:
    """A row for each stage."""
    found = stage_rows(snapshot)
    if not found:
        return lines_of(["Nothing is planned yet."], room)
    gap = GAP if room.width >= ROOMY else " "
    longest = max(len("stage"), *(len(row.stage) for row in found))
    left, ending, done = Column("left", 7), Column("ETA", 8), Column("done", 5)
    figures = [Column(head, width) for head, width, *_ in _FIGURES]
    fixed = (done, *figures, left, ending)
    used = sum(len(gap) + column.width for column in fixed)
    space = room.width - used
    name = Column("stage", max(6, min(longest, space)), is_right=False)
    space -= name.width + 2 * len(gap)
    # the time to the next retry comes first, then a bar that can still be read
    has_next = space >= _NEXT + len(gap) + BAR
    bars = Column("", min(LONGEST, space - (_NEXT if has_next else 0)), is_right=False)
    has_bar = bars.width >= BAR
    at_retry = 3 + has_bar + 2
    columns = [name, *([bars] if has_bar else []), done, *figures, left, ending]
    if has_next:
        columns.insert(at_retry, Column("next in", _NEXT - len(gap)))
    rows: list[list[str | Content]] = []
    for row in found:
        cells: list[str | Content] = [row.stage]
        if has_bar:
            drawn = bar(row.share, bars.width, room.glyphs)
            cells.append(Content.styled(drawn, "$state-done"))
        cells.append(percent(row.share))
        cells += [
            figure(row.states[state], width, style)
            for _, width, state, style in _FIGURES
        ]
        cells += [tight(row.left, left.width), row.eta]
        if has_next:
            due = "now" if row.retry_s == 0 else duration(row.retry_s)
            cells.insert(at_retry, due)
        rows.append(cells)
    return table(columns, rows, room, gap)


def figure(n: int, width: int, style: str) -> Content:
    """A count of tasks; none of them is told without colour."""
    text = tight(n, width).rjust(width)
    return Content.styled(text, style if n else "$state-queued")
