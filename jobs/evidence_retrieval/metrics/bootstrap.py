"""Draws bootstrap intervals: the same resamples of posts for every number.

Sections yield measures of some queries; only those of the whole get intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from jobs.evidence_retrieval.queries import UNKNOWN, Queries
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.comparison.models import verdict_rule
from jobs.kit.metrics.cluster_statistics import (
    SHARE,
    Counts,
    Range,
    Ratio,
    ResampledDifference,
    ResampledStatistic,
    Statistic,
)
from jobs.kit.metrics.columns import Bools, Floats, Ints
from jobs.kit.metrics.intervals import Interval, round12, with_interval
from jobs.kit.metrics.resampling import Resamples
from runner.scorecard import Metric

ALL, POSITIVE = "scored", "has_evidence"
"""Subsets: judged queries with a probability, and queries with evidence."""

Clusters: TypeAlias = npt.NDArray[np.intp]
"""The cluster of every query of the sheet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Quotient:
    """A sum over rows by another; a mean where `below` is None."""

    rows: Ints  #: queries of the sheet
    above: Floats | Bools
    below: Floats | Bools | None = None
    range: Range = SHARE  #: the values that it can take


@dataclass(frozen=True, slots=True)
class CurveStatistic:
    """A statistic that is no ratio of sums, such as an area under a curve."""

    make: Callable[[Clusters], ResampledStatistic]


Sampled: TypeAlias = Quotient | CurveStatistic


@dataclass(frozen=True, slots=True, kw_only=True)
class RetrievalMeasure:
    """A metric without its bootstrap interval."""

    path: str
    value: float | int | None
    n: int
    definition: str
    subset: str = ALL
    n_defined: int | None = None
    sampled: Sampled | None = None  #: None: there is no bootstrap interval
    interval: Interval | None = None  #: one of another kind, such as Wilson's
    note: str | None = None


def empty_rate(settings: EvidenceSettings) -> str:
    """What 0/0 is, for definitions."""
    value = settings.zero_division
    return f"0/0 is {'undefined' if value is None else value}"


def count(
    path: str, value: int, subject: str, *, subset: str = ALL
) -> RetrievalMeasure:
    """A plain number of things."""
    return RetrievalMeasure(
        path=path, value=value, n=value, definition=f"count@1({subject})", subset=subset
    )


MOST_ROWS = 200_000
"""Above, queries are not drawn one by one: what is secondary would take longest."""


class PostBootstrap:
    """Resamples of a sheet's judged queries."""

    def __init__(self, queries: Queries, settings: EvidenceSettings) -> None:
        judged = np.flatnonzero(queries.y != UNKNOWN)
        ids = sorted({queries.posts[i] for i in np.unique(queries.post[judged])})
        post_index = {post: i for i, post in enumerate(ids)}
        of_post = np.array([post_index.get(post, UNKNOWN) for post in queries.posts])
        self._settings = settings
        self.seed = settings.boot_seed
        self.rule = verdict_rule(settings)
        self._judged = judged
        self._size = len(queries)
        self._clusters: Clusters = of_post[queries.post].astype(np.intp)
        self.posts = len(ids)
        self.by_post = Resamples(
            ids,
            settings.boot_b,
            settings.boot_seed,
            level=settings.level,
            cluster="post",
            form=settings.interval,
        )

    @cached_property
    def _by_query(self) -> Resamples | None:
        if len(self._judged) > MOST_ROWS:
            return None
        return Resamples.of_rows(
            len(self._judged),
            self._settings.boot_b,
            self._settings.boot_seed,
            level=self._settings.level,
            form=self._settings.interval,
        )

    def metrics(
        self, measures: Sequence[RetrievalMeasure], by_query: Sequence[str] = ()
    ) -> list[Metric]:
        """The measures as metrics with their intervals.

        Args:
            measures: of one block.
            by_query: paths that also get an interval from single queries, as `~query`.
        """
        intervals = self.intervals([m.sampled for m in measures])
        metrics = [
            metric(m, interval or m.interval)
            for m, interval in zip(measures, intervals, strict=True)
        ]
        rows = self._by_query
        if rows is None:
            return metrics
        indices = np.full(self._size, UNKNOWN, dtype=np.intp)
        indices[self._judged] = np.arange(len(self._judged))
        again = [m for m in measures if m.path in by_query and m.sampled is not None]
        for m, interval in zip(
            again,
            _intervals(rows, [m.sampled for m in again], indices, len(self._judged)),
            strict=True,
        ):
            metrics.append(metric(m, interval, mark="~query"))
        return metrics

    def intervals(self, sampled: Sequence[Sampled | None]) -> list[Interval | None]:
        """The interval of each statistic, drawn by post; None where there is none."""
        return _intervals(self.by_post, sampled, self._clusters, self.posts)

    def band(
        self, make: Callable[[Clusters], Callable[[Counts], Floats]], width: int
    ) -> tuple[Interval, ...]:
        """The intervals of a curve at *width* places."""
        return self.by_post.band_of(make(self._clusters), width)

    def differences(self, pairs: Sequence[tuple[Sampled, Sampled]]) -> list[Interval]:
        """The intervals of left minus right, both sides on the same replicates."""
        by_cluster = _Sums(self._clusters, self.posts)
        gaps = [self._gap(by_cluster, left, right) for left, right in pairs]
        return list(self.by_post.intervals(gaps))

    def _gap(
        self, by_cluster: _Sums, left: Sampled, right: Sampled
    ) -> Statistic | ResampledStatistic:
        if isinstance(left, Quotient) and isinstance(right, Quotient):
            return ResampledDifference(by_cluster.ratio(left), by_cluster.ratio(right))
        if isinstance(left, CurveStatistic) and isinstance(right, CurveStatistic):
            return left.make(self._clusters).minus(right.make(self._clusters))
        raise TypeError("A sum over rows and a curve have no difference.")


