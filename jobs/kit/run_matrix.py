"""Shows the runs of a matrix: their estimate, their one table, and one HTML page."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from jobs.kit import tables
from jobs.kit.report.html import (
    Child,
    Element,
    element,
    facts_list,
    html_page,
    html_table,
    with_key,
)
from jobs.kit.tables import TableOf, count, number, per_key, printed
from runner.cli import console
from runner.estimate.estimate import EstimateRange, preview
from runner.matrix import MatrixCell, MatrixFile
from runner.score.render import REPORT
from runner.table_rendering import PrintTable, format_ends, format_number
from store.clock import Clock
from store.database import open_reader
from store.document import Block, Numbers, Words, as_text, wide_table
from store.read.live import live_status
from store.read.status import scorings
from store.read.tasks import parts
from store.read.usage import dollars


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixRow:
    """One run of a matrix."""

    run: str
    job: str
    model: str
    settings: Mapping[str, Any]  #: those that vary
    state: str  #: `not begun` where its log was never made
    planned: int = 0  #: tasks
    completed: int = 0
    unparsed: int = 0  #: of those that are completed
    failed: int = 0
    skipped: int = 0
    cost_usd: float | None = 0.0  #: None: a price is unknown
    possible_usd: float = 0.0
    scoring: int | None = None  #: the last that is recorded
    has_report: bool = False  #: of that scoring
    headline: str = ""  #: path of the metric that its scoring is judged by
    metrics: Mapping[str, Mapping[str, Any]]  #: of that scoring, by path

    @property
    def reached(self) -> Mapping[str, Any]:
        """The headline metric; nothing where there is none."""
        return self.metrics.get(self.headline, {})

    @property
    def ends(self) -> tuple[float | None, float | None] | None:
        """The interval of the headline metric."""
        lo, hi = self.reached.get("lo"), self.reached.get("hi")
        return None if lo is None and hi is None else (lo, hi)


def matrix_rows(cells: Sequence[MatrixCell], clock: Clock) -> list[MatrixRow]:
    """Return the state of the runs, in the order of the file."""
    return [_matrix_row(cell, clock) for cell in cells]


def _matrix_row(cell: MatrixCell, clock: Clock) -> MatrixRow:
    folder = cell.folder
    if not folder.log.is_file():
        return MatrixRow(
            run=folder.run_id,
            job=cell.work.job.name,
            model=cell.model,
            settings=cell.varied,
            state="not begun",
            metrics={},
        )
    with open_reader(folder.log) as reader:
        seen = live_status(reader, clock.now_us(), is_held=folder.is_alive())
        recorded = scorings(reader)
        keys = [bytes.fromhex(recorded[-1].digest)] if recorded else []
        cards = parts(reader, keys)
    status = seen.status
    model_records = json.loads(cards[keys[0]])["models"] if cards else {}
    return MatrixRow(
        run=folder.run_id,
        job=status.job,
        model=cell.model,
        settings=cell.varied,
        state=seen.state,
        planned=status.tasks.planned,
        completed=status.tasks.completed,
        unparsed=status.tasks.unparsed,
        failed=status.tasks.failed,
        skipped=status.tasks.skipped,
        cost_usd=status.cost_usd,
        possible_usd=status.possible_usd,
        scoring=recorded[-1].number if recorded else None,
        has_report=bool(recorded)
        and (folder.scores / str(recorded[-1].number) / REPORT).exists(),
        headline=recorded[-1].headline or "" if recorded else "",
        metrics=model_records.get(cell.model, {}).get("metrics", {}),
    )


def _metric_name(row: MatrixRow) -> str:
    """The headline metric's name with its key; a dash where there is none."""
    name = row.reached.get("name") or row.headline
    return f"{name} ({row.headline})" if name != row.headline else name or "-"


def interval(row: MatrixRow) -> str:
    """Return the interval of the headline metric; a dash where it has none."""
    if row.ends is None:
        return "-"
    return f"[{', '.join(format_ends(row.ends))}]"


CELLS: Mapping[str, Callable[[MatrixRow], str]] = {
    "run": lambda row: row.run,
    "state": lambda row: row.state.replace("_", " "),
    "tasks": lambda row: f"{row.completed:,} of {row.planned:,}",
    "failed": lambda row: f"{row.failed:,}",
    "cost": lambda row: dollars(row.cost_usd),
    "metric": _metric_name,
    "value": lambda row: (
        format_number(row.reached.get("value")) if row.reached else "-"
    ),
    "interval": interval,
    "n": lambda row: f"{row.reached['n']:,}" if row.reached else "-",
}
"""A row of the table on a terminal and on the page, by the heads of its columns."""


def cells(row: MatrixRow) -> tuple[str, ...]:
    """A row of the table, under the heads of `CELLS`."""
    return tuple(cell(row) for cell in CELLS.values())


