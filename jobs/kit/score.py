"""Builds what a scorecard holds by model, item and task from one declaration of each.

An `ItemFrame` holds what one model says of each item: keys, clusters, truth, label and
score. Labels follow from it, and so do the item values that `siftlog compare` and the
tables of pairs need. A job declares its compared metrics as a table of `ItemMetric`s:

    >>> @dataclass(frozen=True)
    ... class Screened:
    ...     papers: list[str]
    ...     reviews: list[str]
    ...     truth: list[int]
    ...     decision: list[int]
    >>> def decided_papers(model: Screened) -> ItemFrame:
    ...     return ItemFrame.of(
    ...         model.papers,
    ...         model.reviews,
    ...         cluster="review",
    ...         truth=np.array(model.truth),
    ...         label=np.array(model.decision),
    ...         categories=("exclude", "include"),
    ...     )
    >>> COMPARED = (
    ...     ItemMetric("accuracy", decided_papers, definition="accuracy@1()"),
    ...     ItemMetric(
    ...         "sensitivity",
    ...         decided_papers,
    ...         rows=lambda model: np.array(model.truth) == 1,
    ...         definition="recall@1()",
    ...     ),
    ... )
    >>> model = Screened(["p", "q", "r"], ["A", "A", "B"], [1, 0, 1], [1, 1, NO_LABEL])
    >>> values = comparable(COMPARED, model, {})
    >>> values["accuracy"]().items, values["accuracy"]().first
    (['p', 'q', 'r'], [1.0, 0.0, None])
    >>> values["sensitivity"]().items, values["sensitivity"]().clusters
    (['p', 'r'], ['A', 'B'])
    >>> decided_papers(model).labels("decision").assigned
    ['include', 'include', None]

`TaskVerdicts` streams a verdict for each answered task, and `with_models` adds the
parts of each model to a scorecard.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Generic, Literal, Self, TypeAlias, TypeVar

import numpy as np

from jobs.kit.baselines import TrivialBaseline, add_baselines
from jobs.kit.measures import Measures
from jobs.kit.metrics import Ratio, without_interval
from jobs.kit.metrics.columns import Bools, Floats, Ints
from runner.job import Answer, Answers, Task
from runner.scorecard import Comparable, ItemValues, Labels, Metric, Scorecard, Verdict

NO_LABEL = -1
"""In the column of labels: the model assigns none."""

Column: TypeAlias = Sequence[float | None] | Floats
"""A value of each item; None or NaN where it is undefined."""

OfFrame: TypeAlias = Literal["correct", "auroc", "auprc"]
"""Metrics that the columns of a frame give: a mean and two areas."""


@dataclass(frozen=True, kw_only=True)
class ItemFrame:
    """Results of one model for each item, in columns of equal length.

    Keys and clusters are functions of the row, so that a frame of a million items
    holds no text until a metric is compared.
    """

    size: int
    key: Callable[[int], str]  #: models are paired by it
    cluster_of: Callable[[int], str]  #: the document that an item is part of
    cluster: str  #: what such a document is called, such as "paper"
    truth: Ints | None = None  #: index in the categories
    label: Ints | None = None  #: index in the categories, or `NO_LABEL`
    score: Floats | None = None  #: NaN: none; higher is more positive
    categories: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        keys: Sequence[str],
        clusters: Sequence[str] | None = None,
        *,
        cluster: str,
        truth: Ints | None = None,
        label: Ints | None = None,
        categories: tuple[str, ...] = (),
    ) -> ItemFrame:
        """The frame of listed items; without clusters each is one of its own."""
        return cls(
            size=len(keys),
            key=keys.__getitem__,
            cluster_of=(keys if clusters is None else clusters).__getitem__,
            cluster=cluster,
            truth=truth,
            label=label,
            categories=categories,
        )

    @cached_property
    def keys(self) -> list[str]:
        """The key of every row; all metrics of the frame share the list."""
        return [*map(self.key, range(self.size))]

    @cached_property
    def clusters(self) -> list[str]:
        """The cluster of every row."""
        return [*map(self.cluster_of, range(self.size))]

    @property
    def correct(self) -> Floats:
        """1 where the label is the truth, 0 where it is not, NaN without a label."""
        label = _present(self.label, "labels")
        return np.where(label < 0, np.nan, label == _present(self.truth, "truth"))

    def labels(self, what: str) -> Labels:
        """The labels in words.

        Args:
            what: a label is, such as "decision".
        """
        assigned = _present(self.label, "labels").tolist()
        return Labels(
            what=what,
            categories=self.categories,
            items=self.keys,
            assigned=[None if at < 0 else self.categories[at] for at in assigned],
        )

    def columns(self, of: OfFrame) -> tuple[Column, Column | None]:
        """The columns of item values that a metric of the frame needs."""
        if of == "correct":
            return self.correct, None
        truth = _present(self.truth, "truth").astype(np.float64)
        return truth, _present(self.score, "scores")


_Part = TypeVar("_Part")


def _present(column: _Part | None, name: str) -> _Part:
    if column is None:
        raise TypeError(f"The frame has no {name}.")
    return column


Source = TypeVar("Source")
"""Data that one model's frames and values are computed from."""


