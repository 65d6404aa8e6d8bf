"""What stands in the panels of the Run screen: pure functions of a snapshot.

Each is given the width and height it may fill, and draws no more: what does not fit is
counted. Text from outside goes through `tui.drawing.clip`; no markup is read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import TypeAlias

from textual.content import Content

from store.estimates import US_PER_S
from store.task import TaskState
from store.views import LimitsSeen, MinuteRow
from tui.drawing.chart import bar, course
from tui.drawing.clip import clip, one_line
from tui.drawing.format import UNKNOWN, amount, count, duration, latency, money, percent
from tui.drawing.room import GAP, MUTED, Column, Room, lines_of, table
from tui.drawing.task_columns import task_name
from tui.sources.run import US_PER_MINUTE, Snapshot

FULL = 0.95
"""Share of a limit from which on it is what holds a model back."""
BAR = 4
"""The shortest bar."""
WHERE = 16
"""The shortest column for both a stage and a model."""
NARROW = 60
"""Columns of a panel below which it shows less of each row."""

Draw: TypeAlias = Callable[[Snapshot, Room], Content]


def stages(snapshot: Snapshot, room: Room) -> Content:
    """The matrix of stages and states."""
    by_stage: dict[str, dict[TaskState, int]] = defaultdict(lambda: defaultdict(int))
    for lane in snapshot.status.lanes:
        for state, n in lane.states.items():
            by_stage[lane.stage][state] += n
    if not by_stage:
        return Content("Nothing is planned yet.")
    forecasts = (
        {stage.stage: stage for stage in snapshot.forecast.stages}
        if snapshot.forecast
        else {}
    )
    figures = (
        ("run", 6, TaskState.RUNNING, "$state-running"),
        ("wait", 6, TaskState.WAITING, "$state-waiting"),
        ("fail", 6, TaskState.FAILED, "$state-failed"),
    )
    left = Column("left", 7)
    ending = Column("ETA", 8)
    done = Column("done", 5)
    used = sum(w for _, w, *_ in figures) + left.width + ending.width + done.width
    space = room.width - used - len(GAP) * (len(figures) + 4)
    name = Column("stage", min(max(map(len, (*by_stage, "stage"))), max(8, space // 2)))
    # a bar that is too short to be read gives its place to the figures
    bars = Column("", min(30, space - name.width), is_right=False)
    has_bars = bars.width >= BAR
    columns = [
        Column(name.head, name.width, is_right=False),
        *([bars] if has_bars else []),
        done,
        *(Column(head, width) for head, width, *_ in figures),
        left,
        ending,
    ]
    rows: list[list[str | Content]] = []
    for stage, states in by_stage.items():
        asked = sum(states.values()) - states[TaskState.SKIPPED]
        ended = states[TaskState.COMPLETED] + states[TaskState.FAILED]
        share = ended / asked if asked else 1.0
        known = forecasts.get(stage)
        open_ = sum(n for state, n in states.items() if state.is_open)
        rows.append(
            [
                stage,
                *(
                    [Content.styled(bar(share, bars.width, room.glyphs), "$state-done")]
                    if has_bars
                    else []
                ),
                percent(share),
                *(
                    _figure(states[state], width, style)
                    for _, width, state, style in figures
                ),
                count(known.left if known else open_),
                duration(known.seconds.expected if known and known.seconds else None),
            ]
        )
    return table(columns, rows, room)


def _figure(n: int, width: int, style: str) -> Content:
    """A count of tasks; none of them is told without colour."""
    return Content.styled(f"{n:,}".rjust(width), style if n else MUTED)


def models(snapshot: Snapshot, room: Room) -> Content:
    """What each model may do, and how much of it is used."""
    limits = {seen.model: seen for seen in snapshot.status.limits}
    names = _names(snapshot)
    if not names:
        return Content("No model has been asked yet.")
    minute = last_minute(snapshot)
    is_known = snapshot.recent_minutes > 0
    is_narrow = room.width < NARROW
    figures = [
        Column("in flight", 9),
        Column("req/min", 10 if is_narrow else 12),
        Column("tok/min", 12),
        *([] if is_narrow else [Column("again", 5)]),
        Column("wait", 6),
    ]
    space = room.width - sum(column.width + len(GAP) for column in figures)
    longest = max(map(len, names.values()))
    name = Column("model", max(6, min(longest, space)), is_right=False)
    columns = [name, *figures]
    rows = []
    for model, short in names.items():
        seen = limits.get(model)
        running = sum(
            lane.states.get(TaskState.RUNNING, 0)
            for lane in snapshot.status.lanes
            if lane.model == model
        )
        used = [row for row in minute if row.model == model]
        requests = sum(row.started for row in used)
        tokens = sum(row.tokens_in + row.tokens_out for row in used)
        again = amount(sum(row.retried for row in used) if is_known else None)
        rows.append(
            [
                short,
                _of(running, seen.concurrency if seen else None),
                _of(requests if is_known else None, seen.rpm if seen else None),
                _of(tokens if is_known else None, seen.tpm if seen else None),
                *([] if is_narrow else [again]),
                _wait(snapshot, seen),
            ]
        )
    return table(columns, rows, room)


def short_names(models: Iterable[str]) -> dict[str, str]:
    """Models by name, without their providers where that leaves them distinct.

    >>> short_names(["openai/m", "openai/n"])
    {'openai/m': 'm', 'openai/n': 'n'}
    """
    names = list(dict.fromkeys(models))
    short = {name: name.rpartition("/")[2] for name in names}
    return short if len(set(short.values())) == len(names) else {n: n for n in names}


def _names(snapshot: Snapshot) -> dict[str, str]:
    return short_names(lane.model for lane in snapshot.status.lanes)


def _of(used: float | None, limit: float | None) -> str:
    """What is used of a limit; an exclamation mark where it is what holds back."""
    if not limit or used is None:
        return amount(used)
    sign = "!" if used >= FULL * limit else ""
    return f"{amount(used)}/{amount(limit)}{sign}"


def _wait(snapshot: Snapshot, seen: LimitsSeen | None) -> str:
    """How long the endpoint still asks to be left alone."""
    until = seen.paused_until_us if seen else None
    if until is None or until <= snapshot.now_us:
        return UNKNOWN
    return duration((until - snapshot.now_us) / US_PER_S)


def limited_by(snapshot: Snapshot) -> str:
    """What holds the run back at present, in a few words; empty where nothing does."""
    minute = last_minute(snapshot)
    for seen in snapshot.status.limits:
        used = [row for row in minute if row.model == seen.model]
        tokens = sum(row.tokens_in + row.tokens_out for row in used)
        requests = sum(row.started for row in used)
        for name, spent, limit in (
            ("tokens/min", tokens, seen.tpm),
            ("requests/min", requests, seen.rpm),
        ):
            if limit and spent >= FULL * limit:
                return f"{name} of {seen.model}"
    return ""


def last_minute(snapshot: Snapshot) -> list[MinuteRow]:
    """The last minute that is over."""
    last = snapshot.now_us // US_PER_MINUTE - 1
    return [row for row in snapshot.facts.minutes if row.t == last]


def errors(snapshot: Snapshot, room: Room) -> Content:
    """Failed attempts by class, and the last one."""
    counted = snapshot.facts.errors
    if not counted:
        return Content.styled("No attempt has failed.", MUTED)
    by_class: dict[str, int] = defaultdict(int)
    where: dict[str, tuple[int, str, str]] = {}
    for error in counted:
        by_class[error.error] += error.n
        where.setdefault(error.error, (error.sample_task, error.stage, error.model))
    names = _names(snapshot)
    started = max(1, snapshot.status.attempts.started)
    # what the other columns leave
    rest = room.width - 18 - 9 - 8 - 10 - len(GAP) * 4
    has_rest = rest >= WHERE
    columns = [
        Column("class", 18, is_right=False),
        Column("attempts", 9),
        Column("of all", 8),
        Column("task", 10),
        *([Column("where most", rest, is_right=False)] if has_rest else []),
    ]
    rows: list[list[str | Content]] = [
        [
            Content.styled(clip(name, 18), "$state-failed"),
            count(n),
            percent(n / started, tenths=True),
            task_name(where[name][0]),
            *(
                [f"{where[name][1]} {names.get(where[name][2], where[name][2])}"]
                if has_rest
                else []
            ),
        ]
        for name, n in sorted(by_class.items(), key=lambda item: (-item[1], item[0]))
    ]
    failure = snapshot.facts.last_failure
    if failure is None:
        return table(columns, rows, room)
    said = f"last {duration(snapshot.age_s(failure.at_us))} ago: {failure.message}"
    above = Room(width=room.width, height=room.height - 1, glyphs=room.glyphs)
    return Content.assemble(
        table(columns, rows, above),
        "\n",
        (one_line(said, room.width), MUTED),
    )


def goodput(snapshot: Snapshot, room: Room) -> Content:
    """Tasks completed a minute: lately, at best, and over the last hour."""
    window = snapshot.recent_minutes
    best = f"best 10 min {amount(snapshot.facts.best)}"
    lately = f"{amount(snapshot.rate)} last {window} min"
    lines = [f"{lately if window else 'no whole minute yet'} · {best}"]
    if room.height > len(lines) + 1:
        lines.append(course(snapshot.course, room.width, room.glyphs))
    tokens_in = sum(row.tokens_in for row in snapshot.recent)
    tokens_out = sum(row.tokens_out for row in snapshot.recent)
    lines.append(
        f"tokens/s  in {amount(_a_second(tokens_in, window))}"
        f"  out {amount(_a_second(tokens_out, window))}"
    )
    return lines_of(lines, room)


def _a_second(n: int, minutes: int) -> float | None:
    return n / (60 * minutes) if minutes else None


def latencies(snapshot: Snapshot, room: Room) -> Content:
    """Percentiles of the models' answers."""
    if not snapshot.facts.latencies:
        return Content.styled("No answer has arrived yet.", MUTED)
    figures = [Column(head, 6) for head in ("p50", "p95", "p99")]
    names = short_names(each.model for each in snapshot.facts.latencies)
    space = room.width - sum(column.width + len(GAP) for column in figures)
    longest = max(map(len, names.values()))
    name = Column("model", max(5, min(longest, space)), is_right=False)
    rows = [
        [
            names[each.model],
            latency(each.p50_ms),
            latency(each.p95_ms),
            latency(each.p99_ms),
        ]
        for each in snapshot.facts.latencies
    ]
    return table([name, *figures], rows, room)


