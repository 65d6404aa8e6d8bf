"""The lines that a scoring adds to the history, as a table of its own.

A scoring knows of no other run: what became of recall over runs is said by
`siftlog history`.
"""

from __future__ import annotations

from jobs.metrics import ratio
from runner.scorecard import Table
from store.milestone import Milestone


def table(own: Milestone) -> Table:
    """A line for each model and review."""
    return Table(
        name="history",
        columns=(
            "model",
            "cochrane_id",
            "recall",
            "found_and_included",
            "truth",
            "passed",
            "verdict_passed",
            "comparable",
            "database",
        ),
        rows=tuple(
            (
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
            for model, standings in own.standings.items()
            for review, each in standings.items()
        ),
        caption="What this scoring adds to the history. Two runs are compared on a "
        "review where `comparable`, which stands for its truth and the way of "
        "matching, is the same, and the database too.",
    )
