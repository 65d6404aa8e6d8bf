"""Renders scorecards and tables as bytes and text, and calls report writers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias, cast

from pydantic import BaseModel

from runner.errors import UsageError
from runner.installed import entry_points
from runner.job import Job
from runner.score.notable import NotableAnswers
from runner.score.result import RunResult
from runner.scorecard import (
    LIMITS,
    NO_TRUTH,
    Cell,
    Direction,
    Finding,
    Metric,
    Scorecard,
    Table,
)
from runner.scorecard import Cell as Value
from runner.table_rendering import Kind, PrintCell, PrintColumn, PrintTable, typeset
from store.document import as_text, blocks_of
from store.events import Input
from store.read.course import Course
from store.read.status import Status
from store.read.usage import UsageCount


def metrics_json(card: Scorecard) -> dict[str, Any]:
    """Return one entry per model: its metrics by path."""
    return {
        model: {"metrics": {metric.path: _metric(metric) for metric in metrics}}
        for model, metrics in card.models.items()
    }


def headlines(card: Scorecard) -> list[str]:
    """Return the paths of headline metrics; the scoring's headline comes first.

    All others are details.
    """
    first = (
        m.path for metrics in card.models.values() for m in metrics if m.is_headline
    )
    return list(dict.fromkeys(filter(None, (card.headline, *first))))


def _metric(metric: Metric) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "name": metric.label,
        "meaning": metric.meaning,
        "direction": metric.direction,
        "value": metric.value,
        "n": metric.n,
        "n_defined": metric.n_defined,
        "lo": metric.lo,
        "hi": metric.hi,
        "definition": metric.definition,
    }
    if metric.note is not None:
        fields["note"] = metric.note
    return fields


def scorecard_json(job: Job, card: Scorecard) -> bytes:
    """Encode `scorecard.json`: without time, id or path, so it is reproducible."""
    content = {
        "job": job.name,
        "models": metrics_json(card),
        "settings": dict(card.settings),
        "missing": card.missing,
        "stale": card.stale,
        "findings": [
            {
                "code": f.code,
                "severity": f.severity,
                "where": f.where,
                "message": f.message,
                "n": f.n,
                "example": f.example,
            }
            for f in card.findings
        ],
        "failures": list(card.failures),
    }
    text = json.dumps(content, ensure_ascii=False, indent=1, allow_nan=False)
    return text.encode() + b"\n"


def operations_json(
    state: Status, usage: Sequence[UsageCount], card: Scorecard
) -> bytes:
    """Encode `operations.json`: data on the course of the run, not in the digest."""
    content = {
        "run": state.run_id,
        "partial": state.tasks.open > 0 or not state.planning_exhausted,
        "tasks": {
            "planned": state.tasks.planned,
            "completed": state.tasks.completed,
            "failed": state.tasks.failed,
            "skipped": state.tasks.skipped,
            "open": state.tasks.open,
        },
        "attempts": {
            "started": state.attempts.started,
            "answered": state.attempts.answered,
            "failed": state.attempts.failed,
            "unknown": state.attempts.unknown,
        },
        "tokens_in": state.tokens_in,
        "tokens_out": state.tokens_out,
        "tokens_cached": state.tokens_cached,
        "cost_usd": state.cost_usd,
        "possible_usd": state.possible_usd,
        "errors": dict(state.errors),
        "findings": list(state.findings),
        # the usage of imported answers is unknown
        "models": {}
        if state.imported
        else {
            model: _taken(model, state, usage, units)
            for model, units in card.units.items()
        },
    }
    return json.dumps(content, indent=1).encode() + b"\n"


def _taken(
    model: str, state: Status, usage: Sequence[UsageCount], units: Mapping[str, int]
) -> dict[str, Any]:
    """Return a model's usage in all stages and replicates, total and per unit."""
    counts = [count for count in usage if count.model == model]
    whole = {
        "tokens_in": sum(count.tokens_in for count in counts),
        "tokens_out": sum(count.tokens_out for count in counts),
        # while a price is unknown, the known cost may be only a part
        "cost_usd": None
        if state.cost_usd is None
        else state.model_cost_usd.get(model, 0.0),
    }
    return {
        "replies": sum(count.replies for count in counts),
        **whole,
        "per": {
            unit: {"n": n, **{name: _share(x, n) for name, x in whole.items()}}
            for unit, n in units.items()
        },
    }


