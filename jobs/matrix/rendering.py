"""The one table of a matrix, as text, as rows of a file, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

from jobs.matrix.standing import Standing
from jobs.report.wording import number
from runner.cli.console import in_columns
from runner.scorecard import Cell as TableCell
from runner.typeset import PrintCell as Typeset
from runner.typeset import PrintColumn, PrintTable
from store.read.usage import dollars

HEADS = ("run", "state", "tasks", "failed", "cost", "metric", "value", "interval", "n")

COLUMNS = (
    *("run", "job", "model", "settings", "state", "planned", "completed", "unparsed"),
    *("failed", "skipped", "cost_usd", "possible_usd", "scoring", "metric", "value"),
    *("lo", "hi", "n"),
)
"""Of `comparison.csv`."""


def cells(one: Standing) -> tuple[str, ...]:
    """A row of the table, under `HEADS`."""
    reached = one.reached
    return (
        one.run,
        one.state.replace("_", " "),
        f"{one.completed:,} of {one.planned:,}",
        f"{one.failed:,}",
        dollars(one.cost_usd),
        _named(one),
        number(reached.get("value")) if reached else "-",
        interval(one),
        f"{reached['n']:,}" if reached else "-",
    )


def _named(one: Standing) -> str:
    """The headline metric's name with its key; a dash where there is none."""
    name = one.reached.get("name") or one.headline
    return f"{name} ({one.headline})" if name != one.headline else name or "-"


def interval(one: Standing) -> str:
    """Of the headline metric; a dash where it has none."""
    lo, hi = (one.reached.get(end) for end in ("lo", "hi"))
    return "-" if lo is None and hi is None else f"[{number(lo)}, {number(hi)}]"


def text(group: str, found: Sequence[Standing]) -> str:
    """The table, and how runs of one job are held against each other."""
    lines = [f"{group}: {len(found)} runs"]
    lines += in_columns([HEADS, *map(cells, found)])
    lines += [f"compare: siftlog compare {a} {b}" for a, b in pairs(found)]
    return "\n".join(lines)


def sheet(group: str, found: Sequence[Standing]) -> PrintTable:
    """The table for print: each run with the metric that its scoring is judged by."""
    rows: list[tuple[Typeset, ...]] = []
    for one in found:
        reached = one.reached
        lo, hi = reached.get("lo"), reached.get("hi")
        rows.append(
            (
                one.run,
                one.model,
                one.state.replace("_", " "),
                one.completed,
                one.failed,
                one.cost_usd,
                reached.get("name") or one.headline or "-",
                reached.get("value"),
                "" if lo is None and hi is None else (lo, hi),
                reached.get("n"),
                one.headline,
            )
        )
    return PrintTable(
        title=f"{group}: {len(found)} runs",
        columns=(
            PrintColumn(name="Run"),
            PrintColumn(name="Model"),
            PrintColumn(name="State"),
            PrintColumn(name="Completed", kind="number"),
            PrintColumn(name="Failed", kind="number"),
            PrintColumn(name="Cost in USD", kind="number"),
            PrintColumn(name="Metric"),
            PrintColumn(name="value", kind="number"),
            PrintColumn(name="interval", kind="interval"),
            PrintColumn(name="n", kind="number"),
            PrintColumn(name="Key", kind="key"),
        ),
        rows=tuple(rows),
    )


def pairs(found: Sequence[Standing]) -> Iterator[tuple[str, str]]:
    """Two scored runs of each job that has as many: the first and the next."""
    by_job: dict[str, list[str]] = {}
    for one in found:
        if one.scoring is not None:
            by_job.setdefault(one.job, []).append(one.run)
    for runs in by_job.values():
        if len(runs) > 1:
            yield runs[0], runs[1]


def rows(found: Sequence[Standing]) -> Iterator[tuple[TableCell, ...]]:
    """The lines of `comparison.csv`."""
    yield COLUMNS
    for one in found:
        reached = one.reached
        yield (
            one.run,
            one.job,
            one.model,
            "; ".join(f"{name}={value}" for name, value in one.settings.items()),
            one.state,
            one.planned,
            one.completed,
            one.unparsed,
            one.failed,
            one.skipped,
            one.cost_usd,
            one.possible_usd,
            one.scoring,
            one.headline,
            *(reached.get(name) for name in ("value", "lo", "hi", "n")),
        )


def as_json(group: str, found: Sequence[Standing]) -> dict[str, Any]:
    """What `comparison.json` holds, and `--json` prints last."""
    return {"group": group, "runs": [asdict(one) for one in found]}
