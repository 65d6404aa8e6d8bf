"""Scores a run: metrics, tables, files, figures, verdicts and a summary.

Verdicts are read in a second pass over the answers, made while they are written, so
that none is held. Each reply is judged by itself, as the model said it: no stage,
threshold or replicate changes it. Unclear is neither right nor wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from jobs.kit.baselines import add_baselines
from jobs.kit.metrics import without_interval
from jobs.kit.metrics.columns import Bools
from jobs.screening.data import ScreeningJudgement, record_key
from jobs.screening.decisions import (
    STAGES,
    UNDECIDED,
    DecisionView,
    ScreenedRecords,
    screened_records,
)
from jobs.screening.figures import figures
from jobs.screening.inputs import ScreeningDataset
from jobs.screening.measures import MEASURES
from jobs.screening.predictions import collect_predictions, read_stage
from jobs.screening.results import (
    PAIRED,
    ScreeningModelResults,
    ScreeningResults,
    measure_decisions,
    pairs,
    trivial_baselines,
)
from jobs.screening.settings import INPUTS
from jobs.screening.summary import run_text
from jobs.screening.tables import record_tables, short_tables
from runner.job import Answer, Answers
from runner.messages import ParseFailure
from runner.scorecard import (
    Comparable,
    Finding,
    ItemValues,
    Labels,
    Scorecard,
    StreamedDetails,
    Verdict,
)

TRUTH = ("exclude", "include")
"""By label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreeningVerdicts:
    """One verdict for each answered task about a record; may be read again."""

    screened: ScreenedRecords
    answers: Answers

    def __iter__(self) -> Iterator[Verdict]:
        for family in self.answers.families():
            for answer in family:
                if answer.task.stage in STAGES:
                    verdict = _verdict(answer, self.screened)
                    if verdict is not None:
                        yield verdict


def _verdict(answer: Answer, screened: ScreenedRecords) -> Verdict | None:
    """None of a record that is not asked for any more, and without a reply."""
    task = answer.task
    at = screened.index_by_key.get(task.key)
    if at is None:
        return None
    expected = TRUTH[int(screened.records.label[at])]
    value, correct, rule = "", None, ""
    match read_stage(answer, 0).parsed:
        case ScreeningJudgement() as judgement:
            p = "" if judgement.p_include is None else f" {judgement.p_include:.2f}"
            value = f"{judgement.decision}{p}"
            if judgement.decision != "unclear":
                correct = judgement.decision == expected
            rule = ", ".join((judgement.rule, *judgement.issues))
        case ParseFailure(reason=reason):
            rule = reason
        case None:
            return None
    return Verdict(
        task=task.number,
        model=task.model,
        stage=task.stage,
        key=task.key,
        value=value,
        expected=expected,
        correct=correct,
        rule=rule,
    )


RANKING = ("wss95", "wss100", "atd", "ndcg", "loss", "auroc", "ap")
"""Means over reviews."""

LOSSES = frozenset({"atd", "loss"})
"""Those of them that are the better the lower they are."""

DECISIONS = ("exclude", "include")
"""By what a call is, 0 or 1."""


def comparable(column: ScreeningModelResults) -> Comparable:
    """Makers of the values of a model's headline metrics, by path."""
    view = column.view
    label = view.records.label
    by_path = column.by_path()
    makers: dict[str, Callable[[], ItemValues]] = {}
    for path, rows in (
        ("all.micro.sensitivity", label == 1),
        ("all.micro.specificity", label == 0),
        ("all.micro.accuracy", label >= 0),
        *_by_kind(view),
    ):
        makers[path] = partial(_of_records, view, rows, path, _definition(column, path))
    for word in RANKING:
        path = f"all.macro.{word}"
        makers[path] = partial(_of_reviews, column, word, _definition(column, path))
    return {path: make for path, make in makers.items() if path in by_path}


def labels(column: ScreeningModelResults) -> Labels:
    """What is decided of each record; nothing where it is undecided."""
    view, records = column.view, column.view.records
    reviews = [records.reviews[at] for at in records.review.tolist()]
    return Labels(
        what="decision",
        categories=DECISIONS,
        items=[
            record_key(review, paper)
            for review, paper in zip(reviews, records.papers, strict=True)
        ],
        assigned=[
            None if call == UNDECIDED else DECISIONS[call]
            for call in view.call.tolist()
        ],
    )


def _by_kind(view: DecisionView) -> list[tuple[str, Bools]]:
    records = view.records
    return [
        (f"{kind}.micro.specificity", records.kind == index)
        for index, kind in enumerate(records.kinds)
        if kind != "included"
    ]


