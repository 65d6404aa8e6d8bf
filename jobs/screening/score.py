"""Scores a run: metrics, tables, files, figures, verdicts and a summary.

Answers are read once, into columns. Verdicts are built while they are written, so that
none stays in memory. Each reply is judged by itself, as the model gave it: no stage,
threshold or replicate changes it. Unclear is neither right nor wrong.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from jobs.kit.metrics.columns import Bools
from jobs.kit.score import (
    ItemFrame,
    ItemMetric,
    ModelScores,
    comparable,
    models_of,
    with_models,
)
from jobs.kit.truth import without_truth
from jobs.screening.data import (
    KINDS,
    UNLABELLED,
    RecordKind,
    ScreeningJudgement,
    record_key,
)
from jobs.screening.decisions import (
    CALLS,
    STAGES,
    ScreenedRecords,
    ScreeningFrame,
    screened_records,
)
from jobs.screening.figures import figures
from jobs.screening.inputs import ScreeningDataset
from jobs.screening.measures import MEASURES
from jobs.screening.predictions import collect_predictions, record_places
from jobs.screening.replies import AnswerColumns, ReplyKind, read_answers
from jobs.screening.results import (
    ACCURACY,
    SENSITIVITY,
    SPECIFICITY,
    ScreeningModelResults,
    ScreeningResults,
    measure_decisions,
    measure_frame,
    pairs,
    trivial_baselines,
)
from jobs.screening.settings import FILE_LISTS, INPUTS
from jobs.screening.summary import run_text
from jobs.screening.tables import record_tables, short_tables
from jobs.screening.worklist import RisFiles
from runner.evaluation import Evaluation
from runner.job import Answers
from runner.messages import ParseFailure
from runner.scorecard import (
    Comparable,
    Finding,
    Labels,
    Metric,
    Scorecard,
    StreamedDetails,
    Verdict,
)


@dataclass(frozen=True, slots=True)
class RecordVerdicts:
    """Streams the verdicts on replies about records; can be iterated again.

    There is none on a record that has left the plan, or that has no reply.
    """

    answers: AnswerColumns
    screened: ScreenedRecords

    def __iter__(self) -> Iterator[Verdict]:
        answers, labels = self.answers, self.screened.records.label.tolist()
        of_forms = [*map(_read_as, answers.forms)]
        for number, key, at, group, kind, p in zip(
            answers.task,
            answers.key,
            record_places(answers, self.screened).tolist(),
            answers.group,
            answers.kind,
            answers.p,
            strict=True,
        ):
            form, (stage, model, _) = of_forms[kind], answers.groups[group]
            if form is None or at < 0 or stage not in STAGES:
                continue
            decision, rule = form
            label = labels[at]
            expected = "" if label == UNLABELLED else CALLS[label]
            is_open = decision in {"", "unclear"} or not expected
            has_p = decision and p == p  # noqa: PLR0124 - NaN is not itself
            yield Verdict(
                task=number,
                model=model,
                stage=stage,
                key=answers.keys[key],
                value=f"{decision} {p:.2f}" if has_p else decision,
                expected=expected,
                correct=None if is_open else decision == expected,
                rule=rule,
                label=decision or None,
                confidence=_confidence(decision, p) if has_p else None,
                is_unparsed=not decision,
            )


def _confidence(decision: str, p: float) -> float | None:
    """Return the stated probability of the decision, given that of inclusion."""
    return {"include": p, "exclude": 1 - p}.get(decision)


def _read_as(kind: ReplyKind) -> tuple[str, str] | None:
    """Return the decision, if any, and the parsing rule or the reason of failure."""
    match kind.parsed:
        case ScreeningJudgement() as judgement:
            return judgement.decision, ", ".join((judgement.rule, *judgement.issues))
        case ParseFailure(reason=reason):
            return "", reason
        case None:
            return None


def decided_records(column: ScreeningModelResults) -> ItemFrame:
    """Return the decision on each record; undecided records have no label."""
    records = column.view.records
    review = records.review.tolist()
    return ItemFrame(
        size=len(records),
        key=lambda at: record_key(records.reviews[review[at]], records.papers[at]),
        cluster_of=lambda at: records.reviews[review[at]],
        cluster="review",
        truth=records.label,
        label=column.view.call,
        categories=CALLS,
    )


def ranked_reviews(column: ScreeningModelResults) -> ItemFrame:
    """Return the reviews whose records are ranked."""
    return ItemFrame.of(column.view.records.reviews, cluster="review")


RANKING = ("wss95", "wss100", "atd", "ndcg", "loss", "auroc", "ap")
"""Ranking measures that are averaged over reviews."""

LOSSES = frozenset({"atd", "loss"})
"""Ranking measures for which lower is better."""


def _of_reviews(word: str, column: ScreeningModelResults) -> Sequence[float | None]:
    return column.strata["all"].by_review[word]


def _of_kind(kind: RecordKind, column: ScreeningModelResults) -> Bools:
    records = column.view.records
    rows: Bools = records.kind == records.kinds.index(kind)
    return rows


COMPARED: tuple[ItemMetric[ScreeningModelResults], ...] = (
    ItemMetric(
        SENSITIVITY,
        decided_records,
        rows=lambda column: column.view.records.label == 1,
        family=SENSITIVITY,
    ),
    ItemMetric(
        SPECIFICITY,
        decided_records,
        rows=lambda column: column.view.records.label == 0,
        family=SPECIFICITY,
    ),
    ItemMetric(ACCURACY, decided_records, family=ACCURACY),
    *(
        ItemMetric(
            f"{kind}.micro.specificity", decided_records, rows=partial(_of_kind, kind)
        )
        for kind in KINDS
        if kind != "included"
    ),
    *(
        ItemMetric(
            f"all.macro.{word}",
            ranked_reviews,
            partial(_of_reviews, word),
            lower_is_better=word in LOSSES,
        )
        for word in RANKING
    ),
)
"""The compared metrics, with the items they are computed from."""


def compared(column: ScreeningModelResults) -> Comparable:
    """Return the item values of a model's headline metrics, by path."""
    return comparable(COMPARED, column, column.by_path())