def text(group: str, run_rows: Sequence[MatrixRow]) -> str:
    """The table, and how runs of one job are held against each other."""
    return as_text(
        [
            f"{group}: {len(run_rows)} runs",
            wide_table(tuple(CELLS), map(cells, run_rows)),
            *(f"compare: siftlog compare {a} {b}" for a, b in pairs(run_rows)),
        ]
    )


def print_table(group: str, run_rows: Sequence[MatrixRow]) -> PrintTable:
    """The table for print: each run with the metric that its scoring is judged by."""
    return tables.print_table(
        f"{group}: {len(run_rows)} runs",
        run_rows,
        (
            printed("Run", lambda row: row.run),
            printed("Model", lambda row: row.model),
            printed("State", lambda row: row.state.replace("_", " ")),
            printed("Completed", lambda row: row.completed, "number"),
            printed("Failed", lambda row: row.failed, "number"),
            printed("Cost in USD", lambda row: row.cost_usd, "number"),
            printed(
                "Metric", lambda row: row.reached.get("name") or row.headline or "-"
            ),
            printed("value", lambda row: row.reached.get("value"), "number"),
            printed(
                "interval", lambda row: "" if row.ends is None else row.ends, "interval"
            ),
            printed("n", lambda row: row.reached.get("n"), "number"),
            printed("Key", lambda row: row.headline, "key"),
        ),
    )


def pairs(run_rows: Sequence[MatrixRow]) -> Iterator[tuple[str, str]]:
    """Two scored runs of each job that has as many: the first and the next."""
    by_job: dict[str, list[str]] = {}
    for row in run_rows:
        if row.scoring is not None:
            by_job.setdefault(row.job, []).append(row.run)
    for runs in by_job.values():
        if len(runs) > 1:
            yield runs[0], runs[1]


def _settings(row: MatrixRow) -> str:
    return "; ".join(f"{name}={value}" for name, value in row.settings.items())


COMPARISON = TableOf[MatrixRow](
    name="comparison",
    columns=(
        tables.text("run", lambda row: row.run),
        tables.text("job", lambda row: row.job),
        tables.text("model", lambda row: row.model),
        tables.text("settings", _settings, "those that vary"),
        tables.text("state", lambda row: row.state),
        count("planned", lambda row: row.planned, "tasks"),
        count("completed", lambda row: row.completed),
        count("unparsed", lambda row: row.unparsed),
        count("failed", lambda row: row.failed),
        count("skipped", lambda row: row.skipped),
        number("cost_usd", lambda row: row.cost_usd),
        number("possible_usd", lambda row: row.possible_usd),
        count("scoring", lambda row: row.scoring),
        tables.text("metric", lambda row: row.headline),
        per_key("{}", ("value", "lo", "hi"), lambda row, end: row.reached.get(end)),
        count("n", lambda row: row.reached.get("n")),
    ),
)
"""The file `comparison.csv`."""


def as_json(group: str, run_rows: Sequence[MatrixRow]) -> dict[str, Any]:
    """Return the content of `comparison.json`, which `--json` prints last."""
    return {"group": group, "runs": [asdict(row) for row in run_rows]}


_NUMERIC = {"tasks", "failed", "cost", "value", "interval", "n"}


def page(group: str, run_rows: Sequence[MatrixRow], budget_usd: float | None) -> str:
    """The text of the page.

    Args:
        group: name of the matrix.
        run_rows: its runs.
        budget_usd: what all of them together may cost.
    """
    jobs = tuple(dict.fromkeys(row.job for row in run_rows))
    metrics = {
        f"Metrics of {job}": _metrics([row for row in run_rows if row.job == job])
        for job in jobs
    }
    return html_page(
        f"{group}: {len(run_rows)} runs",
        _facts(run_rows, jobs, budget_usd),
        {"Comparison": _table(run_rows), **metrics},
        _footer(run_rows),
    )


def _facts(
    run_rows: Sequence[MatrixRow], jobs: Sequence[str], budget: float | None
) -> Element:
    costs = [row.cost_usd for row in run_rows]
    known_costs = [usd for usd in costs if usd is not None]
    unknown = (
        "" if len(known_costs) == len(costs) else ", and runs whose price is unknown"
    )
    return facts_list(
        {
            "jobs": ", ".join(jobs),
            "models": ", ".join(dict.fromkeys(row.model for row in run_rows)),
            "cost": f"{dollars(sum(known_costs))}{unknown}",
            "budget": "none" if budget is None else f"{dollars(budget)} for all runs",
        }
    )


def _table(run_rows: Sequence[MatrixRow]) -> Iterator[Element]:
    yield html_table(
        "Each run with the metric that its last scoring is judged by. Intervals are of "
        "each run alone; whether two differ, their paired comparison says.",
        [(Numbers if name in _NUMERIC else Words)(name) for name in CELLS],
        [(_link(row), *cells(row)[1:]) for row in run_rows],
    )


def _link(row: MatrixRow) -> Element | str:
    """The run's id, leading to its report where there is one."""
    if not row.has_report:
        return row.run
    href = f"../{row.run}/scores/{row.scoring}/{REPORT}"
    return element("a", row.run, href=href)


