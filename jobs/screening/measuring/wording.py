"""Metrics with what must be said beside them: what they tell, and what they do not.

A near miss is unjudged: the review may never have seen it, so that "wrongly included"
is what the set says, not what is known.
"""

from __future__ import annotations

from collections.abc import Mapping

from jobs.metrics import Interval, with_interval
from runner.scorecard import Metric

DRAWN_RATIO = "goes by this set's ratio of negatives, which need not be a search's"
"""Stands beside everything that depends on how common the included papers are."""

DEPENDS_ON_RATIO = frozenset(
    {"precision", "npv", "f1", "f2", "nnr", "accuracy", "workload_reduction", "ap"}
)
"""Names of those; work saved over sampling is one too, at whatever recall."""

UNJUDGED = "near misses are unjudged, not known to be ineligible"

MEANINGS: Mapping[str, str] = {
    "all.micro.sensitivity": "Of the papers that the reviews include, the share that "
    "the model includes among those that it decided.",
    "all.micro.as_include.sensitivity": "Sensitivity where a person reads whatever "
    "the model leaves undecided: what is kept in use.",
    "all.micro.specificity": "Of the negatives that the model decided, the share that "
    "it excludes.",
    "near-miss.micro.specificity": "Of the papers of related reviews, the hardest to "
    "tell apart, the share that the model excludes.",
    "random.micro.specificity": "Of the papers of any other review, the share that "
    "the model excludes.",
    "true-excluded.micro.specificity": "Of the papers that the reviews excluded, the "
    "share that the model excludes.",
    "all.micro.coverage": "Share of records that the model decided.",
    "all.macro.wss95": "Share of reading saved, beyond chance, when a person reads in "
    "the model's order until 95% of a review's papers are found.",
    "all.macro.auroc": "How often an included paper ranks above a negative of its "
    "review.",
}
"""By path."""


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
        meaning=MEANINGS.get(path, ""),
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
