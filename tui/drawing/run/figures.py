"""How fast a run goes, how long answers take, what it costs, what is under way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from textual.content import Content

from store.present import AT_WORK
from store.views import Latencies, Recent
from tui.drawing.chart import bar, course
from tui.drawing.format import (
    amount,
    count,
    duration,
    latency,
    money,
    percent,
    task_name,
)
from tui.drawing.room import GAP, MUTED, Column, Room, lines_of, table
from tui.drawing.run.models import names_of, short_names
from tui.sources.sight import ENDED, Snapshot

ROOMY = 40
"""Cells from which on a latency has room for minutes."""
WHERE = 16
"""The shortest column for both a stage and a model."""


def goodput(snapshot: Snapshot, room: Room) -> Content:
    """Tasks completed a minute: lately, at best, and over the last hour."""
    window, best = snapshot.recent_minutes, snapshot.facts.best
    share = "" if snapshot.of_best is None else f", {percent(snapshot.of_best)} of best"
    if snapshot.rate is None:
        lines: list[str | Content] = [_why_not(snapshot)]
    else:
        lines = [f"{amount(snapshot.rate)}, last {window} min{share}"]
    if room.height > len(lines) + 2:
        lines.append(f"best 10 min {amount(best)}")
    if room.height > len(lines) + 1:
        drawn = course(snapshot.course, room.width, room.glyphs)
        lines.append(Content.styled(drawn, "$state-done"))
    tokens_in = sum(row.tokens_in for row in snapshot.recent)
    tokens_out = sum(row.tokens_out for row in snapshot.recent)
    is_known = snapshot.rate is not None
    lines.append(
        f"tokens/s  in {amount(_a_second(tokens_in, window) if is_known else None)}"
        f"  out {amount(_a_second(tokens_out, window) if is_known else None)}"
    )
    return lines_of(lines, room)


def _why_not(snapshot: Snapshot) -> str:
    """Why there is no rate."""
    if snapshot.is_ended:
        return "no process works on it"
    return "no whole minute yet" if snapshot.state in AT_WORK else "nothing is started"


def _a_second(n: int, minutes: int) -> float | None:
    return n / (60 * minutes) if minutes else None


def latencies(snapshot: Snapshot, room: Room) -> Content:
    """Percentiles of the models' answers: the latest, or all once it has ended."""
    answers = snapshot.facts.answers
    found: Sequence[Recent | Latencies] = snapshot.facts.latencies
    window = "of all answers"
    if answers is not None and answers.n and snapshot.state not in ENDED:
        found = answers.models
        window = f"of the last {count(answers.n)} answers ({duration(answers.seconds)})"
    if not found:
        return lines_of(["No answer has arrived yet."], room)
    width = 8 if room.width >= ROOMY else 6
    figures = [Column(head, width) for head in ("p50", "p95", "p99")]
    names = short_names(each.model for each in found)
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
        for each in found
    ]
    if room.height <= len(rows) + 1:
        return table([name, *figures], rows, room)
    above = replace(room, height=room.height - 1)
    drawn = table([name, *figures], rows, above)
    return Content.assemble(drawn, "\n", lines_of([window], room, MUTED))


def cost(snapshot: Snapshot, room: Room) -> Content:
    """What was spent, at what rate, and what it comes to."""
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
            f"comes to {money(projected.expected)} ({money(projected.low)}–{high})"
        )
    if budget and spent is not None:
        mark = None if projected is None else projected.expected / budget
        shown = bar(spent / budget, max(1, room.width - 14), room.glyphs, mark)
        lines.append(f"{shown} of {money(budget)}")
    if status.possible_usd:
        lines.append(f"up to {money(status.possible_usd)} more, billed or not")
    return lines_of(lines, room)


def oldest(snapshot: Snapshot, room: Room) -> Content:
    """The calls that have been out longest."""
    if not snapshot.facts.oldest:
        return lines_of(["No call is under way."], room)
    names = names_of(snapshot)
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
            ("" if is_narrow else f"{call.stage} ")
            + names.get(call.model, call.model)
            + (f" after {call.error}" if call.error else ""),
        ]
        for call in snapshot.facts.oldest
    ]
    return table(columns, rows, room)


def oldest_goals(snapshot: Snapshot) -> list[str]:
    """The filter of each row."""
    return [task_name(call.task) for call in snapshot.facts.oldest]
