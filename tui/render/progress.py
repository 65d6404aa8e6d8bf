"""Renders progress: stages, goodput, latencies, cost, oldest calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from textual.content import Content

from store.fold_state import US_PER_S
from store.read.forecast import StageForecast
from store.read.history import RecentLatencies
from store.read.live import AT_WORK, Latencies
from store.task import TaskState
from tui.render.charts import bar, sparkline
from tui.render.format import (
    UNKNOWN,
    amount,
    count,
    duration,
    latency,
    money,
    percent,
    task_name,
    tight,
)
from tui.render.layout import MUTED, PANEL_GAP, PanelColumn, Room, lines_of, table_lines
from tui.render.models import names_of, short_names, term
from tui.sources.run_snapshot import ENDED, RunSnapshot

BAR = 4
"""Minimum length of a bar."""
LONGEST = 24
ROOMY_STAGES = 80
"""Cells from which columns have a gap of two cells."""
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
    left: int  #: includes forecast follow-ups that are not planned yet
    forecast: StageForecast | None
    retry_s: float | None  #: seconds until its next retry

    @property
    def share(self) -> float:
        """Ended share of planned tasks, 0 to 1."""
        total = sum(self.states.values()) - self.states[TaskState.SKIPPED]
        ended = self.states[TaskState.COMPLETED] + self.states[TaskState.FAILED]
        return ended / total if total else 1.0

    @property
    def eta(self) -> str:
        """Format its ETA, or why it is unknown."""
        if self.forecast is None or not self.left or self.forecast.seconds is None:
            return UNKNOWN
        return duration(self.forecast.seconds.expected)


def stage_rows(snapshot: RunSnapshot) -> list[StageRow]:
    """Return the stages in the order of the log."""
    by_stage: dict[str, dict[TaskState, int]] = {}
    for queue in snapshot.status.queues:
        states = by_stage.setdefault(queue.stage, defaultdict(int))
        for state, n in queue.states.items():
            states[state] += n
    stage_forecasts = snapshot.forecast.stages if snapshot.forecast else ()
    forecasts = {stage.stage: stage for stage in stage_forecasts}
    due = _due(snapshot)
    rows = []
    for stage, states in by_stage.items():
        forecast = forecasts.get(stage)
        open_ = sum(n for state, n in states.items() if state.is_open)
        rows.append(
            StageRow(
                stage=stage,
                states=states,
                left=forecast.left if forecast else open_,
                forecast=forecast,
                retry_s=due.get(stage),
            )
        )
    return rows


def _due(snapshot: RunSnapshot) -> dict[str, float]:
    """Return seconds until the next retry of each stage; 0 if overdue."""
    due: dict[str, float] = {}
    for (stage, _), at_us in snapshot.facts.retries.items():
        seconds = max(0.0, (at_us - snapshot.now_us) / US_PER_S)
        due[stage] = min(seconds, due.get(stage, seconds))
    return due


def stage_goals(snapshot: RunSnapshot) -> list[str]:
    """Return the filter of each row."""
    return [term("stage", row.stage) for row in stage_rows(snapshot)]


def stages(snapshot: RunSnapshot, room: Room) -> Content:
    """Draw a row for each stage."""
    planned_stages = stage_rows(snapshot)
    if not planned_stages:
        return lines_of(["Nothing is planned yet."], room)
    gap = PANEL_GAP if room.width >= ROOMY_STAGES else " "
    longest = max(len("stage"), *(len(row.stage) for row in planned_stages))
    left, ending, done = (
        PanelColumn("left", 7),
        PanelColumn("ETA", 8),
        PanelColumn("done", 5),
    )
    figures = [PanelColumn(head, width) for head, width, *_ in _FIGURES]
    fixed = (done, *figures, left, ending)
    used = sum(len(gap) + column.width for column in fixed)
    space = room.width - used
    name = PanelColumn("stage", max(6, min(longest, space)), is_right=False)
    space -= name.width + 2 * len(gap)
    # the time to the next retry comes first, then a bar if it is legible
    has_next = space >= _NEXT + len(gap) + BAR
    bars = PanelColumn(
        "", min(LONGEST, space - (_NEXT if has_next else 0)), is_right=False
    )
    has_bar = bars.width >= BAR
    at_retry = 3 + has_bar + 2
    columns = [name, *([bars] if has_bar else []), done, *figures, left, ending]
    if has_next:
        columns.insert(at_retry, PanelColumn("next in", _NEXT - len(gap)))
    rows: list[list[str | Content]] = []
    for row in planned_stages:
        cells: list[str | Content] = [row.stage]
        if has_bar:
            progress_bar = bar(row.share, bars.width, room.glyphs)
            cells.append(Content.styled(progress_bar, "$state-done"))
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
    return table_lines(columns, rows, room, gap)


def figure(n: int, width: int, style: str) -> Content:
    """Format a count of tasks; zero is muted."""
    text = tight(n, width).rjust(width)
    return Content.styled(text, style if n else "$state-queued")


ROOMY_GOODPUT = 40
"""Cells from which a latency has space for minutes."""
MIN_NAMES_WIDTH = 16
"""Minimum column width for both stage and model."""


def goodput(snapshot: RunSnapshot, room: Room) -> Content:
    """Draw tasks completed per minute: recent, best, and over the last hour."""
    window, best = snapshot.recent_minutes, snapshot.facts.best
    share = "" if snapshot.of_best is None else f", {percent(snapshot.of_best)} of best"
    if snapshot.rate is None:
        lines: list[str | Content] = [_no_rate_reason(snapshot)]
    else:
        lines = [f"{amount(snapshot.rate)}, last {window} min{share}"]
    if room.height > len(lines) + 2:
        lines.append(f"best 10 min {amount(best)}")
    if room.height > len(lines) + 1:
        hourly_line = sparkline(snapshot.completed_by_minute, room.width, room.glyphs)
        lines.append(Content.styled(hourly_line, "$state-done"))
    tokens_in = sum(row.tokens_in for row in snapshot.recent)
    tokens_out = sum(row.tokens_out for row in snapshot.recent)
    is_known = snapshot.rate is not None
    lines.append(
        f"tokens/s  in {amount(_a_second(tokens_in, window) if is_known else None)}"
        f"  out {amount(_a_second(tokens_out, window) if is_known else None)}"
    )
    return lines_of(lines, room)


def _no_rate_reason(snapshot: RunSnapshot) -> str:
    """Describe why there is no rate."""
    if snapshot.is_ended:
        return "no process works on it"
    return "no whole minute yet" if snapshot.state in AT_WORK else "no calls start"


def _a_second(n: int, minutes: int) -> float | None:
    return n / (60 * minutes) if minutes else None


def latencies(snapshot: RunSnapshot, room: Room) -> Content:
    """Draw percentiles of answers by model: recent ones, or all at the end."""
    answers = snapshot.facts.answers
    model_latencies: Sequence[RecentLatencies | Latencies] = snapshot.facts.latencies
    window = "of all answers"
    if answers is not None and answers.n and snapshot.state not in ENDED:
        model_latencies = answers.models
        window = f"of the last {count(answers.n)} answers ({duration(answers.seconds)})"
    if not model_latencies:
        return lines_of(["No answer has arrived yet."], room)
    width = 8 if room.width >= ROOMY_GOODPUT else 6
    figures = [PanelColumn(head, width) for head in ("p50", "p95", "p99")]
    names = short_names(row.model for row in model_latencies)
    space = room.width - sum(column.width + len(PANEL_GAP) for column in figures)
    longest = max(map(len, names.values()))
    name = PanelColumn("model", max(5, min(longest, space)), is_right=False)
    rows = [
        [
            names[row.model],
            latency(row.p50_ms),
            latency(row.p95_ms),
            latency(row.p99_ms),
        ]
        for row in model_latencies
    ]
    if room.height <= len(rows) + 1:
        return table_lines([name, *figures], rows, room)
    above = replace(room, height=room.height - 1)
    table = table_lines([name, *figures], rows, above)
    return Content.assemble(table, "\n", lines_of([window], room, MUTED))


def cost(snapshot: RunSnapshot, room: Room) -> Content:
    """Draw cost so far, cost per hour, and the projection."""
    status, hourly = snapshot.status, snapshot.present.cost_an_hour
    budget, spent = status.budget_usd, status.cost_usd
    lines = [f"{money(spent)} spent"]
    if hourly is not None:
        window = f"last {snapshot.recent_minutes} min"
        lines = [f"{money(spent)} · {money(hourly)}/h, {window}"]
    projected = snapshot.comes_to_usd
    if projected is not None:
        high = "?" if projected.high is None else money(projected.high)
        lines.append(
            f"forecast {money(projected.expected)} ({money(projected.low)}–{high})"
        )
    if budget and spent is not None:
        mark = None if projected is None else projected.expected / budget
        gauge = bar(spent / budget, max(1, room.width - 14), room.glyphs, mark)
        lines.append(f"{gauge} of {money(budget)}")
    if status.possible_usd:
        lines.append(f"up to {money(status.possible_usd)} more, billed or not")
    return lines_of(lines, room)


def oldest(snapshot: RunSnapshot, room: Room) -> Content:
    """Draw the calls that are in flight longest."""
    if not snapshot.facts.oldest:
        return lines_of(["No call is in flight."], room)
    names = names_of(snapshot)
    columns = [
        PanelColumn("task", 9, is_right=False),
        PanelColumn("for", 8),
        PanelColumn("try", 3),
        PanelColumn("where", max(0, room.width - 26), is_right=False),
    ]
    # the model explains a slow call better than the stage
    is_narrow = columns[-1].width < MIN_NAMES_WIDTH
    rows = [
        [
            task_name(call.task),
            duration(snapshot.age_s(call.since_us)),
            str(call.attempt),
            ("" if is_narrow else f"{call.stage} ")
            + names.get(call.model, call.model)
            + (f" after {call.error}" if call.error else ""),
        ]
        for call in snapshot.facts.oldest
    ]
    return table_lines(columns, rows, room)


def oldest_goals(snapshot: RunSnapshot) -> list[str]:
    """Return the filter of each row."""
    return [task_name(call.task) for call in snapshot.facts.oldest]
