"""The whole run in some lines, for a screen without room for panels."""

from __future__ import annotations

from dataclasses import replace

from textual.content import Content

from store.task import TaskState
from tui.drawing.chart import bar
from tui.drawing.clip import clip
from tui.drawing.format import (
    UNKNOWN,
    duration,
    latency,
    money,
    percent,
    task_name,
    tight,
)
from tui.drawing.room import MUTED, Room, lines_of
from tui.drawing.run.errors import error_rows, last_words
from tui.drawing.run.figures import goodput, oldest
from tui.drawing.run.models import ModelRow, model_rows, names_of
from tui.drawing.run.stages import StageRow, figure, stage_rows
from tui.sources.sight import ENDED, Snapshot

_NAME, _BAR = 10, 6
_PACE = 5
"""Lines of the pace; fewer are no list of calls either."""


def overview(snapshot: Snapshot, room: Room) -> Content:
    """Stages, models, errors and the oldest call, a line each; then the pace."""
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
    drawn = [lines_of(lines, room)]
    left = room.height - len(lines)
    for height, draw in ((_PACE, _pace), (left - _PACE, oldest)):
        if height >= _PACE and left >= height:
            below = replace(room, height=height)
            drawn.append(draw(snapshot, below))
            left -= height
    return Content("\n").join(drawn)


def _pace(snapshot: Snapshot, room: Room) -> Content:
    """What has a title of its own where there is room for panels."""
    title = lines_of([Content.styled("completed a minute, last hour", MUTED)], room)
    drawn = goodput(snapshot, replace(room, height=room.height - 1))
    return Content("\n").join([title, drawn])


def _some(lines: list[Content], height: int, what: str) -> list[Content]:
    """As many lines as fit; the last of them counts those that do not."""
    if len(lines) <= height:
        return lines
    shown = max(0, height - 1)
    more = f"and {len(lines) - shown} more {what}: see their own part with tab"
    return [*lines[:shown], Content.styled(more, MUTED)][:height]


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


def _model(row: ModelRow, snapshot: Snapshot) -> Content:
    answers = snapshot.facts.answers
    recent = {each.model: each for each in answers.models} if answers else {}
    whole = {each.model: each for each in snapshot.facts.latencies}
    is_over = snapshot.state in ENDED
    took = whole.get(row.model) if is_over else recent.get(row.model)
    p50, p95 = (took.p50_ms, took.p95_ms) if took else (None, None)
    wait = duration(row.wait_s) if row.wait_s else UNKNOWN
    return Content.assemble(
        clip(row.name, _NAME),
        f" {row.calls.said(7):<8}",
        f"RPM {_close(row.requests.said(5, has_share=True)):<6}",
        f"TPM {_close(row.tokens.said(5, has_share=True)):<6}",
        f"429/m {tight(row.refused):<4}",
        f"next {_close(wait):<5}",
        f"p50 {_close(latency(p50)):<5} p95 {_close(latency(p95))}",
    )


def _close(text: str) -> str:
    """A figure without its blanks."""
    return text.replace(" ", "")


def _errors(snapshot: Snapshot) -> list[str]:
    found = error_rows(snapshot)
    if not found:
        return ["errors: none"]
    is_known = found[0].lately is not None and not snapshot.is_ended
    counts = [(row.error, row.lately if is_known else row.all) for row in found]
    said = [f"{error} {n:,}" for error, n in counts if n]
    window = "10 min" if is_known else "whole run"
    lines = [f"errors, {window}: {' · '.join(said) or 'none'}"]
    last = last_words(snapshot)
    return [*lines, last] if last else lines


def _oldest(snapshot: Snapshot) -> list[str]:
    for call in snapshot.facts.oldest:
        age = duration(snapshot.age_s(call.since_us))
        model = names_of(snapshot).get(call.model, call.model)
        where = f"{task_name(call.task)} {call.stage} {model} {age}"
        after = f" after {call.error}" if call.error else ""
        return [f"oldest in flight: {where}, try {call.attempt}{after}"]
    return ["oldest in flight: none"]


def _money(snapshot: Snapshot) -> list[str]:
    hourly = snapshot.present.cost_an_hour
    projected = snapshot.comes_to_usd
    parts = [f"cost {money(snapshot.status.cost_usd)}"]
    if snapshot.status.budget_usd is not None:
        parts.append(f"budget {money(snapshot.status.budget_usd)}")
    if projected is not None:
        parts.append(f"comes to {money(projected.expected)}")
    if hourly is not None:
        parts.append(f"{money(hourly)}/h")
    return [" · ".join(parts)]
