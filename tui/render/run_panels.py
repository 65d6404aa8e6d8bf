"""Renders a run: its header, its panels, and an overview for small screens.

A drawing is a pure function of a snapshot and the available room; content that does not
fit is counted. Untrusted text goes through `tui.render.layout`; markup is not parsed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from textual.content import Content

from store.task import TaskState
from tui.render import errors, models, progress
from tui.render.charts import bar
from tui.render.errors import error_rows, last_words
from tui.render.format import (
    UNKNOWN,
    amount,
    duration,
    latency,
    money,
    percent,
    task_name,
    tight,
)
from tui.render.glyphs import Glyphs
from tui.render.layout import MUTED, Room, clip, lines_of, one_line
from tui.render.models import ModelRow, limited_by, model_rows, names_of
from tui.render.progress import StageRow, figure, goodput, oldest, stage_rows
from tui.render.sentences import eta, sentence, spent
from tui.sources.run_snapshot import ENDED, RunSnapshot

_NAME, _BAR = 10, 6
_PACE = 5
"""Minimum lines for goodput; with fewer, it is omitted."""


def overview(snapshot: RunSnapshot, room: Room) -> Content:
    """Draw stages, models, errors and the oldest call in a line each; then goodput."""
    tail = [*_errors(snapshot), *_oldest(snapshot), *_money(snapshot)]
    stages = [_stage(row, room) for row in stage_rows(snapshot)]
    models = [_model(row, snapshot) for row in model_rows(snapshot)]
    if not stages:
        return lines_of(["Nothing is planned yet."], room)
    space = max(2, room.height - len(tail))
    few = _some(stages, max(1, space - min(len(models), space // 2)), "stages")
    lines: list[str | Content] = [
        *few,
        *_some(models, space - len(few), "models"),
        *tail,
    ]
    parts = [lines_of(lines, room)]
    left = room.height - len(lines)
    for height, draw in ((_PACE, _pace), (left - _PACE, oldest)):
        if height >= _PACE and left >= height:
            below = replace(room, height=height)
            parts.append(draw(snapshot, below))
            left -= height
    return Content("\n").join(parts)


def _pace(snapshot: RunSnapshot, room: Room) -> Content:
    """Draw goodput with a title, as panels have one."""
    title = lines_of([Content.styled("completed a minute, last hour", MUTED)], room)
    pace = goodput(snapshot, replace(room, height=room.height - 1))
    return Content("\n").join([title, pace])


def _some(lines: list[Content], height: int, noun: str) -> list[Content]:
    """Return as many lines as fit; the last one counts the rest."""
    if len(lines) <= height:
        return lines
    visible_n = max(0, height - 1)
    more = f"and {len(lines) - visible_n} more {noun}: see their own part with tab"
    return [*lines[:visible_n], Content.styled(more, MUTED)][:height]


def _stage(row: StageRow, room: Room) -> Content:
    states = row.states
    return Content.assemble(
        clip(row.stage, _NAME),
        " ",
        (bar(row.share, _BAR, room.glyphs), "$state-done"),
        f" {percent(row.share):>5} run ",
        figure(states[TaskState.RUNNING], 4, "$state-running"),
        " queued ",
        figure(states[TaskState.QUEUED], 6, ""),
        " retry ",
        figure(states[TaskState.WAITING], 4, "$state-waiting"),
        " fail ",
        figure(states[TaskState.FAILED], 5, "$state-failed"),
        f" {row.eta:>8}",
    )


def _model(row: ModelRow, snapshot: RunSnapshot) -> Content:
    answers = snapshot.facts.answers
    recent = (
        {percentiles.model: percentiles for percentiles in answers.models}
        if answers
        else {}
    )
    whole = {percentiles.model: percentiles for percentiles in snapshot.facts.latencies}
    is_over = snapshot.state in ENDED
    percentiles = whole.get(row.model) if is_over else recent.get(row.model)
    p50, p95 = (percentiles.p50_ms, percentiles.p95_ms) if percentiles else (None, None)
    wait = duration(row.wait_s) if row.wait_s else UNKNOWN
    return Content.assemble(
        clip(row.name, _NAME),
        f" {row.calls.usage_text(7):<8}",
        f"RPM {_close(row.requests.usage_text(5, has_share=True)):<6}",
        f"TPM {_close(row.tokens.usage_text(5, has_share=True)):<6}",
        f"429/m {tight(row.refused):<4}",
        f"next {_close(wait):<5}",
        f"p50 {_close(latency(p50)):<5} p95 {_close(latency(p95))}",
    )


def _close(text: str) -> str:
    """Remove the blanks of a figure."""
    return text.replace(" ", "")


def _errors(snapshot: RunSnapshot) -> list[str]:
    failures = error_rows(snapshot)
    if not failures:
        return ["errors: none"]
    is_known = failures[0].lately is not None and not snapshot.is_ended
    counts = [(row.error, row.lately if is_known else row.all) for row in failures]
    labels = [f"{error} {n:,}" for error, n in counts if n]
    window = "10 min" if is_known else "whole run"
    lines = [f"errors, {window}: {' · '.join(labels) or 'none'}"]
    last = last_words(snapshot)
    return [*lines, last] if last else lines


def _oldest(snapshot: RunSnapshot) -> list[str]:
    for call in snapshot.facts.oldest:
        age = duration(snapshot.age_s(call.since_us))
        model = names_of(snapshot).get(call.model, call.model)
        call_text = f"{task_name(call.task)} {call.stage} {model} {age}"
        after = f" after {call.error}" if call.error else ""
        return [f"oldest in flight: {call_text}, try {call.attempt}{after}"]
    return ["oldest in flight: none"]


def _money(snapshot: RunSnapshot) -> list[str]:
    hourly = snapshot.present.cost_an_hour
    projected = snapshot.comes_to_usd
    parts = [f"cost {money(snapshot.status.cost_usd)}"]
    if snapshot.status.budget_usd is not None:
        parts.append(f"budget {money(snapshot.status.budget_usd)}")
    if projected is not None:
        parts.append(f"forecast {money(projected.expected)}")
    if hourly is not None:
        parts.append(f"{money(hourly)}/h")
    return [" · ".join(parts)]


Draw: TypeAlias = Callable[[RunSnapshot, Room], Content]
Goals: TypeAlias = Callable[[RunSnapshot], Sequence[str]]


def nowhere(snapshot: RunSnapshot) -> Sequence[str]:
    """Return no goals: the rows of this panel lead to no tasks."""
    del snapshot
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPanel:
    """One panel of the screen."""

    name: str
    title: str
    draw: Draw
    goals: Goals = nowhere  #: the filter of each row, in order
    letter: str = ""  #: selects the panel after the jump key


OVERVIEW = RunPanel(name="overview", title="overview", draw=overview, letter="v")
LEFT = (
    RunPanel(
        name="stages",
        title="stages",
        draw=progress.stages,
        goals=progress.stage_goals,
        letter="s",
    ),
    RunPanel(
        name="models",
        title="models, last full minute",
        draw=models.models,
        goals=models.model_goals,
        letter="m",
    ),
    RunPanel(
        name="errors",
        title="errors, last 10 min and whole run",
        draw=errors.errors,
        goals=errors.error_goals,
        letter="e",
    ),
)
RIGHT = (
    RunPanel(
        name="goodput",
        title="completed a minute, last hour",
        draw=progress.goodput,
        letter="g",
    ),
    RunPanel(name="latency", title="latency", draw=progress.latencies, letter="l"),
    RunPanel(name="cost", title="cost", draw=progress.cost, letter="c"),
    RunPanel(
        name="oldest",
        title="oldest in flight",
        draw=progress.oldest,
        goals=progress.oldest_goals,
        letter="o",
    ),
)
RUN_PANELS = (OVERVIEW, *LEFT, *RIGHT)
"""In the order of the tab key."""


DOT = " · "
WIDE = 110
"""Columns from which the job is shown beside the run."""
#: Style of a state's word; others look like running.
_STYLES = {
    "finished": "$state-done",
    "stalled": "$state-failed bold",
    "lost": "$state-failed bold",
    "budget_stop": "$state-waiting bold",
    "paused": "$state-waiting bold",
    "quiet": "$state-waiting",
    "draining": "$state-waiting",
}


#: The next step if the sentence names no command.
_NEXT = {
    "quiet": "1 lists the other runs",
    "stalled": "t lists the tasks, e the events",
    "draining": "q leaves it to end",
    "cancelled": "t lists the tasks",
    "finished": "t lists the tasks",
}


def sign_of(state: str, glyphs: Glyphs) -> str:
    """Return the glyph of a run's state."""
    if state in {"stalled", "lost", "budget_stop"}:
        return glyphs.stalled
    if state in {"paused", "draining", "drained", "cancelled"}:
        return glyphs.paused
    done = TaskState.COMPLETED if state == "finished" else TaskState.RUNNING
    return glyphs.states[done]


