"""A history for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from jobs.columns import cut, shortened
from jobs.counted import counted
from jobs.history.change import Change
from jobs.history.comparison import Comparison
from jobs.history.history import History, Line
from jobs.history.plot import plot
from jobs.history.row import Row
from runner.typeset import PrintCell, PrintColumn, PrintTable
from store.results import ItemPart

UNDEFINED = "n/a"
NAME = 24
"""Characters of a run's or a model's name in the table."""


def text(own: History) -> str:
    """The table, and the line plot below it."""
    runs = [run.folder.run_id for run in own.runs]
    return "\n".join(
        [*_table(own), "", _y_label(own), plot(runs, own.series), *_left_out(own)]
    )


def _y_label(own: History) -> str:
    return f"macro {own.newest.milestone.measure} by run, oldest first"


def _left_out(own: History) -> Iterator[str]:
    if own.left_out:
        item = own.newest.milestone.item
        yield (
            f"{counted(own.left_out, 'run')} left out, which did not ask for the same "
            f"on any {item} of the newest."
        )


def _table(own: History) -> Iterator[str]:
    measure = own.newest.milestone.measure
    header = (
        "run",
        "date",
        "model",
        "passed",
        f"macro {measure}",
        "micro",
        "verdict",
        "cost $",
        "delta",
        "",
    )
    lines = [header, *map(_cells, own.lines)]
    kept = [
        at
        for at, column in enumerate(zip(*lines, strict=True))
        if any(cell != UNDEFINED for cell in column[1:])
    ]
    widths = {at: max(len(line[at]) for line in lines) for at in kept}
    for line in lines:
        cells = (
            f"{line[at]:{'<' if at in _WORDS else '>'}{widths[at]}}" for at in kept
        )
        yield "  ".join(cells).rstrip()


_WORDS = {0, 1, 2, 9}
"""Columns of words; all others are numbers."""


def _cells(line: Line) -> tuple[str, ...]:
    row, previous = line.row, line.previous
    verdicts = row.verdicts
    return (
        cut(row.run, NAME),
        date(row),
        shortened(row.model, NAME),
        f"{row.passed}/{len(row.standings)}",
        _number(row.macro()),
        _number(row.micro),
        UNDEFINED if verdicts is None else f"{verdicts[0]}/{verdicts[1]}",
        UNDEFINED if row.cost_usd is None else f"{row.cost_usd:.4f}",
        UNDEFINED if previous is None else _signed(previous.delta),
        "; ".join(_notes(line)),
    )


def sheet(own: History) -> PrintTable:
    """The table for print."""
    newest = own.newest.milestone
    return PrintTable(
        title=f"Runs of {newest.job}, oldest first",
        columns=(
            PrintColumn(name="Run"),
            PrintColumn(name="Date"),
            PrintColumn(name="Model"),
            PrintColumn(name="Passed", kind="number"),
            PrintColumn(name=f"n ({newest.item}s)", kind="number"),
            PrintColumn(name=f"Macro {newest.measure}", kind="number"),
            PrintColumn(name=f"Micro {newest.measure}", kind="number"),
            PrintColumn(name="Cost in USD", kind="number"),
            PrintColumn(name="Change", kind="change"),
            PrintColumn(name="Note"),
        ),
        rows=tuple(map(_row, own.lines)),
    )


def _row(line: Line) -> tuple[PrintCell, ...]:
    row, previous = line.row, line.previous
    return (
        row.run,
        date(row),
        row.model,
        row.passed,
        len(row.standings),
        row.macro(),
        row.micro,
        row.cost_usd,
        None if previous is None else previous.delta,
        "; ".join(_notes(line)),
    )


def _notes(line: Line) -> Iterator[str]:
    if line.row.milestone.partial:
        yield "unfinished"
    if line.data_changed:
        yield "database changed"


def compared(
    comparison: Comparison, changes: Sequence[Change], *, max_drop: float
) -> str:
    """One comparison with the parts that were lost and gained."""
    now, then = comparison.now, comparison.then
    own = now.milestone
    sides = f"{now.run}, {now.model}, against {then.run}, {then.model}"
    values = [_number(row.macro(comparison.items)) for row in (now, then)]
    allowed = f"may fall by {max_drop:g}{_spread(comparison)}"
    change = f"{values[0]}, was {values[1]}: {_signed(comparison.delta)}"
    lines = [
        "",
        f"{sides}, on {_share(comparison)}:",
        f"  macro {own.measure} {change} ({allowed})",
    ]
    lines += (_change(each) for each in changes)
    if not changes:
        lines.append(f"  no {own.part} lost or gained")
    return "\n".join(lines)


def _share(comparison: Comparison) -> str:
    own = comparison.now
    every, n = len(own.standings), len(comparison.items)
    some = "" if n == every else f"{n} of "
    return f"{some}{counted(every, own.milestone.item)}"


def _spread(comparison: Comparison) -> str:
    spread = comparison.spread
    return f"; replicates lie {spread:.4f} apart" if spread else ""


def _change(each: Change) -> str:
    what = "lost  " if each.is_lost else "gained"
    scores = f"{_score(each.before)} -> {_score(each.after)}"
    why = f"  {each.after.lost_at}" if each.after.lost_at else ""
    return f"  {what}  {each.item}  {_one_line(each.part)}  score {scores}{why}"


def _score(part: ItemPart) -> str:
    return "none" if part.score is None else f"{part.score:g}"


def as_json(own: History) -> dict[str, Any]:
    """All lines, and what belongs to them."""
    newest = own.newest.milestone
    return {
        "job": newest.job,
        "measure": newest.measure,
        "runs": [_line_json(line) for line in own.lines],
        "left_out": own.left_out,
    }


def _line_json(line: Line) -> dict[str, Any]:
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
        "delta": None if previous is None else previous.delta,
        "delta_to": None if previous is None else previous.then.run,
        "unfinished": row.milestone.partial,
        "database_changed": line.data_changed,
    }


def compared_json(
    comparison: Comparison, changes: Sequence[Change], *, max_drop: float
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
        "lost": [_change_json(each) for each in changes if each.is_lost],
        "gained": [_change_json(each) for each in changes if not each.is_lost],
        "alerts": list(comparison.alerts(max_drop)),
    }


def _change_json(each: Change) -> dict[str, Any]:
    return {
        "item": each.item,
        "part": each.part,
        "score_before": each.before.score,
        "score": each.after.score,
        "lost_at": each.after.lost_at or None,
    }


def date(row: Row) -> str:
    """The day on which a run was made, by UTC."""
    return datetime.fromtimestamp(row.at_us / 1e6, UTC).date().isoformat()


def _number(value: float | None) -> str:
    return UNDEFINED if value is None else f"{value:.4f}"


def _signed(value: float | None) -> str:
    return UNDEFINED if value is None else f"{value + 0.0:+.4f}"


def _one_line(name: str) -> str:
    return " ".join(name.split())
