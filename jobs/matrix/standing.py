"""How each run of a matrix stands at the end: the rows of the one table."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from runner.matrix import MatrixCell
from runner.score.render import REPORT
from store.clock import Clock
from store.database import open_reader
from store.read.live import live_status
from store.read.status import scorings
from store.read.tasks import parts


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
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


def standings(cells: Sequence[MatrixCell], clock: Clock) -> list[Standing]:
    """How the runs stand, in the order of the file."""
    return [_standing(cell, clock) for cell in cells]


def _standing(cell: MatrixCell, clock: Clock) -> Standing:
    folder = cell.folder
    if not folder.log.is_file():
        return Standing(
            run=folder.run_id,
            job=cell.work.job.name,
            model=cell.model,
            settings=cell.varied,
            state="not begun",
            metrics={},
        )
    with open_reader(folder.log) as reader:
        seen = live_status(reader, clock.now_us(), is_held=folder.is_alive())
        made = scorings(reader)
        keys = [bytes.fromhex(made[-1].digest)] if made else []
        cards = parts(reader, keys)
    status = seen.status
    own = json.loads(cards[keys[0]])["models"] if cards else {}
    return Standing(
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
        scoring=made[-1].number if made else None,
        has_report=bool(made)
        and (folder.scores / str(made[-1].number) / REPORT).exists(),
        headline=made[-1].headline or "" if made else "",
        metrics=own.get(cell.model, {}).get("metrics", {}),
    )