def score(dataset: ScreeningDataset, answers: Answers) -> Scorecard:
    """Score a run: all metrics, tables and artifacts; pure."""
    columns = read_answers(answers)
    screened = screened_records(dataset, columns)
    predictions = collect_predictions(dataset, columns, screened)
    results = measure_decisions(dataset, predictions)
    has_truth = results.has_truth
    comparables = {
        model: compared(column) if has_truth else {}
        for model, column in results.columns.items()
    }
    views = {model: column.view for model, column in results.columns.items()}
    results = replace(results, pairs=pairs(views, comparables, dataset.settings))
    long_tables = record_tables(results)
    ris = RisFiles(results)
    findings = (*_of_inputs(dataset, answers), *predictions.findings, *results.findings)
    tables = (*short_tables(results), *(long.table for long in long_tables))
    card = Scorecard(
        models={},
        summary=run_text(results, findings),
        headline=SENSITIVITY if has_truth else "",
        worth_explaining=_missed_first(results),
        tables=tuple(map(MEASURES.titled, tables)),
        findings=findings,
        artifacts=ris.artifacts(),
        figures=figures(results),
        details=StreamedDetails(
            files=(*long_tables, ris),
            verdicts=RecordVerdicts(columns, screened),
        ),
        settings=dataset.settings.model_dump(
            mode="json", exclude={*INPUTS, *FILE_LISTS, "question"}
        ),
        not_available=tuple(_not_available(results)),
        missing=predictions.missing,
        stale=predictions.stale,
        frame=lambda: results.frame.without_texts,
    )
    scores = {
        model: replace(
            of_metrics,
            comparable=comparables[model],
            labels=partial(_labels, results.columns[model]),
            units=_units(results.columns[model], has_truth=has_truth)
            if model in predictions.models
            else {},
        )
        for model, of_metrics in _scores(results.columns, has_truth=has_truth).items()
    }
    return with_models(card, scores, MEASURES)


def _scores(
    columns: Mapping[str, ScreeningModelResults], *, has_truth: bool
) -> Mapping[str, ModelScores]:
    """Return the metrics of each model, with its trivial baselines."""
    scores = {
        model: ModelScores(
            metrics=column.metrics, baselines=tuple(trivial_baselines(column))
        )
        for model, column in columns.items()
    }
    if has_truth:
        return scores
    return {model: without_truth(one, MEASURES) for model, one in scores.items()}


def metrics_of(frame: ScreeningFrame) -> Mapping[str, Sequence[Metric]]:
    """Return all metrics by model, from arrays only."""
    columns, _ = measure_frame(frame)
    return models_of(_scores(columns, has_truth=frame.has_truth), MEASURES)


EVALUATION = Evaluation(ScreeningFrame, metrics_of)


def _labels(column: ScreeningModelResults) -> Labels:
    return decided_records(column).labels("decision")


def _of_inputs(dataset: ScreeningDataset, answers: Answers) -> tuple[Finding, ...]:
    """Return the findings of the inputs; an import has only those of the set."""
    if not answers.imported:
        return dataset.findings
    validation_set = dataset.validation_set
    return () if validation_set is None else validation_set.findings


def _missed_first(results: ScreeningResults) -> str:
    """Return the item to explain first.

    This is the review in which the first model misses the most papers; without labels,
    the first record.
    """
    if not results.has_truth:
        return next(iter(results.dataset.screened), "")
    for column in results.columns.values():
        lost = column.strata["all"].counts.decided.fn
        return results.frame.records.reviews[int(lost.argmax())] if lost.any() else ""
    return ""


def _units(column: ScreeningModelResults, *, has_truth: bool) -> Mapping[str, int]:
    """Return the units that cost is divided by, with their numbers."""
    counts = column.strata["all"].counts
    units = {"record": int(counts.records.sum())}
    if has_truth:
        units["correctly excluded record"] = int(counts.decided.tn.sum())
    return units


def _not_available(results: ScreeningResults) -> Iterator[str]:
    kinds = results.frame.records.kinds
    if not results.has_truth:
        pass
    elif "near-miss" not in kinds:
        yield "kinds compared: the records have no near misses"
    elif "true-excluded" not in kinds:
        yield "implied contamination: the set has no true exclusions"
    if results.dataset.settings.ensemble and len(results.predictions.models) == 1:
        yield "ensembles: there is one model only"
    if results.has_truth and all(
        column.reasons is None for column in results.columns.values()
    ):
        yield "reason agreement: no true exclusion has a coded reason"
