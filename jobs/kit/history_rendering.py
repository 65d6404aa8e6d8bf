"""Renders a history as a table, a line plot in characters, a figure and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from string import ascii_letters
from typing import Any

from jobs.kit import tables
from jobs.kit.history import History, HistoryLine, HistoryRow, PartChange, RowComparison
from jobs.kit.tables import printed
from jobs.kit.text_format import UNDEFINED, fixed, plural
from runner.scorecard import Axis, Figure, LineSeries, Mark, Panel, ReferenceLine
from runner.table_rendering import PrintTable
from store.document import Block, Column, Numbers, TableBlock, Words, as_text
from store.results import ItemPart

HEIGHT = 11
"""Lines of the axis, both ends included: between tenths they are whole hundredths."""

WIDTH = 60
"""Columns for runs."""

STEP = 12
"""Columns from run to run, at most."""

TIED, BETWEEN = "*", "·"
"""Marks of several models at one point, and of the line between points."""


def plot(runs: Sequence[str], series: Mapping[str, Mapping[str, float]]) -> str:
    """Draw the values of some models.

    Args:
        runs: the places along x, in order; only the last that fit are drawn.
        series: by model the value of each run that it has one in; only as many as
            there are letters are drawn.
    """
    visible_runs = list(runs[-WIDTH:])
    positions = {run: index for index, run in enumerate(visible_runs)}
    step = min(STEP, (WIDTH - 1) // max(len(visible_runs) - 1, 1))
    points = {
        letter: [
            (positions[run] * step, value)
            for run, value in values.items()
            if run in positions
        ]
        for letter, values in zip(ascii_letters, series.values(), strict=False)
    }
    values = [value for model_points in points.values() for _, value in model_points]
    least = low(values)
    rows = [[" "] * (step * max(len(visible_runs) - 1, 0) + 1) for _ in range(HEIGHT)]
    for model_points in points.values():
        for column, value in _between(model_points):
            rows[_line(value, least)][column] = BETWEEN
    for letter, model_points in points.items():
        for column, value in model_points:
            line = rows[_line(value, least)]
            line[column] = letter if line[column] in f" {BETWEEN}" else TIED
    axis = [1.0 - (1.0 - least) * line / (HEIGHT - 1) for line in range(HEIGHT)]
    lines = [
        f"{value:5.2f} |{''.join(row)}".rstrip()
        for value, row in zip(axis, rows, strict=True)
    ]
    legend = "  ".join(
        f"{letter} {model}" for letter, model in zip(points, series, strict=False)
    )
    return "\n".join([*lines, f"{'':6}+{'-' * len(rows[0])}", f"{'':7}{legend}"])


def low(values: Sequence[float]) -> float:
    """The lower end of the axis: a whole tenth below all values."""
    least = min(values, default=0.0)
    return min(max(int(least * 10) / 10, 0.0), 0.9)


def _line(value: float, least: float) -> int:
    return round((1.0 - value) / (1.0 - least) * (HEIGHT - 1))


def _between(points: Sequence[tuple[int, float]]) -> Iterator[tuple[int, float]]:
    """The columns between neighbouring points, with the values of a straight line."""
    for (left, start), (right, end) in pairwise(points):
        for column in range(left + 1, right):
            share = (column - left) / (right - left)
            yield column, start + share * (end - start)


NAME = 24
"""Characters of a run's or a model's name in the table."""


def text(history: History) -> str:
    """The table, and the line plot below it."""
    runs = [run.folder.run_id for run in history.runs]
    blocks: list[Block] = [_table(history), "", _y_label(history)]
    lines = plot(runs, history.series).split("\n")
    return as_text([*blocks, *lines, *_left_out(history)])


def _y_label(history: History) -> str:
    return f"macro {history.newest.milestone.measure} by run, oldest first"


def _left_out(history: History) -> Iterator[str]:
    if history.left_out:
        item = history.newest.milestone.item
        yield (
            f"{plural(history.left_out, 'run')} left out because they "
            f"share no {item} with the newest."
        )


def _table(history: History) -> TableBlock:
    """Returns a row for each run and model, without columns that no run has."""
    measure = history.newest.milestone.measure
    columns: tuple[Column, ...] = (
        Words("run", NAME),
        Words("date"),
        Words("model", NAME, keeps_end=True),
        Numbers("passed"),
        Numbers(f"macro {measure}"),
        Numbers("micro"),
        Numbers("verdict"),
        Numbers("cost $"),
        Numbers("delta"),
        Words(""),
    )
    rows = [_cells(line) for line in history.lines]
    table = TableBlock(columns, rows, indent=0, is_wide=True).filled()
    undefined = [
        [UNDEFINED if cell is None else cell for cell in row] for row in table.rows
    ]
    return replace(table, rows=undefined)


def _cells(line: HistoryLine) -> tuple[str | None, ...]:
    row, previous = line.row, line.previous
    verdicts = row.verdicts
    return (
        row.run,
        date(row),
        row.model,
        f"{row.passed}/{len(row.standings)}",
        _decimals(row.macro()),
        _decimals(row.micro),
        None if verdicts is None else f"{verdicts[0]}/{verdicts[1]}",
        _decimals(row.cost_usd),
        None if previous is None else _signed(previous.delta),
        "; ".join(_notes(line)),
    )


def _decimals(value: float | None) -> str | None:
    return None if value is None else f"{value:.4f}"


def print_table(history: History) -> PrintTable:
    """The table for print."""
    newest = history.newest.milestone
    return tables.print_table(
        f"Runs of {newest.job}, oldest first",
        history.lines,
        (
            printed("Run", lambda line: line.row.run),
            printed("Date", lambda line: date(line.row)),
            printed("Model", lambda line: line.row.model),
            printed("Passed", lambda line: line.row.passed, "number"),
            printed(
                f"n ({newest.item}s)", lambda line: len(line.row.standings), "number"
            ),
            printed(f"Macro {newest.measure}", lambda line: line.row.macro(), "number"),
            printed(f"Micro {newest.measure}", lambda line: line.row.micro, "number"),
            printed("Cost in USD", lambda line: line.row.cost_usd, "number"),
            printed("Change", lambda line: line.delta, "change"),
            printed("Note", lambda line: "; ".join(_notes(line))),
        ),
    )


def _notes(line: HistoryLine) -> Iterator[str]:
    if line.row.milestone.partial:
        yield "unfinished"
    if line.data_changed:
        yield "database changed"


def comparison_text(
    comparison: RowComparison, changes: Sequence[PartChange], *, max_drop: float
) -> str:
    """One comparison with the parts that were lost and gained."""
    now, then = comparison.now, comparison.then
    milestone = now.milestone
    sides = f"{now.run}, {now.model}, against {then.run}, {then.model}"
    values = [fixed(row.macro(comparison.items), ".4f") for row in (now, then)]
    allowed = f"may fall by {max_drop:g}{_spread(comparison)}"
    change = f"{values[0]}, was {values[1]}: {_signed(comparison.delta)}"
    lines = [
        "",
        f"{sides}, on {_share(comparison)}:",
        f"  macro {milestone.measure} {change} ({allowed})",
    ]
    lines += (_change(part_change) for part_change in changes)
    if not changes:
        lines.append(f"  no {milestone.part} lost or gained")
    return "\n".join(lines)


def _share(comparison: RowComparison) -> str:
    row = comparison.now
    every, n = len(row.standings), len(comparison.items)
    some = "" if n == every else f"{n} of "
    return f"{some}{plural(every, row.milestone.item)}"


def _spread(comparison: RowComparison) -> str:
    spread = comparison.spread
    return f"; replicates lie {spread:.4f} apart" if spread else ""


def _change(part_change: PartChange) -> str:
    label = "lost  " if part_change.is_lost else "gained"
    scores = f"{_score(part_change.before)} -> {_score(part_change.after)}"
    reason = f"  {part_change.after.lost_at}" if part_change.after.lost_at else ""
    return (
        f"  {label}  {part_change.item}  {_one_line(part_change.part)}  score "
        f"{scores}{reason}"
    )


def _score(part: ItemPart) -> str:
    return "none" if part.score is None else f"{part.score:g}"


def as_json(history: History) -> dict[str, Any]:
    """All lines, and what belongs to them."""
    newest = history.newest.milestone
    return {
        "job": newest.job,
        "measure": newest.measure,
        "runs": [_line_json(line) for line in history.lines],
        "left_out": history.left_out,
    }


def _line_json(line: HistoryLine) -> dict[str, Any]:
    row, previous = line.row, line.previous
    verdicts = row.verdicts
    return {
        "run": row.run,
        "date": date(row),
        "model": row.model,
        "items": len(row.standings),
        "passed": row.passed,
        "macro": row.macro(),
        "micro": row.micro,
        "verdicts_passed": None if verdicts is None else verdicts[0],
        "verdicts": None if verdicts is None else verdicts[1],
        "cost_usd": row.cost_usd,
        "delta": line.delta,
        "delta_to": None if previous is None else previous.then.run,
        "unfinished": row.milestone.partial,
        "database_changed": line.data_changed,
    }


def comparison_json(
    comparison: RowComparison, changes: Sequence[PartChange], *, max_drop: float
) -> dict[str, Any]:
    """One comparison with the parts that were lost and gained."""
    now, then = comparison.now, comparison.then
    return {
        "run": now.run,
        "model": now.model,
        "against": then.run,
        "against_model": then.model,
        "items": list(comparison.items),
        "macro": now.macro(comparison.items),
        "macro_before": then.macro(comparison.items),
        "delta": comparison.delta,
        "spread": comparison.spread,
        "failed": list(comparison.failed),
        "lost": [_change_json(change) for change in changes if change.is_lost],
        "gained": [_change_json(change) for change in changes if not change.is_lost],
        "alerts": list(comparison.alerts(max_drop)),
    }


def _change_json(part_change: PartChange) -> dict[str, Any]:
    return {
        "item": part_change.item,
        "part": part_change.part,
        "score_before": part_change.before.score,
        "score": part_change.after.score,
        "lost_at": part_change.after.lost_at or None,
    }


def date(row: HistoryRow) -> str:
    """The day on which a run was made, by UTC."""
    return datetime.fromtimestamp(row.at_us / 1e6, UTC).date().isoformat()


def _signed(value: float | None) -> str:
    return fixed(None if value is None else value + 0.0, "+.4f")


def _one_line(name: str) -> str:
    return " ".join(name.split())


MAX_NAMED_RUNS = 30
"""Runs that are called by their names, at most; more are numbered."""


def history_figure(history: History) -> Figure:
    """Draw a line for each model, with a rule where other data were searched."""
    measure = history.newest.milestone.measure
    return Figure(
        name="history",
        title=f"{measure.capitalize()} by run",
        caption=f"Mean {measure} over each run's {history.newest.milestone.item}"
        "s, oldest run first. A vertical line marks a change of the "
        "searched data: runs on its two sides are not compared.",
        panels=(
            Panel(
                marks=tuple(_marks(history)),
                x=_runs(history),
                y=Axis(label=f"macro {measure}", lo=low(_values(history)), hi=1.0),
            ),
        ),
    )


def _runs(history: History) -> Axis:
    if len(history.runs) > MAX_NAMED_RUNS:
        return Axis(label="run, oldest first", lo=0, hi=len(history.runs) - 1)
    return Axis(names=tuple(run.folder.run_id for run in history.runs))


def _values(history: History) -> list[float]:
    return [value for values in history.series.values() for value in values.values()]


def _marks(history: History) -> Iterator[Mark]:
    positions = {run.folder.run_id: index for index, run in enumerate(history.runs)}
    for number, (model, values) in enumerate(history.series.items()):
        yield LineSeries(
            x=tuple(positions[run] for run in values),
            y=tuple(values.values()),
            label=model,
            series=number,
            marked=True,
        )
    for index, (before, after) in enumerate(pairwise(history.runs)):
        if before.milestone.data != after.milestone.data:
            yield ReferenceLine(
                way="vertical", at=index + 0.5, label="database changed"
            )
