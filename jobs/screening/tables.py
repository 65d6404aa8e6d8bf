"""Builds the tables of a scoring: short ones, and those with a row per record.

The short tables are by kind, by review, of reasons, and of models compared. The long
ones are made while they are written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from jobs.kit.comparison.models import TESTED_COLUMNS, difference_cells, tested_cells
from jobs.kit.metrics.screening import recall_curve
from jobs.screening.data import ArticleText
from jobs.screening.decisions import OUTCOMES, READABLE, Decisions, DecisionView
from jobs.screening.ranking import COLUMNS, rank_reviews
from jobs.screening.results import (
    PAIRED,
    SENSITIVITY,
    SPECIFICITY,
    ScreeningModelResults,
    ScreeningResults,
)
from runner.scorecard import Cell, Detail, StreamedRow, Table

BY_KIND = (
    "micro.coverage",
    "micro.sensitivity",
    "micro.as_include.sensitivity",
    "micro.specificity",
    "micro.as_include.specificity",
    "micro.fpr",
    "micro.precision",
    "micro.f1",
    "micro.as_include.f1",
    "macro.wss95",
    "macro.auroc",
)
"""Metrics of `by_kind.csv`, with the ends of their intervals beside them.

Beside a mean over reviews stands how many of them have a value.
"""


def short_tables(results: ScreeningResults) -> Iterator[Table]:
    """All of them, in the order of a report."""
    yield _by_kind(results)
    yield _per_review(results)
    yield _comparison(results)
    yield _reason_confusion(results)


def _by_kind(results: ScreeningResults) -> Table:
    columns = ["model", "replicate", "kind", "n", "positives"]
    for path in BY_KIND:
        columns += [path, f"{path}.lo", f"{path}.hi"]
        columns += [f"{path}.n_defined"] if _is_mean(path) else []
    rows: list[tuple[Cell, ...]] = []
    for column in (*results.columns.values(), *results.replicates):
        for name, stratum in column.strata.items():
            row: list[Cell] = [
                column.view.decisions.model,
                column.view.decisions.replicate,
                name,
                int(stratum.counts.records.sum()),
                int(stratum.counts.positives.sum()),
            ]
            by_path = stratum.by_path
            for path in BY_KIND:
                row += [by_path[path].value, by_path[path].lo, by_path[path].hi]
                row += [by_path[path].n_defined] if _is_mean(path) else []
            rows.append(tuple(row))
    has_near_misses = "near-miss" in results.predictions.records.kinds
    unjudged = " Near misses are unjudged." if has_near_misses else ""
    return Table(
        name="by_kind",
        columns=tuple(columns),
        rows=tuple(rows),
        caption="Each model against all negatives and against each kind of them; "
        "as_include counts whatever is undecided as included. Precision and WSS go by "
        "this set's ratio of negatives, which need not be that of a search."
        f"{unjudged}",
        is_headline=True,
    )


def _is_mean(path: str) -> bool:
    return path.startswith("macro.")


def _per_review(results: ScreeningResults) -> Table:
    rows: list[tuple[Cell, ...]] = []
    measures: tuple[str, ...] = ()
    for model, column in results.columns.items():
        for name, stratum in column.strata.items():
            measures = tuple(stratum.by_review)
            rows += _reviews_of(results, column, model, name)
    return Table(
        name="per_review",
        columns=(
            "review_pmid",
            "model",
            "stratum",
            "n",
            "positives",
            "decided",
            "tp",
            "fp",
            "tn",
            "fn",
            *measures,
        ),
        rows=tuple(rows),
        caption="Rates of decided records and what reading in the model's order "
        "saves, review by review; ranking is undefined where one class is missing.",
    )


def _reviews_of(
    results: ScreeningResults, column: ScreeningModelResults, model: str, name: str
) -> Iterator[tuple[Cell, ...]]:
    stratum = column.strata[name]
    counts, cells = stratum.counts, stratum.counts.decided
    for at, review in enumerate(results.predictions.records.reviews):
        if counts.records[at]:
            yield (
                review,
                model,
                name,
                int(counts.records[at]),
                int(counts.positives[at]),
                int(cells.n[at]),
                int(cells.tp[at]),
                int(cells.fp[at]),
                int(cells.tn[at]),
                int(cells.fn[at]),
                *(values[at] for values in stratum.by_review.values()),
            )


def _comparison(results: ScreeningResults) -> Table:
    return Table(
        name="comparison",
        columns=(
            "left",
            "right",
            "n",
            "dropped",
            "left_alone_right",
            "right_alone_right",
            "mcnemar_p",
            "mcnemar_p_holm",
            "sensitivity_difference",
            "sensitivity_lo",
            "sensitivity_hi",
            "specificity_difference",
            "specificity_lo",
            "specificity_hi",
            "agreement",
            "kappa",
            "ac1",
            *(f"{path}.{name}" for path in PAIRED for name in TESTED_COLUMNS),
        ),
        rows=tuple(
            (
                pair.left,
                pair.right,
                pair.n,
                pair.dropped,
                pair.left_alone,
                pair.right_alone,
                pair.p,
                pair.p_holm,
                *difference_cells(pair.metrics.get(SENSITIVITY)),
                *difference_cells(pair.metrics.get(SPECIFICITY)),
                pair.agreement.percent,
                pair.agreement.kappa,
                pair.agreement.ac,
                *(
                    cell
                    for path in PAIRED
                    for cell in tested_cells(pair.metrics.get(path))
                ),
            )
            for pair in results.pairs
        ),
        caption="Left minus right, on the records that both decided. Each metric has "
        "its own test by review, corrected by Holm over all pairs of this table, and a "
        "verdict on the left model. McNemar's exact test of being right ignores that "
        "records of a review hang together; it is secondary and decides nothing.",
    )


def _reason_confusion(results: ScreeningResults) -> Table:
    return Table(
        name="reason_confusion",
        columns=("model", "reason_code", "model_reason_code", "n"),
        rows=tuple(
            (model, review_code, model_code, n)
            for model, column in results.columns.items()
            if column.reasons is not None
            for (review_code, model_code), n in column.reasons.cells.items()
        ),
        caption="Why reviews excluded a paper, and why the model did. The reviews' "
        "codes come from their words by rules; those coded other are left out.",
    )


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
_NO_TEXT = ArticleText()


@dataclass(frozen=True, slots=True)
class RecordTables:
    """The long files of a scoring: declared at once, filled row by row."""

    results: ScreeningResults

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
        singles = self.results.predictions.replicates or [
            decisions
            for decisions in self.results.predictions.decisions
            if decisions.model in self.results.predictions.models
        ]
        for decisions in singles:
            for cells in self._decision_rows(decisions):
                yield StreamedRow(table="decisions", cells=cells)
        for column in self.results.columns.values():
            for cells in column.thresholds.table():
                yield StreamedRow(table="thresholds", cells=cells)
        for model, column in self.results.columns.items():
            for cells in self._curve(model, column.view):
                yield StreamedRow(table="recall_curve", cells=cells)

    def _decision_rows(self, decisions: Decisions) -> Iterator[tuple[Cell, ...]]:
        records = self.results.predictions.records
        for at, outcome in enumerate(decisions.outcome.tolist()):
            is_read = outcome in READABLE
            yield (
                records.reviews[records.review[at]],
                records.papers[at],
                int(records.label[at]),
                records.kinds[records.kind[at]],
                decisions.model,
                decisions.replicate or 1,
                OUTCOMES[outcome] if is_read else None,
                _number(decisions.p[at]),
                decisions.reason_code[at] or None if is_read else None,
                decisions.reason[at] or None,
                decisions.stages[decisions.stage[at]]
                if is_read
                else decisions.stages[0],
                _status(int(decisions.latest[at]) if is_read else outcome),
                (decisions.issues[at] or None) if decisions.issues else None,
            )

    def _missed(self, model: str, view: DecisionView) -> Iterator[tuple[Cell, ...]]:
        records, decisions = view.records, view.decisions
        validation_set = self.results.dataset.validation_set
        papers = {} if validation_set is None else validation_set.papers
        rows = np.flatnonzero((records.label == 1) & (view.call == 0))
        rows = rows[np.lexsort((rows, view.height[rows]))]
        for at in rows.tolist():
            yield (
                model,
                records.reviews[records.review[at]],
                records.papers[at],
                papers.get(records.papers[at], _NO_TEXT).title or None,
                _number(decisions.p[at]),
                decisions.reason_code[at] or None,
                decisions.reason[at] or None,
                decisions.stages[decisions.stage[at]]
                if decisions.stage[at] >= 0
                else None,
            )

    def _curve(self, model: str, view: DecisionView) -> Iterator[tuple[Cell, ...]]:
        records = view.records
        for ranked in rank_reviews(view, np.ones(len(records), dtype=np.bool_)):
            recall = recall_curve(ranked.label)
            if recall is None:
                continue
            n = len(recall)
            ranks = np.union1d(np.flatnonzero(ranked.label), [n - 1])
            for rank in ranks.tolist():
                yield (
                    model,
                    records.reviews[ranked.review],
                    rank + 1,
                    (rank + 1) / n,
                    float(recall[rank]),
                )


def _status(outcome: int) -> str:
    return "parsed" if outcome in READABLE else OUTCOMES[outcome]


def _number(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