def _share(amount: float | None, n: int) -> float | None:
    return None if amount is None or not n else amount / n


MODELS = 3
"""Maximum models per table: more would not fit the width of a page."""

METRICS = "metrics"
"""The table of all metrics."""

_BETTER = "Better"

METRIC_COLUMNS = (
    *("model", "metric", "name", "value", "lo", "hi", "n", "n_defined", "subset"),
    *("direction", "meaning", "definition", "note"),
)
"""Columns of `metrics.csv`, unless the job has a table of that name."""

BETTER: Mapping[Direction, str] = {"higher": "higher", "lower": "lower", "neither": "-"}
"""Direction of better values of a metric, as a cell."""


def overview(card: Scorecard) -> tuple[PrintTable, ...]:
    """Return tables of the headline metrics, models side by side.

    Each table fits on a page; more than `MODELS` models make several.
    """
    paths = headlines(card)
    by_path = {
        model: {metric.path: metric for metric in metrics}
        for model, metrics in card.models.items()
    }
    models = [model for model, metrics in by_path.items() if metrics.keys() & {*paths}]
    return tuple(
        _compared({model: by_path[model] for model in part}, paths, _level(card))
        for part in (models[at : at + MODELS] for at in range(0, len(models), MODELS))
    )


SAME_CHARS = 60
"""Characters by which a finding is recognised in a text that may cut it."""

SEVERITIES = ("error", "warn")
"""Severities of the findings that belong to the result of a run, worst first."""


def result_of(card: Scorecard) -> RunResult:
    """Return what the reader of a run wants to know first."""
    tables = [_for_terminal(table, card) for table in overview(card)]
    blocks = list(blocks_of(typeset(tables, "text"))) if tables else []
    further = further_result(card)
    if blocks and further:
        blocks.append("")
    blocks += blocks_of(further) if further else ()
    return RunResult(
        text=as_text(blocks),
        findings=severe_findings(card, further),
        explain=card.worth_explaining,
        headlines=tuple(headlines(card)),
    )


def further_result(card: Scorecard) -> str:
    """Return what a run's end shows behind the headline metrics, if there are any."""
    has_truth = all(finding.code != NO_TRUTH for finding in card.findings)
    return card.result or ("" if has_truth and overview(card) else card.summary)


def severe_findings(card: Scorecard, text: str) -> tuple[str, ...]:
    """Return a line for each finding that matters, unless the *text* has it.

    Beside errors and warnings, that is what limits the meaning of all figures.
    """
    ranks = {severity: rank for rank, severity in enumerate(SEVERITIES)}
    findings = [
        finding
        for finding in card.findings
        if (finding.severity in ranks or finding.where == LIMITS)
        and finding.message[:SAME_CHARS] not in text
    ]
    findings.sort(key=lambda finding: ranks.get(finding.severity, len(ranks)))
    return tuple(map(severe_line, findings))


def severe_line(finding: Finding) -> str:
    """Return a finding behind its severity."""
    if finding.where == LIMITS:
        return f"note: {finding.message}"
    return f"{finding.severity}: {finding.line}"


def _for_terminal(table: PrintTable, card: Scorecard) -> PrintTable:
    """Return a table of headline metrics that is narrow: without title and keys.

    The few metrics of which lower values are better say so in their names.
    """
    lower = {
        metric.label
        for metrics in card.models.values()
        for metric in metrics
        if metric.direction == "lower"
    }
    first, *others = (
        (at, column)
        for at, column in enumerate(table.columns)
        if column.kind != "key" and column.name != _BETTER
    )
    has_ends = any(isinstance(cell, tuple) for row in table.rows for cell in row)
    title = f"{first[1].name}, {_level(card)}" if has_ends else first[1].name
    return replace(
        table,
        title="",
        columns=(
            replace(first[1], name=title),
            *(replace(c, group="") if c.name == "n" else c for _, c in others),
        ),
        rows=tuple(
            (
                f"{row[0]} (lower is better)" if row[0] in lower else row[0],
                *(row[at] for at, _ in others),
            )
            for row in table.rows
        ),
    )


