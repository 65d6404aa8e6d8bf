"""Renders progress: stages, rate, latencies, cost, oldest calls."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain

from textual.content import Content

from store.document import plural
from store.fold_state import US_PER_S
from store.read.forecast import StageForecast, rough_duration, time_left_text
from store.read.history import LatencyCourse, RecentLatencies
from store.read.live import AT_WORK, RECENT, InFlight, Latencies
from store.task import TaskState
from tui.render import pace
from tui.render.charts import PlotAxis, bar, columns_in, plot
from tui.render.format import (
    UNKNOWN,
    amount,
    count,
    duration,
    latency,
    money,
    percent,
    tight,
)
from tui.render.layout import (
    MUTED,
    PANEL_GAP,
    PanelColumn,
    Room,
    lines_of,
    middle_cut,
    table_lines,
)
from tui.render.models import names_of, short_names, term
from tui.render.pace import TimeSeries, by_minute, completed, known, per_second
from tui.render.sentences import budget_stop, may_be_billed, span
from tui.sources.run_snapshot import ENDED, RunSnapshot, once

BAR = 4
"""Minimum length of a bar."""
LONGEST = 40
SECONDS_PER_MINUTE = 60
ROOMY_STAGES = 80
"""Cells from which columns have a gap of two cells."""
_NEXT = 9
_LEFT, _SPAN = 8, 26
"""Width of the time left, without and with its interval."""
_FIGURES = (
    ("queued", 7, TaskState.QUEUED, "$state-queued"),
    ("running", 7, TaskState.RUNNING, "$state-running"),
    ("waiting", 7, TaskState.WAITING, "$state-waiting"),
    ("failed", 6, TaskState.FAILED, "$state-failed"),
)
TITLE_LINE = 1
"""Line of a table with its headings."""
CHART = 4
"""Minimum lines of a chart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRow:
    """One stage, over all its models."""

    stage: str
    states: Mapping[TaskState, int]
    left: int  #: includes expected follow-ups that are not planned yet
    forecast: StageForecast | None
    retry_s: float | None  #: seconds until its next retry

    @property
    def share(self) -> float:
        """Share of its work that is done, expected follow-ups included, 0 to 1."""
        ended = self.states[TaskState.COMPLETED] + self.states[TaskState.FAILED]
        total = ended + self.left
        return ended / total if total else 1.0

    def time_left(self, *, has_span: bool = False) -> str:
        """Format the time left, with its interval if there is room; `-`: unknown."""
        seconds = self.forecast.seconds if self.forecast and self.left else None
        if seconds is None:
            return UNKNOWN
        return time_left_text(seconds) if has_span else rough_duration(seconds.expected)


