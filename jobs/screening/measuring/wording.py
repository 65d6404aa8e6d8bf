"""Metrics with the notes that must stand beside them: what they do not show.

A near miss is unjudged: the review may never have seen it, so that "wrongly included"
is what the set says, not what is known.
"""

from __future__ import annotations

from jobs.metrics import Interval, with_interval
from runner.scorecard import Metric

DRAWN_RATIO = "goes by this set's ratio of negatives, which need not be a search's"
"""Stands beside everything that depends on how common the included papers are."""

DEPENDS_ON_RATIO = frozenset(
    {"precision", "npv", "f1", "f2", "nnr", "accuracy", "workload_reduction", "ap"}
)
"""Names of those; work saved over sampling is one too, at whatever recall."""

UNJUDGED = "near misses are unjudged, not known to be ineligible"


def drawn(
    path: str,
    value: float | None,
    *,
    n: int,
    definition: str,
    interval: Interval,
    n_defined: int | None = None,
    std: float | None = None,
) -> Metric:
    """A metric with the interval that resampled reviews give it.

    Args:
        path: begins with the stratum.
        value: None: undefined.
        n: items that it speaks about.
        definition: without how its interval was made.
        interval: of the value, from resampled reviews.
        n_defined: reviews that have a value, of a mean over reviews.
        std: over these reviews.
    """
    return Metric(
        path=path,
        value=value,
        n=n,
        subset=path.partition(".")[0],
        n_defined=n_defined,
        lo=interval.lo,
        hi=interval.hi,
        definition=with_interval(definition, interval),
        note=note(path, interval.dropped),
        mean=None if n_defined is None else value,
        std=std,
    )


def note(path: str, further: str = "") -> str | None:
    """What the metric of a path does not show; None where there is nothing to say."""
    stratum, _, measure = path.partition(".")
    word = measure.rpartition(".")[2]
    depends = word in DEPENDS_ON_RATIO or measure.startswith("macro.wss")
    notes = [DRAWN_RATIO] if depends else []
    if stratum == "near-miss" and word in {"specificity", "fpr"}:
        notes.append(UNJUDGED)
    if further:
        notes.append(further)
    return "; ".join(notes) or None