def print_tables(card: Scorecard, names: Sequence[str] = ()) -> Iterator[PrintTable]:
    """Yield the tables of a scoring for print.

    Args:
        card: the scorecard.
        names: names of tables; none: headline metrics, and the first tables of a
            report.

    Raises:
        UsageError: there is no such table, or its rows are in a file only.
    """
    tables_by_name = {table.name: table for table in card.tables if table.rows}
    for name in names:
        if name != METRICS and name not in tables_by_name:
            raise UsageError(
                f"--table {name}: unknown table; choose one of: "
                f"{', '.join((METRICS, *tables_by_name))}."
            )
    if not names:
        yield from overview(card)
        names = [table.name for table in tables_by_name.values() if table.is_headline]
    for name in names:
        if name == METRICS:
            yield from metrics_tables(card)
        else:
            yield print_table(tables_by_name[name])


def metrics_table(card: Scorecard) -> Table:
    """Return every metric of every model with full precision; a file of a scoring."""
    return Table(
        name=METRICS,
        columns=METRIC_COLUMNS,
        rows=tuple(
            (
                model,
                metric.path,
                metric.label,
                metric.value,
                metric.lo,
                metric.hi,
                metric.n,
                metric.n_defined,
                metric.subset,
                metric.direction,
                metric.meaning,
                metric.definition,
                metric.note,
            )
            for model, metrics in card.models.items()
            for metric in metrics
        ),
    )


def metrics_tables(card: Scorecard) -> Iterator[PrintTable]:
    """Yield a table of every metric for each model."""
    for model, metrics in card.models.items():
        by_path = {metric.path: metric for metric in metrics}
        yield _compared(
            {model: by_path}, list(by_path), _level(card), title="All metrics"
        )


def print_table(table: Table) -> PrintTable:
    """Format a short table of a scorecard, with intervals in one column."""
    names = table.columns
    ends = {
        name: (names.index(f"{name}.lo"), names.index(f"{name}.hi"))
        for name in names
        if {f"{name}.lo", f"{name}.hi"} <= {*names}
    }
    within = {f"{name}.{end}" for name in ends for end in ("lo", "hi")}
    printed = [(at, name) for at, name in enumerate(names) if name not in within]
    columns: list[PrintColumn] = []
    for at, name in printed:
        title = table.titles.get(name, name)
        kind: Kind = "number" if _is_numeric(row[at] for row in table.rows) else "text"
        columns.append(PrintColumn(name=title, kind=kind))
        if name in ends:
            columns.append(PrintColumn(name=f"{title}, interval", kind="interval"))
    return PrintTable(
        title=table.name,
        columns=tuple(columns),
        rows=tuple(tuple(_values(row, printed, ends)) for row in table.rows),
        note=table.caption,
    )


def _level(card: Scorecard) -> str:
    level = card.settings.get("level")
    return f"{100 * level:.4g}% interval" if isinstance(level, float) else "interval"


def _compared(
    models: Mapping[str, Mapping[str, Metric]],
    paths: Sequence[str],
    interval: str,
    title: str = "Headline metrics",
) -> PrintTable:
    metric_rows = [[metrics.get(path) for metrics in models.values()] for path in paths]
    rows = [
        (path, row_metrics)
        for path, row_metrics in zip(paths, metric_rows, strict=True)
        if any(row_metrics)
    ]
    counts = [
        {metric.n for metric in row_metrics if metric is not None}
        for _, row_metrics in rows
    ]
    # one n for all models, unless a metric covers other items for one of them
    shares_n = all(len(sizes) == 1 for sizes in counts)
    columns = [PrintColumn(name="Metric"), PrintColumn(name=_BETTER)]
    for model in models:
        columns += [
            PrintColumn(name="value", kind="number", group=model),
            PrintColumn(name=interval, kind="interval", group=model),
        ]
        if not shares_n:
            columns.append(PrintColumn(name="n", kind="number", group=model))
    if shares_n:
        columns.append(PrintColumn(name="n", kind="number"))
    columns.append(PrintColumn(name="Key", kind="key"))
    return PrintTable(
        title=f"{title}: {', '.join(models)}",
        columns=tuple(columns),
        rows=tuple(
            _row(path, row_metrics, shares_n=shares_n) for path, row_metrics in rows
        ),
    )


