"""Values that were measured, and the metrics that they become with their intervals.

A job measures without drawing anything. A value holds the statistic to draw again.
`with_intervals` draws all of a model in one pass over the same resamples, states in
each definition how its interval was made, and notes an interval that many replicates
had no value for:

    >>> value = pooled(Ratio([8, 9, 7], [10, 10, 10]))
    >>> value.value, value.n
    (0.8, 30)
    >>> recall = Measurement(path="recall", definition="recall@1()", measured=value)
    >>> draws = Resamples(["a", "b", "c"], cluster="paper")
    >>> (metric,) = with_intervals([recall], draws)
    >>> round(metric.lo, 2), round(metric.hi, 2)
    (0.26, 1.0)
    >>> metric.definition[:51]
    'recall@1(); interval by paper: Clopper-Pearson at t'

Ways to measure: `count` of things, `share` of things without an interval,
`wilson_share` with one that takes them as independent, `pooled` over clusters,
`mean_over` clusters. Other values are a `MeasuredValue` that the job makes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from jobs.kit.metrics import (
    SHARE,
    Interval,
    Range,
    Ratio,
    ResampledStatistic,
    Resamples,
    aggregate,
    mean_of,
    ratio,
    round12,
    wilson,
    with_interval,
)
from jobs.kit.metrics.cluster_statistics import Derived, Statistic
from runner.scorecard import Metric, Target

MOST_TERMS = 10_000
"""Clusters of which a metric holds its terms: 170 ratios then take 27 MB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredValue:
    """A value, what it is over, and how it varies."""

    value: float | int | None  #: None: undefined
    n: int  #: items that it speaks about
    n_defined: int | None = None  #: of them, those with a value
    mean: float | None = None  #: over clusters
    std: float | None = None  #: over the same
    statistic: Statistic | ResampledStatistic | None = None  #: what is drawn again
    interval: Interval | None = None  #: one that needs no drawing, such as Wilson's


def count(value: float | None, n: int | None = None) -> MeasuredValue:
    """A number of things, out of *n*; by itself where there is no *n*."""
    return MeasuredValue(value=value, n=int(value or 0) if n is None else n)


def counts(values: Mapping[str, int], n: int) -> dict[str, MeasuredValue]:
    """Numbers of things by name, out of *n*."""
    return {name: count(value, n) for name, value in values.items()}


def share(k: int, n: int) -> MeasuredValue:
    """A share of *n* things; undefined where there are none."""
    return MeasuredValue(value=ratio(k, n), n=n)


def wilson_share(
    k: int, n: int, level: float, *, is_rounded: bool = False
) -> MeasuredValue:
    """A share with Wilson's interval, which takes things as independent.

    Args:
        k: things that count.
        n: all of them.
        level: of the interval.
        is_rounded: give its ends the 12 digits of those that are drawn.
    """
    ends = wilson(k, n, level)
    if is_rounded and ends.lo is not None and ends.hi is not None:
        ends = replace(ends, lo=round12(ends.lo), hi=round12(ends.hi))
    return MeasuredValue(value=ratio(k, n), n=n, interval=ends)


def pooled(rate: Ratio | Derived) -> MeasuredValue:
    """The rate of all clusters together."""
    statistic = rate.statistic if isinstance(rate, Derived) else rate
    return MeasuredValue(value=rate.value, n=rate.n, statistic=statistic)


def mean_over(
    values: Sequence[float | None], within: Range = SHARE, n: int | None = None
) -> MeasuredValue:
    """The mean over the clusters that have a value.

    Args:
        values: one a cluster.
        within: the range of a value.
        n: clusters that could have one; all where it is not stated.
    """
    summary = aggregate(values)
    return MeasuredValue(
        value=summary.mean,
        n=summary.n if n is None else n,
        n_defined=summary.n_defined,
        mean=summary.mean,
        std=summary.std,
        statistic=mean_of(values, within),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A measured value under its path; a metric but for its interval."""

    path: str
    definition: str  #: without how the interval is made
    measured: MeasuredValue
    subset: str = ""
    note: str = ""
    target: Target | None = None


def with_wilson(
    measurement: Measurement, level: float, stated: str, note: str
) -> Measurement:
    """A pooled rate as `~wilson`: with the interval that independent items would have.

    Args:
        measurement: of a `Ratio` whose denominators count items.
        level: of the interval.
        stated: how the definition names the interval.
        note: says what is taken as independent.
    """
    rate = measurement.measured.statistic
    if not isinstance(rate, Ratio):
        raise TypeError(f"{measurement.path} is no share of items.")
    return replace(
        measurement,
        path=f"{measurement.path}~wilson",
        definition=f"{measurement.definition}; {stated}",
        measured=wilson_share(int(np.sum(rate.numerators)), rate.n, level),
        note="; ".join(filter(None, (measurement.note, note))),
    )


def with_intervals(
    measurements: Iterable[Measurement], draws: Resamples | None = None, note: str = ""
) -> Iterator[Metric]:
    """Yields the metrics with their intervals, drawn in one pass.

    Args:
        measurements: in the order of the metrics.
        draws: of the clusters that the statistics are over; None: draw nothing.
        note: stands with each metric whose interval is drawn.
    """
    listed = tuple(measurements)
    statistics = [m.measured.statistic for m in listed if m.measured.statistic]
    intervals = iter(() if draws is None else draws.intervals(statistics))
    for measurement in listed:
        measured = measurement.measured
        is_drawn = measured.statistic is not None and draws is not None
        interval = next(intervals) if is_drawn else measured.interval
        ends = interval or Interval(lo=None, hi=None)
        notes = measurement.note, note if is_drawn else "", ends.dropped
        yield Metric(
            path=measurement.path,
            value=measured.value,
            n=measured.n,
            subset=measurement.subset,
            n_defined=measured.n_defined,
            lo=ends.lo,
            hi=ends.hi,
            definition=with_interval(measurement.definition, ends),
            note="; ".join(filter(None, notes)) or None,
            mean=measured.mean,
            std=measured.std,
            target=measurement.target,
            terms=_terms(measured.statistic),
        )


def _terms(
    statistic: Statistic | ResampledStatistic | None,
) -> tuple[Iterable[float], Iterable[float]] | None:
    """The columns of a ratio, if they are few enough to be held with the metric."""
    if not isinstance(statistic, Ratio) or len(statistic.numerators) > MOST_TERMS:
        return None
    return statistic.numerators, statistic.denominators
