"""Scores a job that asks one question about each row: see `jobs.kit.questions`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple, TypeAlias, TypeVar

from jobs.kit import charts
from jobs.kit.baselines import TrivialBaseline
from jobs.kit.charts import Chart, ChartFigures, bootstrap_note, share_chart
from jobs.kit.measurements import share, with_intervals
from jobs.kit.measures import MeasurePart, Measures, RateMeasure, ValueMeasure, measured
from jobs.kit.metrics import Ratio, Resamples
from jobs.kit.questions import STAGE, QuestionJob, Questions, Value
from jobs.kit.score import (
    ItemFrame,
    ItemMetric,
    Judged,
    ModelScores,
    TaskVerdicts,
    comparable,
    with_models,
)
from jobs.kit.summary import finding_lines, summary_text
from jobs.kit.tables import TableOf, count, text
from jobs.kit.text_format import with_ends
from jobs.kit.truth import no_truth, without_truth
from runner.job import Answer, Answers
from runner.messages import ParseFailure
from runner.scorecard import (
    NO_TRUTH,
    Finding,
    Labels,
    Metric,
    Scorecard,
)
from store.document import TableBlock, Words

MOST_CATEGORIES = 20
"""Values of the truth up to which answers are labels with a table of confusion."""


Source = TypeVar("Source")


@dataclass(slots=True)
class QuestionAnswers:
    """Answers of one model by row; replicates of a row are averaged."""

    scores: dict[str, list[bool]] = field(default_factory=dict)
    """By key, of rows whose truth is known: whether each reply is right. A reply that
    could not be read is wrong."""
    values: dict[str, Value | None] = field(default_factory=dict)  #: of the last reply
    replies: int = 0
    unread: int = 0

    def row_means(self) -> dict[str, float]:
        """The share of right replies of each row."""
        return {key: sum(right) / len(right) for key, right in self.scores.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class ByDocument:
    """The answers of a model, with the documents that intervals are drawn over."""

    answers: QuestionAnswers
    documents: Mapping[str, Sequence[str]]  #: keys by document

    def right(self) -> Ratio:
        """Right rows of judged rows, by document."""
        means = self.answers.row_means()
        judged = [
            [means[key] for key in keys if key in means]
            for keys in self.documents.values()
        ]
        return Ratio([sum(values) for values in judged], [len(v) for v in judged])


ACCURACY: Mapping[str, RateMeasure[ByDocument]] = {
    "accuracy": RateMeasure(
        "Accuracy",
        "Share of rows with a known truth that were answered right",
        "higher",
        of=ByDocument.right,
        definition="accuracy@1(right / judged rows; an unread reply is wrong, "
        "replicates of a row are averaged)",
    )
}

UNREAD: Mapping[str, ValueMeasure[QuestionAnswers]] = {
    "parse_failure_rate": ValueMeasure(
        "Parse failure rate",
        "Share of replies from which no value could be read",
        "lower",
        of=lambda answers: share(answers.unread, answers.replies),
        definition="parse failure rate@1(replies without a value / replies)",
    )
}

MEASURES = Measures(
    measures={**ACCURACY, **UNREAD},
    forms={
        "~majority": MeasurePart(
            name="majority", meaning="of always answering the most common truth"
        )
    },
    headlines=("accuracy",),
    operational=("parse_failure_rate",),
)


def judge(job: QuestionJob, dataset: Questions, answer: Answer) -> Judged | None:
    """The verdict on a reply; None without one, or of a row that is gone."""
    task = answer.task
    is_judged = task.stage == STAGE and task.key in dataset.rows
    if answer.chat is None or not is_judged:
        return None
    truth = job.truth_of(dataset.rows[task.key])
    value = job.parse(dataset, task, answer.chat)
    failure = value if isinstance(value, ParseFailure) else None
    is_right = failure is None and truth is not None and job.is_right(value, truth)
    return Judged(
        value="" if failure else str(value),
        expected="" if truth is None else str(truth),
        correct=None if truth is None else is_right,
        rule=failure.reason if failure else "read",
        label=None if failure else str(value),
        is_unparsed=failure is not None,
    )


class _Confused(NamedTuple):
    model: str
    truth: str
    answer: str
    rows: int


CONFUSION = TableOf[_Confused](
    name="confusion",
    columns=(
        text("model", lambda row: row.model),
        text("truth", lambda row: row.truth),
        text("answer", lambda row: row.answer, "blank: could not be read"),
        count("n", lambda row: row.rows, "replies"),
    ),
    caption="Answers by truth, of replies to rows whose truth is known.",
)

Plot: TypeAlias = charts.Plot[None, Metric]


CHARTS: tuple[Chart[None, Metric], ...] = (
    share_chart(
        name="accuracy",
        title="Right answers",
        row="accuracy",
        axis="share of rows",
        caption="Share of rows with a known truth that were answered right; n is "
        "their number. Intervals: {intervals}.",
    ),
)


class _AnswerRow(NamedTuple):
    model: str
    key: str
    answer: str | None


ANSWERS = TableOf[_AnswerRow](
    name="answers",
    columns=(
        text("model", lambda row: row.model),
        text("key", lambda row: row.key),
        text("answer", lambda row: row.answer),
    ),
    caption="What each model answers, where no truth is known.",
)


def _answer_rows(by_model: Mapping[str, QuestionAnswers]) -> Iterator[_AnswerRow]:
    for model, records in by_model.items():
        for key, value in records.values.items():
            yield _AnswerRow(model, key, None if value is None else str(value))


def score(job: QuestionJob, dataset: Questions, answers: Answers) -> Scorecard:
    """The scorecard of a run."""
    settings = dataset.settings
    documents: dict[str, list[str]] = {}
    for key in dataset.rows:
        documents.setdefault(job.document(dataset, key), []).append(key)
    truths = {key: job.truth_of(row) for key, row in dataset.rows.items()}
    known = Counter(truth for truth in truths.values() if truth is not None)
    verdicts = TaskVerdicts(answers, partial(judge, job, dataset))
    by_model = {model: QuestionAnswers() for model in answers.models}
    confused: Counter[tuple[str, str, str]] = Counter()
    for verdict in verdicts:
        model = by_model[verdict.model]
        model.replies += 1
        model.unread += not verdict.value
        model.values[verdict.key] = verdict.value or None
        if verdict.correct is not None:
            model.scores.setdefault(verdict.key, []).append(verdict.correct)
            confused[verdict.model, verdict.expected, verdict.value] += 1
    draws = Resamples(
        list(documents),
        settings.boot_b,
        settings.boot_seed,
        level=settings.level,
        cluster=job.cluster or "row",
    )
    rights = {
        name: ByDocument(answers=records, documents=documents)
        for name, records in by_model.items()
    }
    listed = {
        name: MEASURES.describe(
            with_intervals(
                (*measured(ACCURACY, right), *measured(UNREAD, right.answers)), draws
            )
        )
        for name, right in rights.items()
    }
    categories = _categories(known, by_model.values())
    is_labelled = 0 < len(known) <= MOST_CATEGORIES
    findings = dataset.findings
    if not known:
        findings = (*findings, no_truth("--rows FILE", f"a column {job.truth}"))
    note = bootstrap_note(
        settings.level, job.cluster or "row", f"{len(documents):,}", settings.boot_b
    )
    card = Scorecard(
        models={},
        summary=_summary(job, dataset, known.total(), listed, findings),
        headline="accuracy" if known else "",
        worth_explaining=_worst(by_model),
        tables=(
            CONFUSION.table(
                _Confused(*cell, n) for cell, n in sorted(confused.items())
            ),
        )
        if is_labelled
        else ()
        if known
        else (ANSWERS.table(_answer_rows(by_model)),),
        findings=findings,
        figures=ChartFigures(
            CHARTS if known else (),
            lambda: Plot.of(None, {name: of[0] for name, of in listed.items()}, note),
        ),
        details=verdicts,
        settings=settings.model_dump(include={"level", "boot_b", "boot_seed"}),
    )
    compared = ItemMetric(
        "accuracy",
        partial(_judged_rows, job, dataset),
        lambda records: list(records.row_means().values()),
        definition="accuracy@1",
    )
    models = {
        name: ModelScores(
            metrics=listed[name],
            comparable=comparable([compared], records, {}),
            labels=partial(_labels, categories, records) if categories else None,
            units={"row": len(records.values)},
            baselines=_majority(known),
        )
        for name, records in by_model.items()
    }
    if not known:
        models = {
            name: without_truth(scores, MEASURES) for name, scores in models.items()
        }
    return with_models(card, models, MEASURES)


def with_metrics(
    card: Scorecard,
    measures: Mapping[str, ValueMeasure[Source]],
    sources: Mapping[str, Source],
) -> Scorecard:
    """The scorecard with further metrics behind those of each model.

    Args:
        card: of `score`.
        measures: declares the metrics; none of them has a drawn interval.
        sources: by model, what its metrics are computed from.
    """
    words = Measures(measures=measures)
    has_truth = all(finding.code != NO_TRUTH for finding in card.findings)
    return replace(
        card,
        models={
            name: (
                *listed,
                *(
                    metric
                    for metric in words.describe(
                        with_intervals(measured(measures, sources[name]))
                    )
                    # an undefined value without a truth is no result
                    if has_truth or metric.value is not None
                ),
            )
            for name, listed in card.models.items()
        },
    )


def _majority(known: Counter[Value]) -> Iterator[TrivialBaseline]:
    """Always answering the most common truth."""
    if known:
        most = max(known.values())
        common = min((str(truth) for truth, n in known.items() if n == most))
        yield TrivialBaseline(
            of="accuracy",
            key="majority",
            name=f"always {common}",
            value=most / known.total(),
            n=known.total(),
            formula="rows of the most common truth / judged rows",
        )


def _worst(by_model: Mapping[str, QuestionAnswers]) -> str:
    """The row that the first model answers worst."""
    for records in by_model.values():
        means = records.row_means()
        if means:
            return min(means, key=means.__getitem__)
    return ""


def _judged_rows(
    job: QuestionJob, dataset: Questions, records: QuestionAnswers
) -> ItemFrame:
    """The rows of a model whose truth is known."""
    keys = list(records.scores)
    clusters = [job.document(dataset, key) for key in keys]
    return ItemFrame.of(keys, clusters, cluster=job.cluster or "row")


def _categories(
    known: Collection[Value], models: Iterable[QuestionAnswers]
) -> tuple[str, ...]:
    """The known truths, or without any the answers; none where there are too many."""
    words: Iterable[Value | None] = known or {
        value for records in models for value in records.values.values()
    }
    categories = sorted({str(word) for word in words if word is not None})
    return tuple(categories) if len(categories) <= MOST_CATEGORIES else ()


def _labels(categories: tuple[str, ...], records: QuestionAnswers) -> Labels:
    return Labels(
        what="answer",
        categories=categories,
        items=list(records.values),
        assigned=[
            str(value) if str(value) in categories else None
            for value in records.values.values()
        ],
    )


def _summary(
    job: QuestionJob,
    dataset: Questions,
    judged: int,
    listed: Mapping[str, Sequence[Metric]],
    findings: Iterable[Finding],
) -> str:
    head = f"{job.name}  {len(dataset.rows):,} rows, {judged:,} with a known truth"
    notes = [*finding_lines(f for f in findings if f.code == NO_TRUTH)]
    if not judged:
        unread = [(name, with_ends(of[1], ".1%")) for name, of in listed.items()]
        table = TableBlock([Words("model", 30), Words("unread")], unread)
        return summary_text([head, table, *notes])
    columns = [Words("model", 30), Words("accuracy"), Words("judged"), Words("unread")]
    rows = [
        (name, with_ends(of[0], ".3f"), f"{of[0].n:,}", with_ends(of[1], ".1%"))
        for name, of in listed.items()
    ]
    return summary_text([head, TableBlock(columns, rows)])
