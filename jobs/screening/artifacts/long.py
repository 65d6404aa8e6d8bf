"""The files with a line a record, made while they are written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from jobs.metrics.screening import recall_curve
from jobs.screening.corpus import Text
from jobs.screening.decisions import OUTCOMES, READABLE, Decisions
from jobs.screening.measuring.ranking import ranked
from jobs.screening.measuring.results import Results
from jobs.screening.measuring.thresholds import COLUMNS
from jobs.screening.measuring.view import View
from runner.scorecard import Cell, Detail, StreamedRow, Table

DECISIONS = (
    "review_pmid",
    "paper_pmid",
    "label",
    "kind",
    "model",
    "replicate",
    "decision",
    "confidence",
    "reason_code",
    "reason",
    "stage",
    "status",
    "noted",
)
"""They can be imported again."""

FALSE_NEGATIVES = (
    "model",
    "review_pmid",
    "paper_pmid",
    "title",
    "confidence",
    "reason_code",
    "reason",
    "stage",
)
_NO_TEXT = Text()


@dataclass(frozen=True, slots=True)
class LongFiles:
    """The long files of a scoring: declared at once, filled row by row."""

    results: Results

    def tables(self) -> Iterator[Table]:
        """Their names and columns."""
        yield Table(
            name="false_negatives",
            columns=FALSE_NEGATIVES,
            caption="Every included paper that a model excludes, the surest first.",
        )
        yield Table(
            name="decisions",
            columns=DECISIONS,
            caption="What each model said of each record, by the last stage that could "
            "be read; status is that of the last stage that was due.",
        )
        yield Table(
            name="thresholds",
            columns=COLUMNS,
            caption="Each distinct p_include as a threshold, over the records that "
            "have one; then the threshold for a sensitivity of 0.95, judged on its own "
            "records (which flatters it) and on each review that was left out.",
        )
        yield Table(
            name="recall_curve",
            columns=("model", "review_pmid", "rank", "share", "recall"),
            caption="Where each included paper is found when a person reads in the "
            "model's order, and the end of the list.",
        )

    def __iter__(self) -> Iterator[Detail]:
        for model, column in self.results.columns.items():
            for cells in self._missed(model, column.view):
                yield StreamedRow(table="false_negatives", cells=cells)
        singles = self.results.sheet.replicates or [
            own
            for own in self.results.sheet.decisions
            if own.model in self.results.sheet.models
        ]
        for own in singles:
            for cells in self._said(own):
                yield StreamedRow(table="decisions", cells=cells)
        for column in self.results.columns.values():
            for cells in column.thresholds.table():
                yield StreamedRow(table="thresholds", cells=cells)
        for model, column in self.results.columns.items():
            for cells in self._curve(model, column.view):
                yield StreamedRow(table="recall_curve", cells=cells)

    def _said(self, own: Decisions) -> Iterator[tuple[Cell, ...]]:
        records = self.results.sheet.records
        for at, outcome in enumerate(own.outcome.tolist()):
            is_read = outcome in READABLE
            yield (
                records.reviews[records.review[at]],
                records.papers[at],
                int(records.label[at]),
                records.kinds[records.kind[at]],
                own.model,
                own.replicate or 1,
                OUTCOMES[outcome] if is_read else None,
                _number(own.p[at]),
                own.reason_code[at] or None if is_read else None,
                own.reason[at] or None,
                own.stages[own.stage[at]] if is_read else own.stages[0],
                _status(int(own.latest[at]) if is_read else outcome),
                (own.noticed[at] or None) if own.noticed else None,
            )

    def _missed(self, model: str, view: View) -> Iterator[tuple[Cell, ...]]:
        records, own = view.records, view.decisions
        drawn = self.results.dataset.validation_set
        papers = {} if drawn is None else drawn.papers
        rows = np.flatnonzero((records.label == 1) & (view.call == 0))
        rows = rows[np.lexsort((rows, view.height[rows]))]
        for at in rows.tolist():
            yield (
                model,
                records.reviews[records.review[at]],
                records.papers[at],
                papers.get(records.papers[at], _NO_TEXT).title or None,
                _number(own.p[at]),
                own.reason_code[at] or None,
                own.reason[at] or None,
                own.stages[own.stage[at]] if own.stage[at] >= 0 else None,
            )

    def _curve(self, model: str, view: View) -> Iterator[tuple[Cell, ...]]:
        records = view.records
        for own in ranked(view, np.ones(len(records), dtype=np.bool_)):
            recall = recall_curve(own.label)
            if recall is None:
                continue
            n = len(recall)
            ranks = np.union1d(np.flatnonzero(own.label), [n - 1])
            for rank in ranks.tolist():
                yield (
                    model,
                    records.reviews[own.review],
                    rank + 1,
                    (rank + 1) / n,
                    float(recall[rank]),
                )


def _status(outcome: int) -> str:
    return "parsed" if outcome in READABLE else OUTCOMES[outcome]


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