def _row(
    path: str, row_metrics: Sequence[Metric | None], *, shares_n: bool
) -> tuple[PrintCell, ...]:
    first = next(metric for metric in row_metrics if metric is not None)
    cells: list[PrintCell] = [first.label, BETTER[first.direction]]
    for metric in row_metrics:
        if metric is None:
            cells += ["", "", *([] if shares_n else [""])]
            continue
        has_ends = metric.lo is not None or metric.hi is not None
        cells += [metric.value, (metric.lo, metric.hi) if has_ends else ""]
        if not shares_n:
            cells.append(metric.n)
    return (*cells, *([first.n] if shares_n else []), path)


def _values(
    row: Sequence[Value],
    printed: Sequence[tuple[int, str]],
    ends: Mapping[str, tuple[int, int]],
) -> Iterator[PrintCell]:
    for at, name in printed:
        value = row[at]
        yield str(value).lower() if isinstance(value, bool) else value
        if name in ends:
            lo, hi = (row[end] for end in ends[name])
            yield (_number(lo), _number(hi)) if lo is not None else ""


def _number(value: Value) -> float | None:
    return value if isinstance(value, int | float) else None


def _is_numeric(cells: Iterable[Value]) -> bool:
    values = [cell for cell in cells if cell is not None]
    return bool(values) and not any(isinstance(cell, str | bool) for cell in values)


GROUP = "siftlog.reports"

REPORT = "report.html"
"""The main report file."""

OPERATIONS = "operations.json"
"""Progress and cost of the run at the time of scoring."""


FigureFormat: TypeAlias = Literal["svg", "png", "pdf"]
"""Format of the files in `figures/`."""

FIGURE_FORMATS: tuple[FigureFormat, ...] = ("svg", "png")
"""Formats of a scoring's figures unless others are asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSource:
    """Input of a report, beside the files in the scoring's folder.

    It has no path, and no time but those of the log: the same scoring of the same log
    gives the same report. The progress of the run is in `operations.json`.
    """

    job: str
    job_version: str
    run_id: str
    scorecard: Scorecard  #: its details are in the folder's files
    digest: str  #: SHA-256 of scorecard.json
    inputs: tuple[Input, ...]
    changes: Mapping[str, tuple[Cell | list[str], Cell | list[str]]]
    """Settings that affect scores and differ from the default: value and default."""
    is_imported: bool  #: the answers were imported
    changed_settings: tuple[str, ...]  #: settings whose files differ from the run's
    figure_formats: tuple[FigureFormat, ...] = FIGURE_FORMATS  #: of the files
    settings: BaseModel | None = None  #: all settings of the scoring
    description: tuple[str, ...] = ()  #: what the models were asked, in words
    course: Course | None = None
    notable: NotableAnswers = field(default_factory=NotableAnswers)
    has_explain: bool = True  #: whether `siftlog explain` knows the job's items


Writer: TypeAlias = Callable[[Path, ReportSource], Iterable[Finding]]
"""Writes a report into the folder of a scoring that holds all other files.

Returns findings about the report, such as a figure that could not be drawn.
"""


def write_reports(folder: Path, reported: ReportSource) -> tuple[Finding, ...]:
    """Write the reports of all installed writers.

    Returns:
        The writers' findings, and one for each writer whose package is broken.
    """
    findings: list[Finding] = []
    for point in sorted(entry_points(group=GROUP), key=lambda point: point.name):
        try:
            write = cast("Writer", point.load())
        except (Exception, SystemExit) as error:  # noqa: BLE001 - foreign code
            message = (
                f"The report {point.name} ({point.value}) cannot be written: {error}; "
                "install its package again, or leave reports out with --no-report."
            )
            findings.append(
                Finding(
                    code="broken_report",
                    severity="warn",
                    where=point.name,
                    message=message,
                )
            )
            continue
        findings += write(folder, reported)
    return tuple(findings)


def changes(
    job: Job, settings: BaseModel, names: Sequence[str]
) -> dict[str, tuple[Cell | list[str], Cell | list[str]]]:
    """Return settings among *names* that differ from the default, with both values."""
    defaults = job.Settings.model_construct().model_dump(mode="json", warnings=False)
    values = settings.model_dump(mode="json", include=set(names))
    return {
        name: (values[name], defaults.get(name))
        for name in names
        if name in values and values[name] != defaults.get(name)
    }
