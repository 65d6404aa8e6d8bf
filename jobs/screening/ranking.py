"""Measures the reading that a model's order saves, and thresholds on p_include.

A review with one class only has no ranking to be right or wrong: every measure of it is
undefined.

A threshold that is chosen and judged on the same records flatters itself. So the same
choice is also made on all reviews but one and judged on that one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property

import numpy as np

from jobs.kit.metrics import (
    Confusion,
    Interval,
    Ratio,
    Resamples,
    at_threshold,
    auprc,
    auroc,
    confusion,
    curve,
    rates,
    ratio,
    with_interval,
)
from jobs.kit.metrics.columns import Bools, Floats, Ints
from jobs.kit.metrics.screening import (
    atd,
    last_relevant_rank,
    recall_at_share,
    screening_loss,
    screening_ndcg,
    tnr_at_recall,
    wss,
)
from jobs.screening.decisions import DecisionView
from jobs.screening.settings import ScreeningSettings
from runner.scorecard import Metric

SHARE = 0.10
LEVELS = (0.95, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedReview:
    """One review in screening order."""

    review: int
    rows: Ints  #: places among all records
    label: Bools
    height: Floats  #: what they are ranked by, falling

    @property
    def has_both(self) -> bool:
        """Whether there are included papers and others."""
        return bool(self.label.any() and not self.label.all())


def rank_reviews(view: DecisionView, rows: Bools) -> Iterator[RankedReview]:
    """Every review of a stratum that has records, in order of its id."""
    order = view.order[rows[view.order]]
    review = view.records.review[order]
    label = view.records.label[order] == 1
    height = view.height[order]
    starts = np.flatnonzero(np.diff(review, prepend=-1))
    for start, end in zip(starts, [*starts[1:], len(order)], strict=True):
        yield RankedReview(
            review=int(review[start]),
            rows=order[start:end],
            label=label[start:end],
            height=height[start:end],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingMeasure:
    """A measure of one ranked review."""

    of: Callable[[RankedReview], float | None]
    definition: str


def ranking_measures(settings: ScreeningSettings) -> Mapping[str, RankingMeasure]:
    """The measures by name, in reading order."""
    ceil = settings.recall_share == "ceil"
    measures: dict[str, RankingMeasure] = {}
    for level in dict.fromkeys((*LEVELS, *settings.wss_level)):
        measures[f"wss{100 * level:g}"] = _wss(level, settings)
    measures["tnr95"] = RankingMeasure(
        of=lambda ranked: tnr_at_recall(ranked.label, LEVELS[0]),
        definition="tnr_at_recall@1(negatives ranked after recall 0.95 is reached)",
    )
    measures["recall_at_10pct"] = RankingMeasure(
        of=lambda ranked: recall_at_share(ranked.label, SHARE, ceil=ceil),
        definition=f"recall_at_share@1(share={SHARE}, {settings.recall_share})",
    )
    measures["atd"] = RankingMeasure(
        of=lambda ranked: atd(ranked.label),
        definition="atd@1(mean rank of the included, by records)",
    )
    measures["last_relevant_rank"] = RankingMeasure(
        of=lambda ranked: last_relevant_rank(ranked.label),
        definition="last_relevant_rank@1(records)",
    )
    measures["loss"] = RankingMeasure(
        of=lambda ranked: screening_loss(ranked.label),
        definition="screening_loss@1(0 best order, 1 worst)",
    )
    measures["ndcg"] = RankingMeasure(
        of=lambda ranked: screening_ndcg(ranked.label),
        definition="screening_ndcg@1(whole list)",
    )
    measures["auroc"] = RankingMeasure(
        of=lambda ranked: auroc(ranked.label, ranked.height),
        definition="auroc@1(ties count half)",
    )
    measures["ap"] = RankingMeasure(
        of=lambda ranked: auprc(ranked.label, ranked.height),
        definition="auprc@1(steps over distinct scores)",
    )
    return measures


def _wss(level: float, settings: ScreeningSettings) -> RankingMeasure:
    form = settings.wss
    return RankingMeasure(
        of=lambda ranked: wss(ranked.label, level, form=form),
        definition=f"wss@1(level={level:g}, form={form})",
    )


ReviewValues = Mapping[str, list[float | None]]
"""By measure, a value a review; None where it is undefined."""


def measure_ranking(view: DecisionView, rows: Bools) -> ReviewValues:
    """Every measure of every review of a stratum."""
    measures = ranking_measures(view.settings)
    m = len(view.records.reviews)
    values: dict[str, list[float | None]] = {name: [None] * m for name in measures}
    for ranked in rank_reviews(view, rows):
        if ranked.has_both:
            for name, measure in measures.items():
                values[name][ranked.review] = measure.of(ranked)
    return values


TARGET_SENSITIVITY = 0.95
"""The sensitivity that a threshold is chosen for."""

_NO_RECORDS = Confusion(tp=0, fp=0, tn=0, fn=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenThreshold:
    """What a chosen threshold gives where it is judged."""

    threshold: float | None  #: None: no included paper has a probability
    left_out: str = ""  #: the review it was judged on; empty: on its own records
    counts: Confusion | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdSweep:
    """The thresholds of one view; over the records that have a probability."""

    model: str
    records: int
    y: Bools
    p: Floats
    in_sample: ChosenThreshold
    left_out: tuple[ChosenThreshold, ...]

    @property
    def coverage(self) -> float | None:
        """Share of records with a probability."""
        return ratio(len(self.p), self.records)

    @property
    def over_reviews(self) -> Confusion | None:
        """All left-out reviews together, each under the threshold of the others."""
        left_out_counts = [
            chosen.counts for chosen in self.left_out if chosen.counts is not None
        ]
        if not left_out_counts:
            return None
        return Confusion(
            tp=sum(c.tp for c in left_out_counts),
            fp=sum(c.fp for c in left_out_counts),
            tn=sum(c.tn for c in left_out_counts),
            fn=sum(c.fn for c in left_out_counts),
        )

    def judged(self) -> Iterator[JudgedThreshold]:
        """Each distinct probability as a threshold, then the chosen thresholds."""
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
            yield JudgedThreshold(
                sweep=self, choice="each", threshold=tau, counts=whole
            )
        for chosen in (self.in_sample, *self.left_out):
            yield JudgedThreshold(
                sweep=self,
                choice="leave-one-out" if chosen.left_out else "in-sample",
                left_out=chosen.left_out,
                threshold=chosen.threshold,
                counts=chosen.counts,
            )

    def metrics(self, draws: Resamples) -> Iterator[Metric]:
        """What the chosen threshold gives, in its sample and left out.

        Only what is left out has an interval: to resample records under a threshold
        that was chosen on them would hide how uncertain the choice is.
        """
        left_out_counts = [chosen.counts or _NO_RECORDS for chosen in self.left_out]
        rated = {
            "sensitivity": Ratio(
                [c.tp for c in left_out_counts], [c.tp + c.fn for c in left_out_counts]
            ),
            "specificity": Ratio(
                [c.tn for c in left_out_counts], [c.tn + c.fp for c in left_out_counts]
            ),
        }
        rate_intervals = dict(
            zip(rated, draws.intervals([*rated.values()]), strict=True)
        )
        for choice, counts, intervals in (
            ("in_sample", self.in_sample.counts, {}),
            ("leave_one_out", self.over_reviews, rate_intervals),
        ):
            rate_values = {} if counts is None else rates(counts)
            for word in rated:
                ends = intervals.get(word, Interval(lo=None, hi=None))
                yield Metric(
                    path=f"threshold95.{choice}.{word}",
                    value=rate_values.get(word),
                    n=0 if counts is None else int(counts.n),
                    subset="has p_include",
                    lo=ends.lo,
                    hi=ends.hi,
                    definition=with_interval(
                        f"{word}@1(threshold for sensitivity >= "
                        f"{TARGET_SENSITIVITY}, {choice}, by review)",
                        ends,
                    ),
                )
        yield Metric(
            path="threshold95.in_sample.threshold",
            value=self.in_sample.threshold,
            n=len(self.p),
            subset="has p_include",
            definition="threshold@1(largest p_include with sensitivity >= "
            f"{TARGET_SENSITIVITY})",
        )


@dataclass(frozen=True, kw_only=True)
class JudgedThreshold:
    """One threshold of a sweep, and what it gives."""

    sweep: ThresholdSweep
    choice: str
    threshold: float | None
    left_out: str = ""
    counts: Confusion | None

    @cached_property
    def rates(self) -> Mapping[str, float | None]:
        """Its rates; none where there are no counts."""
        return {} if self.counts is None else rates(self.counts)


def sweep_thresholds(view: DecisionView) -> ThresholdSweep:
    """All thresholds of a view, over the whole set."""
    rows = ~view.imputed
    y, p = view.records.label[rows] == 1, view.decisions.p[rows]
    review = view.records.review[rows]
    positives = np.sort(p[y])[::-1]
    order = np.argsort(-p[y], kind="stable")
    of_positive = review[y][order]
    whole = _largest(positives)
    return ThresholdSweep(
        model=view.decisions.model,
        records=len(view.records),
        y=y,
        p=p,
        in_sample=ChosenThreshold(
            threshold=whole,
            counts=None if whole is None else confusion(y, at_threshold(p, whole)),
        ),
        left_out=tuple(_left_out(view, y, p, positives, of_positive)),
    )


def _left_out(
    view: DecisionView, y: Bools, p: Floats, positives: Floats, of_positive: Floats
) -> Iterator[ChosenThreshold]:
    review = view.records.review[~view.imputed]
    order = np.argsort(review, kind="stable")
    ends = np.searchsorted(review[order], np.arange(len(view.records.reviews) + 1))
    for at, name in enumerate(view.records.reviews):
        review_rows = order[ends[at] : ends[at + 1]]
        tau = _largest(positives[of_positive != at])
        yield ChosenThreshold(
            threshold=tau,
            left_out=name,
            counts=None
            if tau is None or not len(review_rows)
            else confusion(y[review_rows], at_threshold(p[review_rows], tau)),
        )


def _largest(falling: Floats) -> float | None:
    """The largest threshold at which enough of the included, in order, are above."""
    above, below = Decimal(str(TARGET_SENSITIVITY)).as_integer_ratio()
    needed = -(-above * len(falling) // below)
    return float(falling[needed - 1]) if needed else None