def _intervals(
    draws: Resamples,
    sampled: Sequence[Sampled | None],
    clusters: Clusters,
    size: int,
) -> list[Interval | None]:
    """The interval of each statistic; None where there is none."""
    by_cluster = _Sums(clusters, size)
    statistics = [
        by_cluster.ratio(statistic)
        if isinstance(statistic, Quotient)
        else statistic.make(clusters)
        for statistic in sampled
        if statistic is not None
    ]
    intervals = iter(draws.intervals(statistics))
    return [None if statistic is None else next(intervals) for statistic in sampled]


class _Sums:
    """Rows added up by cluster; means over the same rows share their denominators."""

    def __init__(self, clusters: Clusters, size: int) -> None:
        self._clusters = clusters
        self._size = size
        self._counts: dict[int, tuple[Ints, Floats]] = {}

    def ratio(self, quotient: Quotient) -> Ratio:
        """The statistic over clusters."""
        rows = quotient.rows
        return Ratio(
            self._added(rows, quotient.above),
            self._counted(rows)
            if quotient.below is None
            else self._added(rows, quotient.below),
            quotient.range,
        )

    def _added(self, rows: Ints, values: Floats | Bools) -> Floats:
        row_clusters = self._clusters[rows]
        sums = np.bincount(row_clusters, weights=values, minlength=self._size)
        return sums.astype(np.float64, copy=False)

    def _counted(self, rows: Ints) -> Floats:
        if id(rows) not in self._counts:
            counts = self._added(rows, np.ones(len(rows)))
            self._counts[id(rows)] = rows, counts  # the rows stay: no id comes twice
        return self._counts[id(rows)][1]


def metric(
    measure: RetrievalMeasure,
    interval: Interval | None = None,
    *,
    mark: str = "",
) -> Metric:
    """A measure as a metric, with an interval that is known, and how it was drawn."""
    notes = [measure.note] if measure.note else []
    definition = measure.definition
    if interval is not None:
        definition = with_interval(definition, interval)
        if interval.flagged:
            notes.append(interval.dropped)
    if mark:
        notes.append("secondary: assumes independent queries")
    return Metric(
        path=f"{measure.path}{mark}",
        value=measure.value,
        n=measure.n,
        subset=measure.subset,
        n_defined=measure.n_defined,
        lo=_stored(interval.lo) if interval else None,
        hi=_stored(interval.hi) if interval else None,
        definition=definition,
        note="; ".join(notes) or None,
    )


def _stored(end: float | None) -> float | None:
    return None if end is None else round12(end)