@dataclass(frozen=True, slots=True)
class ItemMetric(Generic[Source]):
    """A metric that is compared between models item by item."""

    path: str
    items: Callable[[Source], ItemFrame]
    of: Callable[[Source], Column | Ratio] | OfFrame = "correct"
    """The values: a column has their mean compared, a ratio its two sums; or the name
    of a metric of the frame."""
    rows: Callable[[Source], Bools] | None = None  #: items that it is over; None: all
    definition: str = field(default="", kw_only=True)
    """Name and version; empty: that of the model's metric at the path."""
    family: str = field(default="", kw_only=True)
    """Metrics whose tests Holm corrects together; empty: with all that name none."""
    lower_is_better: bool = field(default=False, kw_only=True)

    def values(self, source: Source, definition: str) -> ItemValues:
        """The values of the items of one model."""
        frame = self.items(source)
        rows = None if self.rows is None else np.flatnonzero(self.rows(source)).tolist()
        kind: Literal["mean", "ratio", "auroc", "auprc"] = "mean"
        first: Column
        second: Column | None
        if callable(self.of):
            values = self.of(source)
            if isinstance(values, Ratio):
                kind, first, second = "ratio", values.numerators, values.denominators
            else:
                first, second = values, None
        else:
            kind = "mean" if self.of == "correct" else self.of
            first, second = frame.columns(self.of)
        return ItemValues(
            kind=kind,
            items=frame.keys if rows is None else [*map(frame.key, rows)],
            clusters=frame.clusters if rows is None else [*map(frame.cluster_of, rows)],
            cluster=frame.cluster,
            first=_cells(first, rows),
            second=None if second is None else _cells(second, rows),
            definition=definition,
            lower_is_better=self.lower_is_better,
            family=self.family,
        )


def _cells(column: Column, rows: Sequence[int] | None) -> list[float | None]:
    """The values of some rows, or of all; None for NaN."""
    if not isinstance(column, np.ndarray):
        column = np.array(column, dtype=np.float64)
    chosen = (column if rows is None else column[rows]).astype(np.float64)
    values = chosen.astype(object)
    values[np.isnan(chosen)] = None
    return [*values.tolist()]


def comparable(
    metrics: Iterable[ItemMetric[Source]], source: Source, known: Mapping[str, Metric]
) -> Comparable:
    """Makers of the item values of one model, by path.

    Args:
        metrics: in reading order. One without a definition is left out where the model
            has no metric at its path.
        source: of the model.
        known: the model's metrics by path.
    """
    return {
        metric.path: partial(
            metric.values,
            source,
            metric.definition or without_interval(known[metric.path].definition),
        )
        for metric in metrics
        if metric.definition or metric.path in known
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """The value read from one reply, and whether it is right."""

    value: str = ""  #: empty: nothing could be read
    expected: str = ""
    correct: bool | None = None  #: None where there is no right or wrong
    rule: str = ""  #: the parsing rule that fired, or the reason of the failure
    label: str | None = None  #: see `Verdict`, as for the fields below
    confidence: float | None = None
    is_grounded: bool | None = None
    is_unparsed: bool = False

    @classmethod
    def unparsed(cls, reason: str) -> Self:
        """A reply that could not be parsed and is not judged."""
        return cls(rule=reason, is_unparsed=True)

    def verdict(self, task: Task) -> Verdict:
        """The verdict on *task*."""
        return Verdict(
            task=task.number,
            model=task.model,
            stage=task.stage,
            key=task.key,
            value=self.value,
            expected=self.expected,
            correct=self.correct,
            rule=self.rule,
            label=self.label,
            confidence=self.confidence,
            is_grounded=self.is_grounded,
            is_unparsed=self.is_unparsed,
        )


@dataclass(frozen=True, slots=True)
class TaskVerdicts:
    """Streams the verdicts of a run; may be read again.

    `judge` returns None for an answer that has no verdict.
    """

    answers: Answers
    judge: Callable[[Answer], Judged | None]

    def __iter__(self) -> Iterator[Verdict]:
        for family in self.answers.families():
            for answer in family:
                judged = self.judge(answer)
                if judged is not None:
                    yield judged.verdict(answer.task)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelScores:
    """One model's part of a scorecard."""

    metrics: Iterable[Metric]
    comparable: Comparable = field(default_factory=dict)
    labels: Callable[[], Labels] | None = None
    bookable: Callable[[], Any] | None = None
    units: Mapping[str, int] = field(default_factory=dict)
    baselines: Iterable[TrivialBaseline] = ()


def with_models(
    card: Scorecard, models: Mapping[str, ModelScores], words: Measures
) -> Scorecard:
    """Adds the parts of each model and its trivial baselines to a scorecard.

    Args:
        card: all else.
        models: in the run's order.
        words: of the job's metrics.
    """
    filled = replace(
        card,
        models={
            model: words.describe(scores.metrics) for model, scores in models.items()
        },
        comparable={model: scores.comparable for model, scores in models.items()},
        labelled={
            model: scores.labels
            for model, scores in models.items()
            if scores.labels is not None
        },
        bookable={
            model: scores.bookable
            for model, scores in models.items()
            if scores.bookable is not None
        },
        units={model: scores.units for model, scores in models.items() if scores.units},
    )
    baselines = {model: [*scores.baselines] for model, scores in models.items()}
    return add_baselines(filled, baselines, words)


def models_of(
    models: Mapping[str, ModelScores], words: Measures
) -> Mapping[str, Sequence[Metric]]:
    """The metrics of each model and its trivial baselines, as a scorecard has them.

    Arguments are those of `with_models`.
    """
    return with_models(Scorecard(models={}, summary=""), models, words).models
