"""Scores a job that asks one question about each row: see `jobs.kit.questions`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np

from jobs.kit import charts
from jobs.kit.baselines import TrivialBaseline
from jobs.kit.charts import Chart, ChartFigures, bootstrap_note, share_chart
from jobs.kit.evaluation import SourceFrame, SourceMeasures
from jobs.kit.measurements import share, with_intervals
from jobs.kit.measures import MeasurePart, Measures, RateMeasure, ValueMeasure, measured
from jobs.kit.metrics import Ratio
from jobs.kit.metrics.columns import Floats, Ints
from jobs.kit.questions import STAGE, QuestionJob, Questions, Value
from jobs.kit.score import (
    ItemFrame,
    ItemMetric,
    Judged,
    ModelScores,
    TaskVerdicts,
    comparable,
    models_of,
    with_models,
)
from jobs.kit.summary import finding_lines, summary_text
from jobs.kit.tables import TableOf, count, text
from jobs.kit.text_format import with_ends
from jobs.kit.truth import no_truth
from runner.evaluation import KEYS_STAY, Evaluation
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
class AnsweredRows:
    """The answers of one model in numbers."""

    right: Floats  #: share of right replies of each row; NaN: not judged
    replies: int
    unread: int

    @classmethod
    def of(cls, answers: QuestionAnswers, keys: Iterable[str]) -> AnsweredRows:
        """Count answers.

        Args:
            answers: of the model.
            keys: of all rows.
        """
        means = answers.row_means()
        return cls(
            right=np.array([means.get(key, np.nan) for key in keys], dtype=np.float64),
            replies=answers.replies,
            unread=answers.unread,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ByDocument:
    """The answers of a model, with the documents that intervals are drawn over."""

    rows: AnsweredRows
    document: Ints  #: number of each row's document
    documents: int

    def right(self) -> Ratio:
        """Right rows of judged rows, by document."""
        is_judged = ~np.isnan(self.rows.right)
        at = self.document[is_judged]
        right = np.bincount(at, self.rows.right[is_judged], self.documents)
        judged = np.bincount(at, minlength=self.documents)
        return Ratio(right.astype(np.float64), judged.astype(np.float64))


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

UNREAD: Mapping[str, ValueMeasure[AnsweredRows]] = {
    "parse_failure_rate": ValueMeasure(
        "Parse failure rate",
        "Share of replies from which no value could be read",
        "lower",
        of=lambda rows: share(rows.unread, rows.replies),
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


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionFrame(Generic[Source]):
    """What all metrics of a run are computed from."""

    rows: Mapping[str, AnsweredRows] = field(metadata=KEYS_STAY)  #: by model
    document: Ints  #: of each row, its number among the documents
    judged: int  #: rows with a known truth
    commonest: int  #: of them, those with the most common truth
    further: SourceFrame[Source]
    """Documents and intervals, and what the measures of the job are computed from."""

    def baselines(self, answer: str = "") -> Iterator[TrivialBaseline]:
        """Always answering the most common truth.

        Args:
            answer: this truth in words, for tables.
        """
        if self.judged:
            yield TrivialBaseline(
                of="accuracy",
                key="majority",
                name="always the most common truth",
                answer=answer,
                value=self.commonest / self.judged,
                n=self.judged,
                formula="rows of the most common truth / judged rows",
            )

    def words(self, further: SourceMeasures[Source] | None) -> Measures:
        """The words of all metrics; without a truth, a report begins with *further*."""
        if further is None:
            return MEASURES
        return replace(
            MEASURES,
            measures={**MEASURES.measures, **further.measures},
            headlines=MEASURES.headlines if self.judged else tuple(further.measures),
        )

    def metrics(
        self, further: SourceMeasures[Source] | None
    ) -> Mapping[str, tuple[Metric, ...]]:
        """Compute the metrics of each model, with intervals, without baselines.

        Args:
            further: measures of the job beside those of this module.
        """
        draws = self.further.draws
        words = self.words(further)
        by_model = {}
        for model, rows in self.rows.items():
            right = ByDocument(
                rows=rows,
                document=self.document,
                documents=len(self.further.documents),
            )
            added = (
                [*further.measurements(self.further.models[model])]
                if further is not None and model in self.further.models
                else []
            )
            metrics = words.describe(
                with_intervals(
                    (*measured(ACCURACY, right), *measured(UNREAD, rows), *added), draws
                )
            )
            by_model[model] = metrics if self.judged else _without_truth(metrics)
        return by_model


def _without_truth(metrics: Iterable[Metric]) -> tuple[Metric, ...]:
    """The metrics but for the accuracy, and those that have no value then."""
    return tuple(
        metric
        for metric in metrics
        if MEASURES.is_operational(metric.path)
        or (metric.path not in ACCURACY and metric.value is not None)
    )


def evaluation(job: QuestionJob) -> Evaluation[QuestionFrame[Any]]:
    """Computes the metrics of a job from a frame."""
    further = job.further

    def metrics_of(frame: QuestionFrame[Any]) -> Mapping[str, Sequence[Metric]]:
        scores = {
            model: ModelScores(metrics=metrics, baselines=frame.baselines())
            for model, metrics in frame.metrics(further).items()
        }
        return models_of(scores, frame.words(further))

    frame: Any = QuestionFrame
    return Evaluation(frame[None if further is None else further.source], metrics_of)


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
    numbers = {document: number for number, document in enumerate(documents)}
    frame = QuestionFrame(
        rows={
            name: AnsweredRows.of(records, dataset.rows)
            for name, records in by_model.items()
        },
        document=np.array(
            [numbers[job.document(dataset, key)] for key in dataset.rows],
            dtype=np.int64,
        ),
        judged=known.total(),
        commonest=max(known.values(), default=0),
        further=SourceFrame(
            models=job.further.collect(dataset, answers) if job.further else {},
            documents=tuple(documents),
            cluster=job.cluster or "row",
            level=settings.level,
            boot_b=settings.boot_b,
            boot_seed=settings.boot_seed,
        ),
    )
    listed = frame.metrics(job.further)
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
        headline="accuracy" if known else _headline(listed.values()),
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
        frame=lambda: frame,
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
            comparable=comparable([compared], records, {}) if known else {},
            labels=partial(_labels, categories, records) if categories else None,
            units={"row": len(records.values)},
            baselines=frame.baselines(f"always {_most_common(known)}"),
        )
        for name, records in by_model.items()
    }
    return with_models(card, models, frame.words(job.further))


def _headline(listed: Iterable[Sequence[Metric]]) -> str:
    """The first metric of the job's own, which needs no truth; else none."""
    paths = (metric.path for metrics in listed for metric in metrics)
    return next((path for path in paths if path not in MEASURES.measures), "")


def _most_common(known: Counter[Value]) -> str:
    """The most common truth; of several, the first as text."""
    most = max(known.values(), default=0)
    return min((str(truth) for truth, n in known.items() if n == most), default="")


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
        unread = [(name, with_ends(of[0], ".1%")) for name, of in listed.items()]
        table = TableBlock([Words("model", 30), Words("unread")], unread)
        return summary_text([head, table, *notes])
    columns = [Words("model", 30), Words("accuracy"), Words("judged"), Words("unread")]
    rows = [
        (name, with_ends(of[0], ".3f"), f"{of[0].n:,}", with_ends(of[1], ".1%"))
        for name, of in listed.items()
    ]
    return summary_text([head, TableBlock(columns, rows)])
