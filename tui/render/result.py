"""Renders the end of a run: its result, or what is missing and how to go on."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from rich.cells import cell_len
from textual.content import Content

from store.document import plural
from store.read.forecast import time_left_text
from store.read.next_steps import next_commands
from store.task import TaskState
from tui.render.format import count, duration, money, percent
from tui.render.glyphs import UNICODE
from tui.render.headline import headline_table
from tui.render.layout import (
    MUTED,
    PanelColumn,
    Room,
    clip,
    lines_of,
    one_line,
    table_lines,
    wrapped_lines,
)
from tui.render.progress import stage_rows
from tui.render.sentences import may_be_billed, span, spent
from tui.sources.result import AnswerSheet, ResultFinding
from tui.sources.run_snapshot import RunSnapshot

_LABEL = 10
"""Cells of a label at the left."""
_LONGEST = 300
"""Maximum cells of a text, which its room cuts again."""
_SIGNS = {"error": "$state-failed bold", "warn": "$state-waiting bold"}
_MONITOR = "siftlog watch "
"""The command that the reader has typed."""
_SCORING_S = 1800
"""Age of an end after which it is not said that the run is being scored."""


_MEASURE = Room(width=70, height=50, glyphs=UNICODE)
"""For the height of a panel: as narrow as it gets beside another."""


def result(snapshot: RunSnapshot, room: Room) -> Content:
    """Draw the result of a run that has ended as planned."""
    return lines_of(list(_result(snapshot, room)), room)


def result_height(snapshot: RunSnapshot) -> int:
    """Return the lines that the result takes."""
    return len(list(_result(snapshot, _MEASURE)))


def unfinished(snapshot: RunSnapshot, room: Room) -> Content:
    """Draw what is missing of a run that ended early, and how to go on."""
    return lines_of(list(_unfinished(snapshot, room)), room)


def unfinished_height(snapshot: RunSnapshot) -> int:
    """Return the lines that this takes."""
    return len(list(_unfinished(snapshot, _MEASURE)))


def _fact(label: str, text: str | Content) -> Content:
    safe = one_line(text, _LONGEST) if isinstance(text, str) else text
    return Content.assemble((clip(label, _LABEL), MUTED), safe)


def _result(snapshot: RunSnapshot, room: Room) -> Iterator[str | Content]:
    run, seen = shlex.quote(snapshot.status.run_id), snapshot.result
    yield from _summary(snapshot)
    if seen is None:
        is_recent = snapshot.age_s(snapshot.worked_until_us) < _SCORING_S
        if snapshot.has_process and is_recent:  # later, its number may be another's
            yield "Being scored now; the report follows."
            return
        if snapshot.status.scorings:
            yield "The scoring is being read, or its files are missing."
        else:
            yield f"The run is not scored yet: siftlog score {run}"
        yield from _next(snapshot, room)
        return
    yield ""
    tail = [
        *_findings(seen.findings, seen.notable, room),
        _fact("report", _path(seen.report))
        if seen.report is not None
        else _fact("files", _path(seen.folder)),
        *_next(snapshot, room),
    ]
    above = room.height - len(tail) - 4  # the summary, and two blank lines
    if seen.headline is not None:
        table = headline_table(seen.headline, replace(room, height=max(2, above)))
        yield from table
        above -= len(table)
    if seen.answers is not None and above > 2:  # noqa: PLR2004 - a head and a row
        yield from answer_lines(seen.answers, replace(room, height=above))
    yield ""
    yield from tail


def _path(path: Path) -> str:
    """Return a path, relative to the current folder if it is below it."""
    try:
        return str(path.absolute().relative_to(Path.cwd()))
    except ValueError:
        return str(path)


def _summary(snapshot: RunSnapshot) -> Iterator[Content]:
    tasks = snapshot.status.tasks
    took = snapshot.facts.worked_s
    parts = [
        f"{count(tasks.completed)} completed",
        f"{count(tasks.failed)} failed",
        f"{count(tasks.unparsed)} unparsed",
    ]
    if tasks.skipped:
        parts.append(f"{count(tasks.skipped)} skipped")
    yield _fact("tasks", " · ".join(parts))
    parts = [duration(took), f"cost {spent(snapshot)}"]
    parts += filter(None, [may_be_billed(snapshot)])
    yield _fact("took", " · ".join(parts))


def _next(snapshot: RunSnapshot, room: Room) -> Iterator[Content]:
    """Yield the commands that the command line names too, as many on a line as fit."""
    explain = "" if snapshot.result is None else snapshot.result.explain
    commands = next_commands(snapshot.present, snapshot.status.run_id, explain)
    label, line = "next", ""
    for command in (c.line for c in commands if not c.line.startswith(_MONITOR)):
        joined = f"{line}  ·  {command}" if line else command
        if line and cell_len(joined) > room.width - _LABEL:
            yield _fact(label, line)
            label, line = "", command
        else:
            line = joined
    yield _fact(label, line)


def _findings(
    findings: Sequence[ResultFinding], notable: Sequence[ResultFinding], room: Room
) -> Iterator[Content]:
    """Yield errors and warnings; notes are counted."""
    most = max(1, room.height // 3)
    for at, finding in enumerate(notable[:most]):
        word = f"{room.glyphs.stalled} {finding.severity}"
        text = f"{finding.where}: {finding.message}"
        width = max(1, room.width - _LABEL - 8)
        lines = wrapped_lines([text], replace(room, width=width, has_lead=False), 2)
        for number, line in enumerate(lines.split("\n")):
            sign = clip("" if number else word, 8), _SIGNS.get(finding.severity, "")
            label = "" if at or number else "findings"
            yield _fact(label, Content.assemble(sign, line))
    rest = len(findings) - min(most, len(notable))
    if not notable:
        yield _fact(
            "findings", f"no warning; {plural(rest, 'note')}" if rest else "none"
        )
    elif rest:
        yield _fact("", f"and {rest} more in the report")


def answer_lines(sheet: AnswerSheet, room: Room) -> list[Content]:
    """Draw the first answers, with as many fields as fit."""
    widths = [
        min(
            32,
            max(
                cell_len(sheet.columns[at]),
                *(cell_len(row[at]) for row in sheet.rows[:40] or [sheet.columns]),
            ),
        )
        for at in range(len(sheet.columns))
    ]
    used, column_n = 0, 0
    for width in widths:
        if column_n and used + width > room.width:
            break
        used, column_n = used + width + 2, column_n + 1
    columns = [
        PanelColumn(head, width, is_right=False)
        for head, width in zip(sheet.columns[:column_n], widths, strict=False)
    ]
    flat = replace(room, has_lead=False, cursor=None)
    rows = [list(row[:column_n]) for row in sheet.rows]
    return list(table_lines(columns, rows, flat).split("\n"))


def _unfinished(snapshot: RunSnapshot, room: Room) -> Iterator[str | Content]:
    """Yield what is missing, and how to go on."""
    status = snapshot.status
    done, remaining = snapshot.progress.done, snapshot.progress.remaining
    share = percent(snapshot.share, tenths=True)
    yield _fact("done", f"{plural(done, 'task')} ({share})")
    missing = f"{plural(round(remaining.expected), 'task')} remaining"
    more = round(remaining.expected) - status.tasks.open
    if more > 0:
        missing += f": {status.tasks.open:,} planned, about {more:,} not planned yet"
    elif not status.planning_exhausted:
        missing += "; not all is planned yet"
    yield _fact("missing", missing)
    tail = list(_how_to_go_on(snapshot, room))
    columns = [
        PanelColumn("stage", 10, is_right=False),
        PanelColumn("done", 6),
        PanelColumn("queued", 9),
        PanelColumn("outcome unknown", 15),
        PanelColumn("waiting", 8),
        PanelColumn("failed", 8),
    ]
    rows = stage_rows(snapshot)
    longest = max((cell_len(row.stage) for row in rows), default=0)
    columns[0] = replace(
        columns[0], width=max(5, min(longest, room.width - 56 - _LABEL))
    )
    table = table_lines(
        columns,
        [
            [
                row.stage,
                percent(row.share),
                count(row.states[TaskState.QUEUED]),
                count(row.states[TaskState.RUNNING]),
                count(row.states[TaskState.WAITING]),
                count(row.states[TaskState.FAILED]),
            ]
            for row in rows
        ],
        replace(
            room,
            has_lead=False,
            cursor=None,
            height=max(2, room.height - 2 - len(tail)),
        ),
    )
    for line in table.split("\n"):
        yield Content(" " * _LABEL) + line
    yield from tail


def _how_to_go_on(snapshot: RunSnapshot, room: Room) -> Iterator[Content]:
    """Yield the cost, the work that is left, and commands."""
    parts = [spent(snapshot), *filter(None, [may_be_billed(snapshot)])]
    yield _fact("cost", "  ·  ".join(parts))
    forecast, projected = snapshot.forecast, snapshot.comes_to_usd
    if forecast is not None and forecast.seconds is not None:
        left = time_left_text(forecast.seconds, paused=forecast.paused_tasks)
        words = f"{left} of work"
        if projected is not None:
            words += f"  ·  projected cost {span(projected, money)}"
        yield _fact("left", words)
    if snapshot.result is not None and snapshot.result.report is not None:
        yield _fact("report", _path(snapshot.result.report))
        headline, progress = snapshot.result.headline, snapshot.progress
        if headline is not None and headline.is_partial:
            total = round(progress.done + progress.remaining.expected)
            yield _fact("", f"partial: {headline.ended:,} of about {total:,} tasks")
    yield from _next(snapshot, room)
