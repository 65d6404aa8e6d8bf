"""A comparison's sides with what they cost: from the logs to the front."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from jobs.comparison.expense import expenses, unit
from jobs.comparison.front import Front, front, judged_by
from jobs.comparison.matching import Drawing, Match
from jobs.comparison.replaying import Replayed
from jobs.comparison.sides import Source


def costed(
    made: Sequence[Match], runs: Mapping[Source, Replayed], drawing: Drawing
) -> Front | None:
    """The front of all sides; None where no metric can be put on one axis."""
    first = next(iter(runs.values()))
    path = judged_by(made, first.scoring.scorecard.headline)
    if path is None:
        return None
    by = unit(first)
    spent = {
        (run.name, model): expense
        for run in runs.values()
        for model, expense in expenses(run, by).items()
    }
    return front(made, path, spent, by, drawing)
