"""Scorecards, tables and operations as bytes and text; one renderer for each form."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TextIO

from runner.job import Job
from runner.scorecard import Cell, Metric, Scorecard
from store.read.status import Status
from store.read.usage import UsageCount

FORMULA = (*"=+-@", *"＝＋－＠", "\t", "\r", "\n")
"""First characters that make a spreadsheet run a cell (OWASP, "CSV Injection")."""


def metrics_json(card: Scorecard) -> dict[str, Any]:
    """One entry a model: its metrics by path."""
    return {
        model: {"metrics": {metric.path: _metric(metric) for metric in metrics}}
        for model, metrics in card.models.items()
    }


def headlines(card: Scorecard) -> list[str]:
    """Paths of the metrics to look at first; what the scoring is judged by leads.

    All others are details.
    """
    first = (m.path for own in card.models.values() for m in own if m.is_headline)
    return list(dict.fromkeys(filter(None, (card.headline, *first))))


def _metric(metric: Metric) -> dict[str, Any]:
    shown: dict[str, Any] = {
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
        shown["note"] = metric.note
    return shown


def scorecard_json(job: Job, card: Scorecard) -> bytes:
    """`scorecard.json`: no time, id or path, so equal scorings are equal bytes."""
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
    """`operations.json`: what depends on the run's course, outside the digest."""
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
        # what was made elsewhere took nobody knows what
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
    """What a model took in all its stages and replicates, and for each unit."""
    own = [each for each in usage if each.model == model]
    whole = {
        "tokens_in": sum(each.tokens_in for each in own),
        "tokens_out": sum(each.tokens_out for each in own),
        # while the price of an answer is unknown, what is known may be a part of it
        "cost_usd": None
        if state.cost_usd is None
        else state.model_cost_usd.get(model, 0.0),
    }
    return {
        "replies": sum(each.replies for each in own),
        **whole,
        "per": {
            unit: {"n": n, **{name: _share(x, n) for name, x in whole.items()}}
            for unit, n in units.items()
        },
    }


def _share(amount: float | None, n: int) -> float | None:
    return None if amount is None or not n else amount / n


def csv_lines(rows: Iterable[tuple[Cell, ...]]) -> str:
    """Rows as CSV; an undefined cell is blank."""
    out = io.StringIO()
    write = csv_writer(out)
    for row in rows:
        write(row)
    return out.getvalue()


def csv_writer(file: TextIO) -> Callable[[tuple[Cell, ...]], object]:
    """Writes a row to *file* with each call, in the form of `csv_lines`."""
    plain = csv.writer(file, lineterminator="\n").writerow
    quoted = csv.writer(file, lineterminator="\n", quoting=csv.QUOTE_ALL).writerow

    def write(row: tuple[Cell, ...]) -> None:
        cells = [*map(_cell, row)]
        # Python before 3.13 leaves it bare, and a reader ends the row there
        (quoted if any("\r" in cell for cell in cells) else plain)(cells)

    return write


def harmless(text: str) -> str:
    """A text as a cell that no spreadsheet runs: a quote goes before a formula.

    And before one that has quotes already, so that `as_meant` knows what to take away.
    """
    return f"'{text}" if text.lstrip("'").startswith(FORMULA) else text


def as_meant(cell: str) -> str:
    """The text of a cell that `harmless` made."""
    is_guarded = cell.startswith("'") and cell.lstrip("'").startswith(FORMULA)
    return cell[1:] if is_guarded else cell


def _cell(cell: Cell) -> str:
    if isinstance(cell, str):
        return harmless(cell)
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return repr(cell)
