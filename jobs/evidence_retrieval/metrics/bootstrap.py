"""Draws bootstrap intervals: the same resamples of posts for every number.

Sections measure a subset of queries. Their measurements are resampled by the `Clusters`
that they receive; without any, as in a fold, there are no intervals.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from jobs.evidence_retrieval.queries import UNKNOWN, Queries
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.comparison.models import verdict_rule
from jobs.kit.measurements import Measurement, with_intervals
from jobs.kit.metrics.cluster_statistics import (
    SHARE,
    Range,
    Ratio,
    ResampledStatistic,
)
from jobs.kit.metrics.columns import Bools, Floats, Ints
from jobs.kit.metrics.resampling import Resamples
from runner.scorecard import Metric

MOST_ROWS = 200_000
"""Maximum number of queries for resampling single queries, which is slow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clusters:
    """The unit of resampling: posts, single queries, or nothing.

    Builds the resampled statistics; None if nothing is resampled.
    """

    of_query: npt.NDArray[np.intp]  #: cluster of every query of the input
    size: int
    is_drawn: bool = True

    def ratio(
        self, rows: Ints, above: Floats | Bools, below: Bools, within: Range = SHARE
    ) -> Ratio | None:
        """Return a ratio of sums over rows, added up by cluster."""
        if not self.is_drawn:
            return None
        return Ratio(self._added(rows, above), self._added(rows, below), within)

    def means(
        self, rows: Ints, columns: Iterable[Floats], within: Range = SHARE
    ) -> Iterator[Ratio | None]:
        """Yield means over the same rows, which share their denominators."""
        if not self.is_drawn:
            yield from (None for _ in columns)
            return
        counts = self._added(rows, np.ones(len(rows)))
        for column in columns:
            yield Ratio(self._added(rows, column), counts, within)

    def mean(self, rows: Ints, column: Floats, within: Range = SHARE) -> Ratio | None:
        """Return a mean over rows, added up by cluster."""
        return next(self.means(rows, [column], within))

    def curve(
        self,
        rows: Ints,
        make: Callable[[npt.NDArray[np.intp]], ResampledStatistic],
    ) -> ResampledStatistic | None:
        """Return a statistic that is not a ratio of sums, from the clusters of rows."""
        if not self.is_drawn or not len(rows):
            return None
        return make(self.of_query[rows])

    def _added(self, rows: Ints, values: Floats | Bools) -> Floats:
        clusters = self.of_query[rows]
        sums = np.bincount(clusters, weights=values, minlength=self.size)
        return sums.astype(np.float64, copy=False)


NO_CLUSTERS = Clusters(of_query=np.empty(0, dtype=np.intp), size=0, is_drawn=False)


class PostBootstrap:
    """Resamples of the judged queries."""

    def __init__(self, queries: Queries, settings: EvidenceSettings) -> None:
        judged = np.flatnonzero(queries.y != UNKNOWN)
        ids = sorted({queries.posts[i] for i in np.unique(queries.post[judged])})
        post_index = {post: i for i, post in enumerate(ids)}
        of_post = np.array([post_index.get(post, UNKNOWN) for post in queries.posts])
        self._settings = settings
        self._judged = judged
        self.rule = verdict_rule(settings)
        self.clusters = Clusters(
            of_query=of_post[queries.post].astype(np.intp), size=len(ids)
        )
        self.by_post = Resamples(
            ids,
            settings.boot_b,
            settings.boot_seed,
            level=settings.level,
            cluster="post",
            form=settings.interval,
        )

    def metrics(self, measurements: Iterable[Measurement]) -> list[Metric]:
        """Return the metrics with their intervals, drawn by post."""
        return list(with_intervals(measurements, self.by_post))

    def by_query(
        self,
        measure: Callable[[Clusters], Iterable[Measurement]],
        paths: Collection[str],
    ) -> Iterator[Metric]:
        """Yield some metrics as `~query`, with intervals drawn by single queries.

        Args:
            measure: yields the measurements for the clusters to draw.
            paths: paths of the metrics, if they can be drawn.
        """
        size = len(self._judged)
        if size > MOST_ROWS:
            return
        indices = np.full(len(self.clusters.of_query), UNKNOWN, dtype=np.intp)
        indices[self._judged] = np.arange(size)
        draws = Resamples.of_rows(
            size,
            self._settings.boot_b,
            self._settings.boot_seed,
            level=self._settings.level,
            form=self._settings.interval,
        )
        drawn = (
            measurement
            for measurement in measure(Clusters(of_query=indices, size=size))
            if measurement.path in paths and measurement.measured.statistic
        )
        for metric in with_intervals(drawn, draws):
            notes = metric.note, "secondary: assumes independent queries"
            note = "; ".join(filter(None, notes))
            yield replace(metric, path=f"{metric.path}~query", note=note)
