"""A number on its way to being a metric: what it is, and what its interval is made of.

Sections yield measures; `metrics` gives all of a model their intervals in one pass over
the same resamples.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from jobs.metrics import (
    FEW_CLUSTERS,
    Interval,
    Ratio,
    Resamples,
    ratio,
    round12,
    wilson,
    with_interval,
)
from runner.scorecard import Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A metric without its bootstrap interval."""

    path: str
    value: float | None
    n: int
    definition: str
    n_defined: int | None = None
    statistic: Ratio | None = None  #: columns over the model's papers, ascending
    interval: Interval | None = None  #: one that is known already
    note: str | None = None


def count(path: str, value: int, definition: str) -> Measure:
    """A plain number of things."""
    return Measure(path=path, value=value, n=value, definition=f"count@1({definition})")


def ratio_of(what: str) -> str:
    """The definition of a share."""
    return f"ratio@1({what})"


def mean_over_papers(what: str) -> str:
    """The definition of a mean over papers."""
    return f"mean@1({what}; over papers, exact sum)"


def rate(
    path: str,
    k: int,
    n: int,
    definition: str,
    statistic: Ratio | None = None,
) -> Measure:
    """A share of *n* things; undefined where there are none."""
    return Measure(
        path=path,
        value=ratio(k, n),
        n=n,
        definition=ratio_of(definition),
        statistic=statistic,
    )


def wilson_rate(path: str, k: int, n: int, definition: str, level: float) -> Measure:
    """A share with Wilson's interval, beside the one that respects clusters."""
    return Measure(
        path=f"{path}~wilson",
        value=ratio(k, n),
        n=n,
        definition=f"{ratio_of(definition)}; wilson@1(level={level})",
        interval=wilson(k, n, level),
        note="assumes independent questions",
    )


def metrics(
    measures: Iterable[Measure], resamples: Resamples, papers: int
) -> tuple[Metric, ...]:
    """The measures as metrics, with the intervals that *resamples* gives them.

    Args:
        measures: of one model.
        resamples: of the papers that the measures' statistics are columns over.
        papers: how many these are.
    """
    given = tuple(measures)
    drawn = iter(resamples.intervals([m.statistic for m in given if m.statistic]))
    return tuple(
        _bootstrapped(measure, next(drawn), papers)
        if measure.statistic
        else plain(measure)
        for measure in given
    )


def plain(measure: Measure) -> Metric:
    """The measure as a metric, with no other interval than it already has."""
    interval = measure.interval
    return Metric(
        path=measure.path,
        value=measure.value,
        n=measure.n,
        n_defined=measure.n_defined,
        lo=_end(interval.lo) if interval else None,
        hi=_end(interval.hi) if interval else None,
        definition=measure.definition,
        note=measure.note,
    )


def _end(value: float | None) -> float | None:
    return None if value is None else round12(value)


def _bootstrapped(measure: Measure, interval: Interval, papers: int) -> Metric:
    notes = [measure.note] if measure.note else []
    if papers < FEW_CLUSTERS:
        notes.append(f"interval from {papers} papers only")
    if interval.flagged:
        notes.append(interval.dropped)
    return plain(
        replace(
            measure,
            interval=interval,
            definition=with_interval(measure.definition, interval),
            note="; ".join(notes) or None,
        )
    )
