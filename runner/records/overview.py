"""Tables of a scoring for print: headline metrics by model, and all others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from runner.errors import UsageError
from runner.records.render import headlines
from runner.scorecard import Cell as Value
from runner.scorecard import Direction, Metric, Scorecard, Table
from runner.typeset import Cell, Column, Kind, Sheet

MODELS = 3
"""Side by side in one table: more would not fit the width of a page."""

METRICS = "metrics"
"""The table of all metrics."""

METRIC_COLUMNS = (
    *("model", "metric", "name", "value", "lo", "hi", "n", "n_defined", "subset"),
    *("direction", "meaning", "definition", "note"),
)
"""Of `metrics.csv`, where a job has no table of that name."""

BETTER: Mapping[Direction, str] = {"higher": "higher", "lower": "lower", "neither": "-"}
"""Which values of a metric are better, as a cell."""


def overview(card: Scorecard) -> tuple[Sheet, ...]:
    """The headline metrics with their names, a row each, side by side for models.

    One table fits a page; more models than `MODELS` make several.
    """
    paths = headlines(card)
    by_path = {
        model: {metric.path: metric for metric in metrics}
        for model, metrics in card.models.items()
    }
    models = [model for model, own in by_path.items() if own.keys() & {*paths}]
    return tuple(
        _compared({model: by_path[model] for model in part}, paths, _level(card))
        for part in (models[at : at + MODELS] for at in range(0, len(models), MODELS))
    )


def sheets(card: Scorecard, names: Sequence[str] = ()) -> Iterator[Sheet]:
    """The tables of a scoring for print.

    Args:
        card: whose.
        names: of tables; none: headline metrics, and the tables a report begins with.

    Raises:
        UsageError: there is no such table, or its rows are in a file only.
    """
    known = {table.name: table for table in card.tables if table.rows}
    for name in names:
        if name != METRICS and name not in known:
            raise UsageError(
                f"--table {name}: there is no such short table; there are: "
                f"{', '.join((METRICS, *known))}."
            )
    if not names:
        yield from overview(card)
        names = [table.name for table in known.values() if table.is_headline]
    for name in names:
        if name == METRICS:
            yield from metrics_sheets(card)
        else:
            yield sheet_of(known[name])


def metrics_table(card: Scorecard) -> Table:
    """Every metric of every model, with all digits and words; a file of a scoring."""
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


def metrics_sheets(card: Scorecard) -> Iterator[Sheet]:
    """Every metric of each model."""
    for model, metrics in card.models.items():
        own = {metric.path: metric for metric in metrics}
        yield _compared({model: own}, list(own), _level(card), title="All metrics")


def sheet_of(table: Table) -> Sheet:
    """A short table of a scorecard, the ends of intervals in one column."""
    names = table.columns
    ends = {
        name: (names.index(f"{name}.lo"), names.index(f"{name}.hi"))
        for name in names
        if {f"{name}.lo", f"{name}.hi"} <= {*names}
    }
    within = {f"{name}.{end}" for name in ends for end in ("lo", "hi")}
    kept = [(at, name) for at, name in enumerate(names) if name not in within]
    columns: list[Column] = []
    for at, name in kept:
        title = table.titles.get(name, name)
        kind: Kind = "number" if _is_numeric(row[at] for row in table.rows) else "text"
        columns.append(Column(name=title, kind=kind))
        if name in ends:
            columns.append(Column(name=f"{title}, interval", kind="interval"))
    return Sheet(
        title=table.name,
        columns=tuple(columns),
        rows=tuple(tuple(_values(row, kept, ends)) for row in table.rows),
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
) -> Sheet:
    own = [[metrics.get(path) for metrics in models.values()] for path in paths]
    rows = [(path, found) for path, found in zip(paths, own, strict=True) if any(found)]
    counts = [{each.n for each in found if each is not None} for _, found in rows]
    # one n for all models, unless some metric is of other items for one of them
    shares_n = all(len(each) == 1 for each in counts)
    columns = [Column(name="Metric"), Column(name="Better")]
    for model in models:
        columns += [
            Column(name="value", kind="number", group=model),
            Column(name=interval, kind="interval", group=model),
        ]
        if not shares_n:
            columns.append(Column(name="n", kind="number", group=model))
    if shares_n:
        columns.append(Column(name="n", kind="number"))
    columns.append(Column(name="Key", kind="key"))
    return Sheet(
        title=f"{title}: {', '.join(models)}",
        columns=tuple(columns),
        rows=tuple(_row(path, found, shares_n=shares_n) for path, found in rows),
    )


def _row(
    path: str, found: Sequence[Metric | None], *, shares_n: bool
) -> tuple[Cell, ...]:
    first = next(each for each in found if each is not None)
    cells: list[Cell] = [first.label, BETTER[first.direction]]
    for each in found:
        if each is None:
            cells += ["", "", *([] if shares_n else [""])]
            continue
        has_ends = each.lo is not None or each.hi is not None
        cells += [each.value, (each.lo, each.hi) if has_ends else ""]
        if not shares_n:
            cells.append(each.n)
    return (*cells, *([first.n] if shares_n else []), path)


def _values(
    row: Sequence[Value],
    kept: Sequence[tuple[int, str]],
    ends: Mapping[str, tuple[int, int]],
) -> Iterator[Cell]:
    for at, name in kept:
        value = row[at]
        yield str(value).lower() if isinstance(value, bool) else value
        if name in ends:
            lo, hi = (row[end] for end in ends[name])
            yield (_number(lo), _number(hi)) if lo is not None else ""


def _number(value: Value) -> float | None:
    return value if isinstance(value, int | float) else None


def _is_numeric(cells: Iterable[Value]) -> bool:
    found = [cell for cell in cells if cell is not None]
    return bool(found) and not any(isinstance(cell, str | bool) for cell in found)