def cost(snapshot: Snapshot, room: Room) -> Content:
    """What was spent, at what rate, and what it comes to."""
    status = snapshot.status
    budget, spent = status.budget_usd, status.cost_usd
    window = snapshot.recent_minutes
    lines = [f"{money(spent)} spent"]
    if spent is not None and window:
        hourly = 60 / window * sum(row.cost_usd for row in snapshot.recent)
        lines = [f"{money(spent)} · {money(hourly)}/h last {window} min"]
    projected = snapshot.forecast.cost_usd if snapshot.forecast else None
    comes_to = None
    if projected is not None and spent is not None:
        known: float = spent
        comes_to = known + projected.expected
        low, high = known + projected.low, known + (projected.high or 0.0)
        lines.append(f"comes to {money(comes_to)} ({money(low)}–{money(high)})")
    if budget and spent is not None:
        mark = None if comes_to is None else comes_to / budget
        shown = bar(spent / budget, max(1, room.width - 14), room.glyphs, mark)
        lines.append(f"{shown} of {money(budget)}")
    if status.possible_usd:
        lines.append(f"up to {money(status.possible_usd)} more, billed or not")
    return lines_of(lines, room)


def oldest(snapshot: Snapshot, room: Room) -> Content:
    """The calls that have been out longest."""
    if not snapshot.facts.oldest:
        return Content.styled("No call is under way.", MUTED)
    names = _names(snapshot)
    columns = [
        Column("task", 9, is_right=False),
        Column("for", 8),
        Column("try", 3),
        Column("where", max(0, room.width - 26), is_right=False),
    ]
    # the model says more of a slow call than the stage does
    is_narrow = columns[-1].width < WHERE
    rows = [
        [
            task_name(call.task),
            duration(snapshot.age_s(call.since_us)),
            str(call.attempt),
            ("" if is_narrow else f"{call.stage} ") + names.get(call.model, call.model),
        ]
        for call in snapshot.facts.oldest
    ]
    return table(columns, rows, room)


def overview(snapshot: Snapshot, room: Room) -> Content:
    """The tables one below the other, for a screen without room for panels."""
    tables = (stages, models, errors, oldest, latencies)
    shown: list[Content] = []
    left = room.height
    for at, draw in enumerate(tables):
        # a fair share of what is left, so that the first does not take all of it
        height = max(3, left // (len(tables) - at))
        if height > left:
            break
        part = Room(width=room.width, height=height, glyphs=room.glyphs)
        shown.append(draw(snapshot, part))
        left -= len(shown[-1].plain.splitlines())
    return Content("\n").join(shown)
