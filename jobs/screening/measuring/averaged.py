"""Means over reviews: rates of each review, and what reading in order saves in it."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.metrics import Resamples, aggregate, mean_of, rate_columns
from jobs.metrics.columns import Floats, as_value, quotient
from jobs.screening.measuring.counting import Counts
from jobs.screening.measuring.pooled import (
    BETA,
    FORMULAS,
    READ_BOTH_WAYS,
    definitions,
    range_of,
)
from jobs.screening.measuring.ranking import Values, measures
from jobs.screening.measuring.view import View
from jobs.screening.measuring.wording import drawn
from runner.scorecard import Metric


def rates_by_review(found: Counts) -> dict[str, list[float | None]]:
    """The rates of each review; None where one is undefined."""
    cells = found.decided
    counted = cells.tp, cells.fp, cells.tn, cells.fn
    columns = {
        **rate_columns(*counted),
        "f2": rate_columns(*counted, beta=BETA)["fbeta"],
        "coverage": quotient(cells.n, found.records),
        "workload_reduction": quotient(cells.tn + cells.fn, cells.n),
    }
    by_review = {word: _listed(columns[word]) for word in FORMULAS}
    for reading, own in found.readings.items():
        read = rate_columns(own.tp, own.fp, own.tn, own.fn)
        for word in READ_BOTH_WAYS:
            by_review[f"{reading}.{word}"] = _listed(read[word])
    return by_review


def _listed(column: Floats) -> list[float | None]:
    return [as_value(value) for value in column]


def averaged(
    view: View, name: str, found: Counts, by_review: Values, draws: Resamples
) -> Iterator[Metric]:
    """The mean over the reviews that have a value, and how far they lie apart.

    Args:
        view: whose decisions they are.
        name: of the stratum.
        found: its counts.
        by_review: the measures that are averaged.
        draws: of the reviews.
    """
    stated = {
        **definitions(view),
        **{word: own.definition for word, own in measures(view.settings).items()},
    }
    there = [at for at, n in enumerate(found.records) if n]
    intervals = draws.intervals(
        [mean_of(values, range_of(word)) for word, values in by_review.items()]
    )
    for (word, values), ends in zip(by_review.items(), intervals, strict=True):
        described = aggregate([values[at] for at in there])
        path, formula = f"{name}.macro.{word}", stated[word]
        yield drawn(
            path,
            described.mean,
            n=described.n,
            definition=f"{formula}; mean over reviews",
            interval=ends,
            n_defined=described.n_defined,
            std=described.std,
        )
        # as its mean it is no measure, but a detail of one
        yield Metric(
            path=f"{path}~std",
            value=described.std,
            n=described.n,
            subset=name,
            n_defined=described.n_defined,
            definition=f"{formula}; standard deviation over reviews, ddof=1",
        )