def _metrics(run_rows: Sequence[MatrixRow]) -> Iterator[Element]:
    """Every metric of a job's scored runs, side by side."""
    scored = [row for row in run_rows if row.metrics]
    if not scored:
        return
    first = [row.headline for row in scored if row.headline]
    paths = dict.fromkeys([*first, *(path for row in scored for path in row.metrics)])
    yield html_table(
        "Values by run; the run's own report has intervals and definitions.",
        [Words("metric"), *(Numbers(row.run) for row in scored)],
        [
            (
                _metric_cell(path, scored),
                *(
                    format_number(row.metrics[path]["value"])
                    if path in row.metrics
                    else "-"
                    for row in scored
                ),
            )
            for path in paths
        ],
    )


def _metric_cell(path: str, scored: Sequence[MatrixRow]) -> Child:
    """A metric's name with its key below; the key alone where nobody named it."""
    metrics = (row.metrics[path] for row in scored if path in row.metrics)
    name = next((metric.get("name", "") for metric in metrics), "")
    return with_key("" if name == path else name, path)


def _footer(run_rows: Sequence[MatrixRow]) -> Iterator[Element]:
    yield element(
        "p",
        "Numbers are shown to three decimals; comparison.csv and comparison.json "
        "hold all digits. n/a is undefined; it is not 0.",
    )
    for a, b in pairs(run_rows):
        yield element("p", element("code", f"siftlog compare {a} {b}"))


_PREVIEW_HEADERS = ("run", "what", "items", "calls", "dollars, expected (low to high)")


@dataclass(frozen=True, slots=True, kw_only=True)
class PreviewedRun:
    """One run before it is carried out."""

    cell: MatrixCell
    items: int
    calls: EstimateRange  #: of the whole run, whatever has been asked already
    usd: EstimateRange | None  #: None: a price is unknown

    @property
    def status(self) -> str:
        """State that a start would give it."""
        if self.cell.state is None:
            return "new"
        return "nothing left" if self.cell.is_over else f"goes on ({self.cell.state})"


def preview_runs(cells: Sequence[MatrixCell], runs_dir: Path) -> list[PreviewedRun]:
    """Estimate every run from a sample of its plan; nothing is sent or written."""
    previewed_runs = []
    for cell in cells:
        estimate = preview(cell.work, cell.options, runs_dir)
        previewed_runs.append(
            PreviewedRun(
                cell=cell,
                items=estimate.items,
                calls=estimate.total.calls,
                usd=estimate.total.usd,
            )
        )
    return previewed_runs


def preview_text(file: MatrixFile, previewed_runs: Sequence[PreviewedRun]) -> str:
    """The runs, and whether the budget would hold."""
    rows = [
        (
            run.cell.folder.run_id,
            run.status,
            f"{run.items:,}",
            console.number(run.calls.expected),
            console.cost(None) if run.usd is None else _span(run.usd),
        )
        for run in previewed_runs
    ]
    total = whole_cost(previewed_runs)
    total_text = console.cost(None) if total is None else _span(total)
    blocks: list[Block] = [
        f"{file.group}: {len(previewed_runs)} runs; nothing is sent",
        wide_table(_PREVIEW_HEADERS, rows),
        f"in all, had nothing been asked yet: {total_text}",
    ]
    if file.options.budget is not None:
        blocks.append(f"budget for all runs: {dollars(file.options.budget)}")
    return as_text(blocks)


def whole_cost(previewed_runs: Sequence[PreviewedRun]) -> EstimateRange | None:
    """Return the cost of all runs together; None: a price is unknown."""
    spans = [run.usd for run in previewed_runs if run.usd is not None]
    if len(spans) < len(previewed_runs):
        return None
    return sum(spans, EstimateRange(low=0.0, expected=0.0, high=0.0))


def preview_json(
    file: MatrixFile, previewed_runs: Sequence[PreviewedRun]
) -> dict[str, Any]:
    """The same for programs."""
    total = whole_cost(previewed_runs)
    return {
        "group": file.group,
        "dry_run": True,
        "budget_usd": file.options.budget,
        "cost_usd": None if total is None else _json(total),
        "runs": [
            {
                "run": run.cell.folder.run_id,
                "job": run.cell.work.job.name,
                "model": run.cell.model,
                "settings": dict(run.cell.varied),
                "what": run.status,
                "items": run.items,
                "calls": _json(run.calls),
                "cost_usd": None if run.usd is None else _json(run.usd),
            }
            for run in previewed_runs
        ],
    }


def _span(span: EstimateRange) -> str:
    if span.low == span.high:
        return dollars(span.expected)
    return f"{dollars(span.expected)} ({dollars(span.low)} to {dollars(span.high)})"


def _json(span: EstimateRange) -> dict[str, float]:
    return {
        "low": round(span.low, 6),
        "expected": round(span.expected, 6),
        "high": round(span.high, 6),
    }