@once
def stage_rows(snapshot: RunSnapshot) -> list[StageRow]:
    """Return the stages in the order of the log."""
    by_stage: dict[str, dict[TaskState, int]] = {}
    for queue in snapshot.status.queues:
        states = by_stage.setdefault(queue.stage, defaultdict(int))
        for state, n in queue.states.items():
            states[state] += n
    stage_forecasts = snapshot.forecast.stages if snapshot.forecast else ()
    forecasts = {stage.stage: stage for stage in stage_forecasts}
    remaining: dict[str, float] = defaultdict(float)
    for queue_left in snapshot.status.remaining.queues:
        remaining[queue_left.stage] += queue_left.left
    due = _due(snapshot)
    rows = []
    for stage, states in by_stage.items():
        forecast = forecasts.get(stage)
        rows.append(
            StageRow(
                stage=stage,
                states=states,
                left=forecast.left if forecast else round(remaining[stage]),
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


def stages_height(snapshot: RunSnapshot) -> int:
    """Return the lines that all stages take."""
    return TITLE_LINE + max(1, len({queue.stage for queue in snapshot.status.queues}))


def stages(snapshot: RunSnapshot, room: Room) -> Content:
    """Draw a row for each stage."""
    planned_stages = stage_rows(snapshot)
    if not planned_stages:
        return lines_of(["Nothing is planned yet."], room)
    is_over = snapshot.is_ended
    gap = PANEL_GAP if room.width >= ROOMY_STAGES else " "
    longest = max(6, *(len(row.stage) for row in planned_stages))
    fixed = [
        PanelColumn("done", 6),
        *(PanelColumn(head, width) for head, width, *_ in _FIGURES),
    ]
    space = room.width - longest - sum(len(gap) + column.width for column in fixed)
    # what is still expected comes first, then a bar if it is legible, then the rest
    has_left = space >= 9 + _LEFT + 2 * len(gap)
    if has_left:
        fixed += [PanelColumn("remaining", 9), PanelColumn("left", _LEFT)]
        space -= 9 + _LEFT + 2 * len(gap)
    has_next = not is_over and space >= _NEXT + 2 * len(gap) + 2 * BAR
    if has_next:
        fixed.insert(4, PanelColumn("next in", _NEXT - len(gap)))
        space -= _NEXT
    has_span = has_left and not is_over and space >= _SPAN - _LEFT + BAR + len(gap)
    if has_span:
        fixed[-1] = PanelColumn("left", _SPAN)
        space -= _SPAN - _LEFT
    bars = PanelColumn("", min(LONGEST, space - len(gap)), is_right=False)
    has_bar = bars.width >= BAR
    name = PanelColumn("stage", max(6, min(longest, longest + space)), is_right=False)
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
        if has_left:
            cells += [tight(row.left, 9), row.time_left(has_span=has_span)]
        if has_next:
            due = "now" if row.retry_s == 0 else duration(row.retry_s)
            cells.insert(2 + has_bar + 3, due)
        rows.append(cells)
    columns = [name, *([bars] if has_bar else []), *fixed]
    return table_lines(columns, rows, room, gap)


def figure(n: int, width: int, style: str) -> Content:
    """Format a count of tasks; zero is muted."""
    text = tight(n, width).rjust(width)
    return Content.styled(text, style if n else "$state-queued")


_LATENCY = 8
"""Cells of a latency, with space for minutes."""
MAX_NAMES_WIDTH = 40
"""Column width that is always enough for both stage and model."""
_MEASURED = 80
"""Steps by which it is decided if there is a chart."""
OLDEST_ROWS = 9
"""Calls in flight that the panel has room for."""
TWO_CHARTS = 24
"""Lines from which tokens have a chart below that of tasks."""


def rate_words(snapshot: RunSnapshot) -> str:
    """Format the tasks completed per minute."""
    if snapshot.rate is not None:
        return f"{amount(snapshot.rate)}/min"
    a_second = per_second(snapshot)
    return UNKNOWN if a_second is None else f"{amount(60 * a_second)}/min"


def rate_window(snapshot: RunSnapshot) -> str:
    """Describe the time that current rates cover."""
    is_young = snapshot.age_s(snapshot.created_us) < SECONDS_PER_MINUTE * RECENT
    return "so far" if is_young else f"last {RECENT} min"


def rate(snapshot: RunSnapshot, room: Room) -> Content:
    """Draw tasks completed per minute over the age of the run; tokens if tall."""
    about = [_rate_line(snapshot)]
    tokens = _token_words(snapshot)
    if tokens:
        about.append(tokens)
    line = "  ".join(about)
    if len(line) > room.width:
        line = about[0]
    below = room.height - TITLE_LINE
    if below < CHART:
        return lines_of([line], room)
    has_tokens = below >= TWO_CHARTS
    upper = replace(room, height=below - below // 2 if has_tokens else below)
    course = completed(snapshot, columns_in(room.width, room.glyphs))
    best = snapshot.facts.best
    parts = [lines_of([line], room), chart(course, upper, amount, best)]
    if has_tokens:
        parts.append(_token_chart(snapshot, replace(room, height=below // 2)))
    return Content("\n").join(parts)


def rate_height(snapshot: RunSnapshot) -> int | None:
    """Return the lines of the rate where it has no chart; None: any number."""
    return _chart_height(snapshot, completed(snapshot, _MEASURED))


def cost_height(snapshot: RunSnapshot) -> int | None:
    """Return the lines of the cost where it has no chart; None: any number."""
    return _chart_height(snapshot, pace.cost(snapshot, _MEASURED))


def _chart_height(snapshot: RunSnapshot, course: TimeSeries | None) -> int | None:
    """Return one line if a run has ended too soon for a chart."""
    has_chart = course is not None and known(course.values)
    return TITLE_LINE if snapshot.is_ended and not has_chart else None


def chart(
    course: TimeSeries | None,
    room: Room,
    figure_of: Callable[[float], str],
    ceiling: float | None = None,
) -> Content:
    """Draw a course, or that its first step is not over yet.

    Args:
        course: the values; None: none yet.
        room: for the chart alone.
        figure_of: formats a value.
        ceiling: a value that is drawn as a line; None: none.
    """
    if course is None or not known(course.values):
        blank = [""] * max(0, room.height // 2 - 1)
        lines = [*blank, "There is no chart of so short a time."]
        return lines_of(lines + [""] * (room.height - len(lines)), room, MUTED)
    line = [] if ceiling is None else [ceiling] * course.axis.count
    return plot(course.values, course.axis, still(room), figure_of, line)


def still(room: Room) -> Room:
    """Return the room without the cursor, which charts do not show."""
    return room if room.cursor is None else replace(room, cursor=None)


def _rate_line(snapshot: RunSnapshot) -> str:
    if snapshot.rate is None:
        words = rate_words(snapshot)
        if words != UNKNOWN:
            return f"{words}, last minute"
        return _no_rate_reason(snapshot)
    share = "" if snapshot.of_best is None else f", {percent(snapshot.of_best)} of best"
    best = "" if snapshot.facts.best is None else " (line)"
    return f"{rate_words(snapshot)}, {rate_window(snapshot)}{share}{best}"


def _token_words(snapshot: RunSnapshot) -> str:
    """Format recent tokens per second; empty without a rate."""
    if snapshot.rate is None or not snapshot.recent_minutes:
        return ""
    seconds = 60 * snapshot.recent_minutes
    tokens_in = sum(row.tokens_in for row in snapshot.recent) / seconds
    tokens_out = sum(row.tokens_out for row in snapshot.recent) / seconds
    return f"tokens/s: in {amount(tokens_in)}, out {amount(tokens_out)}"


def _token_chart(snapshot: RunSnapshot, room: Room) -> Content:
    course = by_minute(
        snapshot,
        columns_in(room.width, room.glyphs),
        lambda row: (row.tokens_in + row.tokens_out) / 60,
    )
    title = lines_of(["tokens per second, in and out"], room, MUTED)
    body = chart(course, replace(room, height=room.height - TITLE_LINE), amount)
    return Content("\n").join([title, body])


def _no_rate_reason(snapshot: RunSnapshot) -> str:
    """Describe why there is no rate."""
    if snapshot.is_ended:
        total = snapshot.status.tasks.completed
        span_s = snapshot.facts.worked_s  # without the time between sessions
        mean = f", {amount(60 * total / span_s)}/min" if span_s >= 1 else ""
        noun = "task" if total == 1 else "tasks"
        return f"{count(total)} {noun} in {duration(span_s)}{mean}"
    return "no whole minute yet" if snapshot.state in AT_WORK else "no calls start"


def latencies(snapshot: RunSnapshot, room: Room) -> Content:
    """Draw percentiles of answers by model: recent ones, or all at the end."""
    answers = snapshot.facts.answers
    model_latencies: Sequence[RecentLatencies | Latencies] = snapshot.facts.latencies
    window = "of all answers"
    if answers is not None and answers.n and snapshot.state not in ENDED:
        model_latencies = answers.models
        window = (
            f"of the last {plural(answers.n, 'answer')} ({duration(answers.seconds)})"
        )
    if not model_latencies:
        return lines_of(["No answer has arrived yet."], room)
    names = short_names(row.model for row in model_latencies)
    longest = max(5, *map(len, names.values()))
    rows = [
        [
            names[row.model],
            latency(row.p50_ms),
            latency(row.p95_ms),
            latency(row.p99_ms),
        ]
        for row in model_latencies
    ]
    # names are not cut for the sake of wide gaps
    need = max(map(len, chain.from_iterable(row[1:] for row in rows)))
    is_wide = room.width >= longest + 3 * (_LATENCY + len(PANEL_GAP))
    figures = [
        PanelColumn(head, _LATENCY if is_wide else need)
        for head in ("p50", "p95", "p99")
    ]
    space = room.width - sum(column.width + len(PANEL_GAP) for column in figures)
    name = PanelColumn("model", max(5, min(longest, space)), is_right=False)
    for cells in rows:
        cells[0] = middle_cut(cells[0], name.width)
    if room.height <= len(rows) + 1:
        return table_lines([name, *figures], rows, room)
    spare = room.height - len(rows) - 2
    course = answers.course if answers is not None else None
    has_chart = spare >= CHART + TITLE_LINE and course is not None
    above = replace(
        room, height=len(rows) + TITLE_LINE if has_chart else room.height - 1
    )
    table = table_lines([name, *figures], rows, above)
    parts = [table, lines_of([window], room, MUTED)]
    if has_chart and course is not None and answers is not None:
        latest = "" if snapshot.state not in ENDED else f"last {count(answers.n)}: "
        about = f"{latest}median; line: p95"
        parts.append(lines_of([about], room, MUTED))
        parts.append(_latency_chart(course, replace(room, height=spare - TITLE_LINE)))
    return Content("\n").join(parts)


def _latency_chart(course: LatencyCourse, room: Room) -> Content:
    axis = PlotAxis(first=course.first, width=course.width, count=len(course.p50_ms))
    return plot(course.p50_ms, axis, still(room), latency, course.p95_ms)


def cost(snapshot: RunSnapshot, room: Room) -> Content:
    """Draw cost so far, cost per hour, and the projection; by time if tall."""
    status, hourly = snapshot.status, snapshot.present.cost_an_hour
    budget, spent = status.budget_usd, status.cost_usd
    lines: list[str | Content] = [f"cost {money(spent)}"]
    if hourly is not None:
        window = rate_window(snapshot)
        lines = [f"cost {money(spent)} · {money(hourly)}/h, {window}"]
    projected = snapshot.comes_to_usd
    if projected is not None:
        long, short = (
            f"projected {span(projected, money, to)}" for to in (" to ", "–")
        )
        lines.append(long if len(long) <= room.width else short)
    if budget and spent is not None:
        mark = None if projected is None else projected.expected / budget
        gauge = bar(spent / budget, max(1, room.width - 14), room.glyphs, mark)
        of = f" of {money(budget)}"
        lines.append(Content.assemble((gauge, "$state-done"), of))
    lines += filter(None, [budget_stop(snapshot), may_be_billed(snapshot)])
    spare = room.height - len(lines) - TITLE_LINE
    if spare < CHART or spent is None:
        return lines_of(lines, room)
    course = pace.cost(snapshot, columns_in(room.width, room.glyphs))
    lines.append(Content.styled("dollars per hour", MUTED))
    return Content("\n").join(
        [lines_of(lines, room), chart(course, replace(room, height=spare), money)]
    )


def oldest_height(snapshot: RunSnapshot) -> int:
    """Return a constant number of lines: calls come and go, and panels stay."""
    del snapshot
    return TITLE_LINE + OLDEST_ROWS


def oldest(snapshot: RunSnapshot, room: Room) -> Content:
    """Draw the calls that are in flight longest."""
    if not snapshot.facts.oldest:
        return lines_of(["No call is in flight."], room)
    names = names_of(snapshot)
    calls = [
        (str(call.task), duration(snapshot.age_s(call.since_us)), str(call.attempt))
        for call in snapshot.facts.oldest
    ]
    task, age = (max(5, *(len(call[at]) for call in calls)) for at in (0, 1))
    where_width = max(0, room.width - task - age - 3 - 3 * len(PANEL_GAP))
    columns = [
        PanelColumn("task", task, is_right=False),
        PanelColumn("for", age),
        PanelColumn("try", 3),
        PanelColumn("where", where_width, is_right=False),
    ]
    stage = max(len(call.stage) for call in snapshot.facts.oldest)
    model = max(len(names.get(call.model, "")) for call in snapshot.facts.oldest)
    # the model explains a slow call better than the stage
    is_narrow = where_width < min(MAX_NAMES_WIDTH, stage + model + 1)
    has_key = where_width > 2 * (stage + model)

    def where(call: InFlight) -> str:
        words = "" if is_narrow else f"{call.stage} "
        words += names.get(call.model, call.model)
        after = f" after {call.error}" if call.error else ""
        space = where_width - len(words) - len(after) - 1
        if space < -1:  # a part of a word says nothing
            return middle_cut(words, where_width)
        key = f" {middle_cut(call.key, space).rstrip()}" if has_key else ""
        return f"{words}{key}{after}"

    rows = [
        [*cells, where(call)]
        for cells, call in zip(calls, snapshot.facts.oldest, strict=True)
    ]
    return table_lines(columns, rows, room)


def oldest_goals(snapshot: RunSnapshot) -> list[str]:
    """Return the filter of each row."""
    return [f"task:{call.task}" for call in snapshot.facts.oldest]
