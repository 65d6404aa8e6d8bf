"""What cannot be true of printed tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeAlias

from jobs.evidence_retrieval.consistency.printed import fixed_name, named
from jobs.metrics.checks import TOLERANCE
from runner.scorecard import Cell, Finding, Table

Identity: TypeAlias = frozenset[tuple[str, Cell]]
"""What tells a row from others: its metric, subset, fold, ..."""

METRIC, VALUE = "metric", "value"

IDENTIFYING = (
    "model",
    "fold",
    "criterion",
    "list",
    "split",
    "gamma",
    "tau",
    "tau_neg",
    "tau_pos",
    METRIC,
    "subset",
)
"""Columns that tell a row of a table of metrics from others."""

CONFIG = "config"
"""Tells rows apart too; a table without it speaks of the headline."""

THRESHOLDS = ("tau", "tau_neg", "tau_pos", "threshold")

GROUPS = ("model", CONFIG, "fold", "criterion")

DEPLOYED = "deployed"

BASELINES = ("baseline", "chance")


def check_tables(tables: Sequence[Table], headline: str) -> Iterator[Finding]:
    """All findings about the tables of a scorecard with this *headline*."""
    yield from _two_values(tables, headline)
    for table in tables:
        yield from _nothing_deployed(table)
        for row in _rows(table):
            path, definition = str(row.get(METRIC, "")), str(row.get("definition", ""))
            yield from fixed_name(f"{table.name} {path}", path, definition)
            yield from _against_half(table, row)


def _rows(table: Table) -> Iterator[dict[str, Cell]]:
    for cells in table.rows:
        yield dict(zip(table.columns, cells, strict=True))


def _two_values(tables: Sequence[Table], headline: str) -> Iterator[Finding]:
    """One metric of one subset has one value, wherever it is printed."""
    first: dict[Identity, tuple[str, Cell]] = {}
    for table in tables:
        if not {METRIC, VALUE} <= set(table.columns):
            continue
        for row in _rows(table):
            identity = frozenset(
                [
                    (CONFIG, row.get(CONFIG, headline)),
                    *((name, row[name]) for name in IDENTIFYING if row.get(name)),
                ]
            )
            where, value = first.setdefault(identity, (table.name, row[VALUE]))
            if not _is_same(value, row[VALUE]):
                yield Finding(
                    code="two_values",
                    severity="error",
                    where=f"{table.name} {row[METRIC]}",
                    message=(
                        f"{row[METRIC]} is {row[VALUE]!r} in {table.name} and "
                        f"{value!r} in {where}, of the same subset."
                    ),
                )


def _is_same(one: Cell, other: Cell) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return abs(one - other) <= TOLERANCE
    return one == other


def _nothing_deployed(table: Table) -> Iterator[Finding]:
    """A table over several thresholds says which of them is in use.

    What is marked for the whole holds for its folds and criteria too.
    """
    columns = [name for name in THRESHOLDS if name in table.columns]
    if not columns:
        return
    tried: dict[Identity, set[tuple[Cell, ...]]] = {}
    marked: set[Identity] = set()
    for row in _rows(table):
        group = frozenset((name, row[name]) for name in GROUPS if row.get(name))
        tried.setdefault(group, set()).add(tuple(row[name] for name in columns))
        if row.get(DEPLOYED):
            marked.add(group)
    unmarked = [
        group
        for group, pairs in tried.items()
        if len(pairs) > 1 and not any(own <= group for own in marked)
    ]
    if unmarked:
        most = max(len(tried[group]) for group in unmarked)
        yield Finding(
            code="no_deployed_threshold",
            severity="warn",
            where=table.name,
            message=(
                f"The table shows {most} settings of {', '.join(columns)} and marks "
                f"none as {DEPLOYED}."
            ),
            n=len(unmarked),
        )


def _against_half(table: Table, row: dict[str, Cell]) -> Iterator[Finding]:
    if named(str(row.get(METRIC, ""))) != "auprc":
        return
    for name in BASELINES:
        if row.get(name) == 0.5:  # noqa: PLR2004 - the one value that is always meant
            yield Finding(
                code="auprc_against_half",
                severity="error",
                where=f"{table.name} {row[METRIC]}",
                message=(
                    f"{row[METRIC]} is {row.get(VALUE)!r} beside a {name} of 0.5; its "
                    "chance level is the prevalence."
                ),
            )