def _definition(column: ScreeningModelResults, path: str) -> str:
    return without_interval(column.by_path()[path].definition)


def _of_records(
    view: DecisionView, rows: Bools, path: str, definition: str
) -> ItemValues:
    """Whether each record is decided rightly; undefined where it is undecided."""
    records = view.records
    indices = np.flatnonzero(rows).tolist()
    call, label = view.call.tolist(), records.label.tolist()
    reviews = [records.reviews[at] for at in records.review[rows].tolist()]
    return ItemValues(
        kind="mean",
        items=[
            record_key(review, records.papers[at])
            for review, at in zip(reviews, indices, strict=True)
        ],
        clusters=reviews,
        cluster="review",
        first=[
            None if call[at] == UNDECIDED else float(call[at] == label[at])
            for at in indices
        ],
        definition=definition,
        family=path if path in PAIRED else "",
    )


def _of_reviews(
    column: ScreeningModelResults, word: str, definition: str
) -> ItemValues:
    reviews = column.view.records.reviews
    return ItemValues(
        kind="mean",
        items=reviews,
        clusters=reviews,
        cluster="review",
        first=column.strata["all"].by_review[word],
        definition=definition,
        lower_is_better=word in LOSSES,
    )


HEADLINE = "all.micro.sensitivity"


def score(dataset: ScreeningDataset, answers: Answers) -> Scorecard:
    """All metrics, tables and artifacts of a run; pure."""
    screened = screened_records(dataset, answers)
    predictions = collect_predictions(dataset, answers, screened)
    results = measure_decisions(dataset, predictions)
    comparables = {
        model: comparable(column) for model, column in results.columns.items()
    }
    views = {model: column.view for model, column in results.columns.items()}
    results = replace(results, pairs=pairs(views, comparables, dataset.settings))
    long_tables = record_tables(results)
    findings = (
        *_of_inputs(dataset, answers),
        *predictions.findings,
        *results.findings,
    )
    card = Scorecard(
        models={
            model: MEASURES.describe(column.metrics)
            for model, column in results.columns.items()
        },
        summary=run_text(results, findings),
        headline=HEADLINE,
        worth_explaining=_missed_first(results),
        tables=tuple(
            map(
                MEASURES.titled,
                (*short_tables(results), *(long.table for long in long_tables)),
            )
        ),
        findings=findings,
        figures=figures(results),
        details=StreamedDetails(
            files=long_tables,
            verdicts=ScreeningVerdicts(screened=screened, answers=answers),
        ),
        settings=dataset.settings.model_dump(mode="json", exclude={*INPUTS, "records"}),
        not_available=tuple(_not_available(results)),
        missing=predictions.missing,
        stale=predictions.stale,
        comparable=comparables,
        labelled={
            model: partial(labels, column) for model, column in results.columns.items()
        },
        units={model: _units(results.columns[model]) for model in predictions.models},
    )
    baselines = {
        model: [*trivial_baselines(column)] for model, column in results.columns.items()
    }
    return add_baselines(card, baselines, MEASURES)


def _of_inputs(dataset: ScreeningDataset, answers: Answers) -> tuple[Finding, ...]:
    """What the inputs brought to light; who decided elsewhere was told nothing here."""
    if not answers.imported:
        return dataset.findings
    validation_set = dataset.validation_set
    return () if validation_set is None else validation_set.findings


def _missed_first(results: ScreeningResults) -> str:
    """The review in which the first model misses the most; empty where none is lost."""
    for column in results.columns.values():
        lost = column.strata["all"].counts.decided.fn
        return (
            results.predictions.records.reviews[int(lost.argmax())]
            if lost.any()
            else ""
        )
    return ""


def _units(column: ScreeningModelResults) -> Mapping[str, int]:
    """What a model's cost is told by: who saves reading, excludes rightly."""
    counts = column.strata["all"].counts
    return {
        "record": int(counts.records.sum()),
        "correctly excluded record": int(counts.decided.tn.sum()),
    }


def _not_available(results: ScreeningResults) -> Iterator[str]:
    kinds = results.predictions.records.kinds
    if "near-miss" not in kinds:
        yield "kinds compared: the records have no near misses"
    elif "true-excluded" not in kinds:
        yield "implied contamination: the set has no true exclusions"
    if results.dataset.settings.ensemble and len(results.predictions.models) == 1:
        yield "ensembles: there is one model only"
    if all(column.reasons is None for column in results.columns.values()):
        yield "reason agreement: no true exclusion has a coded reason"