def state_of(snapshot: RunSnapshot, glyphs: Glyphs) -> Content:
    """Render a run's state: glyph, word, and colour."""
    state = snapshot.state
    word = f"{sign_of(state, glyphs)} {state.replace('_', ' ')}"
    return Content.styled(word, _STYLES.get(state, "$state-running bold"))


def header(snapshot: RunSnapshot, room: Room) -> Content:
    """Draw both lines; the second has what may need the user's action."""
    status = snapshot.status
    heartbeat_s = snapshot.heartbeat_s
    share = snapshot.ended / snapshot.total_tasks if snapshot.total_tasks else None
    alive = (
        ""
        if snapshot.state in ENDED or heartbeat_s is None
        else f" (heartbeat {duration(heartbeat_s)})"
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


def _second(snapshot: RunSnapshot, room: Room) -> Content:
    notice = sentence(snapshot)
    if notice:
        key = _NEXT.get(snapshot.state, "")
        if key and len(notice) + len(key) + len(DOT) <= room.width:
            notice = f"{notice}{DOT}{key}"
        return Content.styled(one_line(notice, room.width), "$state-waiting")
    limit = limited_by(snapshot)
    share = snapshot.of_best
    # the bottleneck comes before the comparison, which is also below
    is_compared = share is not None and room.width >= WIDE
    rate = f", {percent(share)} of best" if is_compared else ""
    window = "" if snapshot.rate is None else f" over {snapshot.recent_minutes} min"
    parts = [
        spent(snapshot),
        f"{amount(snapshot.rate)} a minute{window}{rate}",
        *([f"limited by {limit}"] if limit else []),
        f"{snapshot.status.job} {snapshot.status.job_version}",
    ]
    return Content(one_line(DOT.join(parts), room.width))
