"""How far p_include can be taken at its word."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from jobs.metrics import Ratio, Resamples, brier, ece
from jobs.metrics.areas import ece_of
from jobs.metrics.columns import Bools
from jobs.screening.measuring.view import View
from jobs.screening.measuring.wording import drawn
from runner.scorecard import Metric

BINS = 10


def probabilities(
    view: View, name: str, rows: Bools, draws: Resamples
) -> Iterator[Metric]:
    """Brier score and calibration error of the *rows* that have a p_include.

    Args:
        view: whose decisions they are.
        name: of the stratum.
        rows: its records.
        draws: of the reviews.
    """
    own = rows & ~view.imputed
    p, y = view.decisions.p[own], view.records.label[own]
    review, m = view.records.review[own], len(view.records.reviews)
    squares = np.bincount(review, weights=(p - y) ** 2, minlength=m)
    sizes = np.bincount(review, minlength=m)
    (of_brier,) = draws.intervals(
        [Ratio(squares.astype(np.float64), sizes.astype(np.float64))]
    )
    for word, value, ends in (
        ("brier", brier(y, p) if len(p) else None, of_brier),
        (f"ece{BINS}", ece(y, p, BINS), draws.interval_of(ece_of(y, p, review, BINS))),
    ):
        yield drawn(
            f"{name}.micro.{word}",
            value,
            n=len(p),
            definition=f"{word}@1(of p_include where there is one)",
            interval=ends,
        )
