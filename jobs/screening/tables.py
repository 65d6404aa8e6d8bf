"""Declares the tables of a scoring: short ones, and those with a row per record.

The short tables are by kind, by review, of reasons, and of model comparisons. The long
ones are built while they are written.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import NamedTuple

import numpy as np

from jobs.kit.comparison.models import DIFFERENCE, TESTED
from jobs.kit.measures import DEFINED
from jobs.kit.metrics import Confusion
from jobs.kit.metrics.columns import as_value
from jobs.kit.metrics.screening import recall_curve
from jobs.kit.tables import (
    METRIC_VALUE,
    Columns,
    StreamedTable,
    TableOf,
    count,
    group,
    groups,
    number,
    per_key,
    text,
)
from jobs.screening.data import NO_TEXT, UNLABELLED
from jobs.screening.decisions import (
    OUTCOMES,
    READABLE,
    Decisions,
    DecisionView,
    Records,
)
from jobs.screening.ranking import JudgedThreshold, rank_reviews
from jobs.screening.results import (
    PAIRED,
    SENSITIVITY,
    SPECIFICITY,
    ScreeningPair,
    ScreeningResults,
)
from jobs.screening.strata import Stratum
from jobs.screening.worklist import unlabelled_tables, worklist_tables
from runner.scorecard import Metric, Table


def short_tables(results: ScreeningResults) -> Iterator[Table]:
    """Yield all short tables, in the order of a report."""
    if not results.has_truth:
        yield from unlabelled_tables(results)
        return
    has_near_misses = "near-miss" in results.predictions.records.kinds
    unjudged = " Near misses are unjudged." if has_near_misses else ""
    by_kind = BY_KIND.table(_kind_rows(results))
    yield replace(by_kind, caption=by_kind.caption + unjudged)
    yield _per_review(results)
    yield COMPARISON.table(results.pairs)
    yield _reason_confusion(results)


class _KindRow(NamedTuple):
    decisions: Decisions
    stratum: Stratum
    metrics: Mapping[str, Metric]


def _kind_rows(results: ScreeningResults) -> Iterator[_KindRow]:
    for column in (*results.columns.values(), *results.replicates):
        for stratum in column.strata.values():
            yield _KindRow(column.view.decisions, stratum, stratum.by_path)


BY_KIND = TableOf[_KindRow](
    name="by_kind",
    columns=(
        text("model", lambda row: row.decisions.model),
        count("replicate", lambda row: row.decisions.replicate),
        text("kind", lambda row: row.stratum.name),
        count("n", lambda row: int(row.stratum.counts.records.sum())),
        count("positives", lambda row: int(row.stratum.counts.positives.sum())),
        groups(
            METRIC_VALUE,
            (
                "micro.coverage",
                "micro.sensitivity",
                "micro.as_include.sensitivity",
                "micro.specificity",
                "micro.as_include.specificity",
                "micro.fpr",
                "micro.precision",
                "micro.f1",
                "micro.as_include.f1",
            ),
            lambda row, path: row.metrics[path],
        ),
        groups(
            (*METRIC_VALUE, count(DEFINED, lambda metric: metric.n_defined)),
            ("macro.wss95", "macro.auroc"),
            lambda row, path: row.metrics[path],
        ),
    ),
    caption="Each model against all negatives and against each kind of them; "
    "as_include counts undecided records as included. Precision "
    "and WSS depend on this set's ratio of negatives, which may differ "
    "from a search's.",
    is_headline=True,
)

CONFUSION: tuple[Columns[Confusion], ...] = (
    count("tp", lambda counts: int(counts.tp)),
    count("fp", lambda counts: int(counts.fp)),
    count("tn", lambda counts: int(counts.tn)),
    count("fn", lambda counts: int(counts.fn)),
)


class _ReviewRow(NamedTuple):
    review: str
    at: int
    model: str
    stratum: Stratum

    @property
    def decided(self) -> Confusion:
        cells, at = self.stratum.counts.decided, self.at
        return Confusion(
            tp=cells.tp[at], fp=cells.fp[at], tn=cells.tn[at], fn=cells.fn[at]
        )


def _per_review(results: ScreeningResults) -> Table:
    rows = [
        _ReviewRow(review, at, model, stratum)
        for model, column in results.columns.items()
        for stratum in column.strata.values()
        for at, review in enumerate(results.predictions.records.reviews)
        if stratum.counts.records[at]
    ]
    strata = [s for column in results.columns.values() for s in column.strata.values()]
    return TableOf[_ReviewRow](
        name="per_review",
        columns=(
            text("review_pmid", lambda row: row.review),
            text("model", lambda row: row.model),
            text("stratum", lambda row: row.stratum.name),
            count("n", lambda row: int(row.stratum.counts.records[row.at])),
            count("positives", lambda row: int(row.stratum.counts.positives[row.at])),
            count("decided", lambda row: int(row.decided.n)),
            group(CONFUSION, lambda row: row.decided),
            per_key(
                "{}",
                strata[-1].by_review if strata else (),
                lambda row, measure: row.stratum.by_review[measure][row.at],
                "number",
            ),
        ),
        caption="Rates of decided records and what reading in the model's order "
        "saves, review by review; ranking is undefined where one class is missing.",
    ).table(rows)


COMPARISON = TableOf[ScreeningPair](
    name="comparison",
    columns=(
        text("left", lambda pair: pair.compared.left),
        text("right", lambda pair: pair.compared.right),
        count("n", lambda pair: pair.tested.n, "records that both decided"),
        count("dropped", lambda pair: pair.dropped),
        count("left_alone_right", lambda pair: pair.tested.left_alone),
        count("right_alone_right", lambda pair: pair.tested.right_alone),
        number("mcnemar_p", lambda pair: pair.tested.p),
        number("mcnemar_p_holm", lambda pair: pair.tested.p_holm),
        group(DIFFERENCE, lambda pair: pair.metric(SENSITIVITY), "sensitivity_"),
        group(DIFFERENCE, lambda pair: pair.metric(SPECIFICITY), "specificity_"),
        number("agreement", lambda pair: pair.agreement.percent),
        number("kappa", lambda pair: pair.agreement.kappa),
        number("ac1", lambda pair: pair.agreement.ac),
        groups(TESTED, PAIRED, ScreeningPair.metric, "{}."),
    ),
    caption="Left minus right, on the records that both decided. Each metric "
    "has its own test by review, corrected by Holm over all pairs of "
    "this table, and a verdict on the left model. McNemar's exact test "
    "of correctness ignores that records of a review are correlated; "
    "it is secondary and decides nothing.",
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


class _RecordRow(NamedTuple):
    """A record under one model or replicate."""

    records: Records
    decisions: Decisions
    at: int
    title: str | None = None

    @property
    def review(self) -> str:
        return self.records.reviews[int(self.records.review[self.at])]

    @property
    def label(self) -> int | None:
        label = int(self.records.label[self.at])
        return None if label == UNLABELLED else label

    @property
    def outcome(self) -> int:
        return int(self.decisions.outcome[self.at])

    @property
    def is_read(self) -> bool:
        return self.outcome in READABLE

    @property
    def status(self) -> str:
        """Status of the last stage that was due."""
        outcome = int(self.decisions.latest[self.at]) if self.is_read else self.outcome
        return "parsed" if outcome in READABLE else OUTCOMES[outcome]

    @property
    def reason_code(self) -> str | None:
        return self.decisions.reason_code[self.at] or None

    @property
    def stage(self) -> str | None:
        """The deciding stage."""
        stage = self.decisions.stage[self.at]
        return self.decisions.stages[stage] if stage >= 0 else None

    @property
    def noted(self) -> str | None:
        issues = self.decisions.issues
        return (issues[self.at] or None) if issues else None


DECISIONS = TableOf[_RecordRow](
    name="decisions",
    columns=(
        text("review_pmid", lambda row: row.review),
        text("paper_pmid", lambda row: row.records.papers[row.at]),
        count("label", lambda row: row.label, "1: included; blank: not known"),
        text("kind", lambda row: row.records.kinds[row.records.kind[row.at]]),
        text("model", lambda row: row.decisions.model),
        count("replicate", lambda row: row.decisions.replicate or 1),
        text("decision", lambda row: OUTCOMES[row.outcome] if row.is_read else None),
        number("confidence", lambda row: as_value(row.decisions.p[row.at])),
        text("reason_code", lambda row: row.reason_code if row.is_read else None),
        text("reason", lambda row: row.decisions.reason[row.at] or None),
        text(
            "stage", lambda row: row.stage if row.is_read else row.decisions.stages[0]
        ),
        text("status", lambda row: row.status),
        text("noted", lambda row: row.noted),
    ),
    caption="What each model said of each record, by the last stage that could "
    "be read; status is that of the last stage that was due.",
)
"""The rows can be imported again."""

FALSE_NEGATIVES = TableOf[_RecordRow](
    name="false_negatives",
    columns=(
        text("model", lambda row: row.decisions.model),
        text("review_pmid", lambda row: row.review),
        text("paper_pmid", lambda row: row.records.papers[row.at]),
        text("title", lambda row: row.title),
        number("confidence", lambda row: as_value(row.decisions.p[row.at])),
        text("reason_code", lambda row: row.reason_code),
        text("reason", lambda row: row.decisions.reason[row.at] or None),
        text("stage", lambda row: row.stage),
    ),
    caption="Every included paper that a model excludes, the surest first.",
)

THRESHOLDS = TableOf[JudgedThreshold](
    name="thresholds",
    columns=(
        text("model", lambda row: row.sweep.model),
        text("choice", lambda row: row.choice),
        text("left_out", lambda row: row.left_out),
        number("threshold", lambda row: row.threshold),
        number("sensitivity", lambda row: row.rates.get("sensitivity")),
        number("specificity", lambda row: row.rates.get("specificity")),
        number("coverage", lambda row: row.sweep.coverage),
        group(CONFUSION, lambda row: row.counts),
    ),
    caption="Each distinct p_include as a threshold, over the records that "
    "have one; then the threshold for a sensitivity of 0.95, judged on its own "
    "records (which flatters it) and on each review that was left out.",
)


class _CurvePoint(NamedTuple):
    model: str
    review: str
    rank: int
    n: int
    recall: float


RECALL_CURVE = TableOf[_CurvePoint](
    name="recall_curve",
    columns=(
        text("model", lambda row: row.model),
        text("review_pmid", lambda row: row.review),
        count("rank", lambda row: row.rank),
        number("share", lambda row: row.rank / row.n, "of the list that is read"),
        number("recall", lambda row: row.recall),
    ),
    caption="Where each included paper is found when a person reads in the "
    "model's order, and the end of the list.",
)


def record_tables(results: ScreeningResults) -> tuple[StreamedTable, ...]:
    """Return the long tables of a scoring."""
    decisions = DECISIONS.streamed(partial(_decided, results))
    worklist = worklist_tables(results)
    if not results.has_truth:
        return decisions, *worklist
    return (
        FALSE_NEGATIVES.streamed(partial(_missed, results)),
        decisions,
        THRESHOLDS.streamed(
            lambda: chain(*(c.thresholds.judged() for c in results.columns.values()))
        ),
        RECALL_CURVE.streamed(
            lambda: chain(*(_curve(c.view) for c in results.columns.values()))
        ),
        *worklist,
    )


def _missed(results: ScreeningResults) -> Iterator[_RecordRow]:
    validation_set = results.dataset.validation_set
    papers = {} if validation_set is None else validation_set.papers
    for column in results.columns.values():
        view, records = column.view, column.view.records
        rows = np.flatnonzero((records.label == 1) & (view.call == 0))
        rows = rows[np.lexsort((rows, view.height[rows]))]
        for at in rows.tolist():
            title = papers.get(records.papers[at], NO_TEXT).title or None
            yield _RecordRow(records, view.decisions, at, title)


def _decided(results: ScreeningResults) -> Iterator[_RecordRow]:
    predictions = results.predictions
    singles = predictions.replicates or [
        decisions
        for decisions in predictions.decisions
        if decisions.model in predictions.models
    ]
    for decisions in singles:
        for at in range(len(predictions.records)):
            yield _RecordRow(predictions.records, decisions, at)


def _curve(view: DecisionView) -> Iterator[_CurvePoint]:
    records = view.records
    for ranked in rank_reviews(view, np.ones(len(records), dtype=np.bool_)):
        recall = recall_curve(ranked.label)
        if recall is None:
            continue
        n = len(recall)
        for at in np.union1d(np.flatnonzero(ranked.label), [n - 1]).tolist():
            review = records.reviews[ranked.review]
            yield _CurvePoint(
                view.decisions.model, review, at + 1, n, float(recall[at])
            )
