"""The lines that a scoring adds to the history: `history.csv`.

A scoring knows of no other run: what became of recall over runs is said by
`siftlog history`.
"""

from __future__ import annotations

from collections.abc import Iterator

from jobs.metrics import ratio
from runner.score.render import csv_lines
from runner.scorecard import Artifact, Cell
from store.results import Milestone

COLUMNS = (
    "model",
    "cochrane_id",
    "recall",
    "found_and_included",
    "truth",
    "passed",
    "verdict_passed",
    "comparable",
    "database",
)
"""`comparable` stands for the truth and the way of matching: two runs are compared on a
review where it is the same, and the database too."""


def history_csv(own: Milestone) -> Artifact:
    """A line for each model and review."""
    return Artifact(name="history.csv", text=csv_lines([COLUMNS, *_rows(own)]))


def _rows(own: Milestone) -> Iterator[tuple[Cell, ...]]:
    for model, standings in own.standings.items():
        for review, each in standings.items():
            yield (
                model,
                review,
                ratio(each.got, each.of),
                each.got,
                each.of,
                each.passed,
                each.verdict,
                own.items[review],
                own.data or None,
            )
