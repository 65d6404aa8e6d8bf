"""What `siftlog run-all FILE --dry-run` says: each run, its calls, its cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.cli.console import cost, in_columns, number
from runner.estimate.estimate import EstimateRange, preview
from runner.matrix import MatrixCell, MatrixFile
from store.read.usage import dollars

_HEADS = ("run", "what", "items", "calls", "dollars, expected (low to high)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Foretold:
    """One run before it is carried out."""

    cell: MatrixCell
    items: int
    calls: EstimateRange  #: of the whole run, whatever has been asked already
    usd: EstimateRange | None  #: None: a price is unknown

    @property
    def what(self) -> str:
        """What would become of it."""
        if self.cell.state is None:
            return "new"
        return "nothing left" if self.cell.is_over else f"goes on ({self.cell.state})"


def foretold(cells: Sequence[MatrixCell], runs_dir: Path) -> list[Foretold]:
    """Estimate every run from a sample of its plan; nothing is sent or written."""
    made = []
    for cell in cells:
        found = preview(cell.work, cell.options, runs_dir)
        made.append(
            Foretold(
                cell=cell,
                items=found.items,
                calls=found.total.calls,
                usd=found.total.usd,
            )
        )
    return made


def text(file: MatrixFile, made: Sequence[Foretold]) -> str:
    """The runs, and whether the budget would hold."""
    rows = [
        (
            each.cell.folder.run_id,
            each.what,
            f"{each.items:,}",
            number(each.calls.expected),
            cost(None) if each.usd is None else _span(each.usd),
        )
        for each in made
    ]
    lines = [f"{file.group}: {len(made)} runs; nothing is sent"]
    lines += in_columns([_HEADS, *rows])
    total = whole(made)
    said = cost(None) if total is None else _span(total)
    lines.append(f"in all, had nothing been asked yet: {said}")
    if file.options.budget is not None:
        lines.append(f"budget for all runs: {dollars(file.options.budget)}")
    return "\n".join(lines)


def whole(made: Sequence[Foretold]) -> EstimateRange | None:
    """What all runs cost together; None: a price is unknown."""
    spans = [each.usd for each in made if each.usd is not None]
    if len(spans) < len(made):
        return None
    return sum(spans, EstimateRange(low=0.0, expected=0.0, high=0.0))


def as_json(file: MatrixFile, made: Sequence[Foretold]) -> dict[str, Any]:
    """The same for programs."""
    total = whole(made)
    return {
        "group": file.group,
        "dry_run": True,
        "budget_usd": file.options.budget,
        "cost_usd": None if total is None else _json(total),
        "runs": [
            {
                "run": each.cell.folder.run_id,
                "job": each.cell.work.job.name,
                "model": each.cell.model,
                "settings": dict(each.cell.varied),
                "what": each.what,
                "items": each.items,
                "calls": _json(each.calls),
                "cost_usd": None if each.usd is None else _json(each.usd),
            }
            for each in made
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
