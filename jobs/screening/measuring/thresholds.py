"""Thresholds on p_include: what each would give, and one that is chosen.

A threshold that is chosen and judged on the same records flatters itself. Beside it
stands the same choice made on all reviews but one and judged on that one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

import numpy as np

from jobs.metrics import (
    Confusion,
    Interval,
    Ratio,
    Resamples,
    at_threshold,
    confusion,
    curve,
    rates,
    ratio,
    with_interval,
)
from jobs.metrics.columns import Bools, Floats
from jobs.screening.measuring.view import View
from runner.scorecard import Cell, Metric

WANTED = 0.95
"""The sensitivity that a threshold is chosen for."""

COLUMNS = (
    "model",
    "choice",
    "left_out",
    "threshold",
    "sensitivity",
    "specificity",
    "coverage",
    "tp",
    "fp",
    "tn",
    "fn",
)

_NOBODY = Confusion(tp=0, fp=0, tn=0, fn=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """What a chosen threshold gives where it is judged."""

    threshold: float | None  #: None: no included paper has a probability
    left_out: str = ""  #: the review it was judged on; empty: on its own records
    counts: Confusion | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """The thresholds of one view; over the records that have a probability."""

    model: str
    records: int
    y: Bools
    p: Floats
    in_sample: Chosen
    left_out: tuple[Chosen, ...]

    @property
    def coverage(self) -> float | None:
        """Share of records with a probability."""
        return ratio(len(self.p), self.records)

    @property
    def over_reviews(self) -> Confusion | None:
        """All left-out reviews together, each under the threshold of the others."""
        each = [own.counts for own in self.left_out if own.counts is not None]
        if not each:
            return None
        return Confusion(
            tp=sum(own.tp for own in each),
            fp=sum(own.fp for own in each),
            tn=sum(own.tn for own in each),
            fn=sum(own.fn for own in each),
        )

    def table(self) -> Iterator[tuple[Cell, ...]]:
        """A row a distinct probability, then the chosen thresholds."""
        points = curve(self.y, self.p)
        for tau, tp, fp in zip(
            points.threshold[1:].tolist(),
            points.tp[1:].tolist(),
            points.fp[1:].tolist(),
            strict=True,
        ):
            whole = Confusion(
                tp=int(tp),
                fp=int(fp),
                tn=int(points.negatives - fp),
                fn=int(points.positives - tp),
            )
            yield self._row("each", "", tau, whole)
        for own in (self.in_sample, *self.left_out):
            choice = "leave-one-out" if own.left_out else "in-sample"
            yield self._row(choice, own.left_out, own.threshold, own.counts)

    def _row(
        self, choice: str, left_out: str, tau: float | None, counts: Confusion | None
    ) -> tuple[Cell, ...]:
        own = {} if counts is None else rates(counts)
        return (
            self.model,
            choice,
            left_out,
            tau,
            own.get("sensitivity"),
            own.get("specificity"),
            self.coverage,
            *(
                (None,) * 4
                if counts is None
                else (counts.tp, counts.fp, counts.tn, counts.fn)
            ),
        )

    def metrics(self, draws: Resamples) -> Iterator[Metric]:
        """What the chosen threshold gives, in its sample and left out.

        Only what is left out has an interval: to resample records under a threshold
        that was chosen on them would hide how uncertain the choice is.
        """
        each = [own.counts or _NOBODY for own in self.left_out]
        rated = {
            "sensitivity": Ratio([c.tp for c in each], [c.tp + c.fn for c in each]),
            "specificity": Ratio([c.tn for c in each], [c.tn + c.fp for c in each]),
        }
        drawn = dict(zip(rated, draws.intervals([*rated.values()]), strict=True))
        for choice, counts, intervals in (
            ("in_sample", self.in_sample.counts, {}),
            ("leave_one_out", self.over_reviews, drawn),
        ):
            own = {} if counts is None else rates(counts)
            for word in rated:
                ends = intervals.get(word, Interval(lo=None, hi=None))
                yield Metric(
                    path=f"threshold95.{choice}.{word}",
                    value=own.get(word),
                    n=0 if counts is None else int(counts.n),
                    subset="has p_include",
                    lo=ends.lo,
                    hi=ends.hi,
                    definition=with_interval(
                        f"{word}@1(threshold for sensitivity >= {WANTED}, {choice}, "
                        "by review)",
                        ends,
                    ),
                )
        yield Metric(
            path="threshold95.in_sample.threshold",
            value=self.in_sample.threshold,
            n=len(self.p),
            subset="has p_include",
            definition=f"threshold@1(largest p_include with sensitivity >= {WANTED})",
        )


def thresholds(view: View) -> Thresholds:
    """All thresholds of a view, over the whole set."""
    rows = ~view.imputed
    y, p = view.records.label[rows] == 1, view.decisions.p[rows]
    review = view.records.review[rows]
    positives = np.sort(p[y])[::-1]
    place = np.argsort(-p[y], kind="stable")
    of_positive = review[y][place]
    whole = _largest(positives)
    return Thresholds(
        model=view.decisions.model,
        records=len(view.records),
        y=y,
        p=p,
        in_sample=Chosen(
            threshold=whole,
            counts=None if whole is None else confusion(y, at_threshold(p, whole)),
        ),
        left_out=tuple(_left_out(view, y, p, positives, of_positive)),
    )


def _left_out(
    view: View, y: Bools, p: Floats, positives: Floats, of_positive: Floats
) -> Iterator[Chosen]:
    review = view.records.review[~view.imputed]
    order = np.argsort(review, kind="stable")
    ends = np.searchsorted(review[order], np.arange(len(view.records.reviews) + 1))
    for at, name in enumerate(view.records.reviews):
        own = order[ends[at] : ends[at + 1]]
        tau = _largest(positives[of_positive != at])
        yield Chosen(
            threshold=tau,
            left_out=name,
            counts=None
            if tau is None or not len(own)
            else confusion(y[own], at_threshold(p[own], tau)),
        )


def _largest(falling: Floats) -> float | None:
    """The largest threshold at which enough of the included, in order, are above."""
    above, below = Decimal(str(WANTED)).as_integer_ratio()
    needed = -(-above * len(falling) // below)
    return float(falling[needed - 1]) if needed else None
