"""Measures the reading that a model's order saves, and thresholds on p_include.

A review with one class only has no ranking to evaluate: its measures are undefined.

A threshold that is chosen and evaluated on the same records is biased. So the same
choice is also made on all reviews but one and evaluated on that one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import astuple, dataclass, field
from decimal import Decimal
from functools import cached_property

import numpy as np

from jobs.kit.measurements import MeasuredValue, Measurement, count
from jobs.kit.measures import ComputedMeasure, Measure, ValueMeasure, measured
from jobs.kit.metrics import (
    NOT_NEGATIVE,
    SHARE,
    SIGNED,
    Confusion,
    Range,
    Ratio,
    at_threshold,
    auprc,
    auroc,
    confusion,
    curve,
    rates,
    ratio,
)
from jobs.kit.metrics.columns import Bools, Floats, Ints
from jobs.kit.metrics.screening import (
    Wss,
    atd,
    last_relevant_rank,
    recall_at_share,
    screening_loss,
    screening_ndcg,
    tnr_at_recall,
    wss,
)
from jobs.screening.decisions import DecisionView
from jobs.screening.rates import RATIO_CAVEAT
from jobs.screening.settings import ScreeningSettings

FIRST = 0.10
"""Share of a review's records that recall is computed for."""

LEVELS = (0.95, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedReview:
    """One review in screening order."""

    review: int
    rows: Ints  #: indices among all records
    label: Bools
    height: Floats  #: rank scores, descending

    @property
    def has_both(self) -> bool:
        """Whether there are included papers and others."""
        return bool(self.label.any() and not self.label.all())


def rank_reviews(view: DecisionView, rows: Bools) -> Iterator[RankedReview]:
    """Yield every review of a stratum that has records, in order of its id."""
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


@dataclass(frozen=True, slots=True)
class RankingMeasure(ComputedMeasure):
    """A measure of one ranked review, averaged over reviews."""

    of: Callable[[RankedReview], float | None] = field(kw_only=True)
    range: Range = field(default=SHARE, kw_only=True)


RANKING: Mapping[str, RankingMeasure] = {
    "tnr95": RankingMeasure(
        "True negative rate at 95% recall",
        "Share of negatives that rank below the place where 95% of a review's papers "
        "are found",
        "higher",
        of=lambda ranked: tnr_at_recall(ranked.label, LEVELS[0]),
        definition="tnr_at_recall@1(negatives ranked after recall 0.95 is reached)",
    ),
    "atd": RankingMeasure(
        "Average time to discovery",
        "Mean rank of a review's papers as a share of its records",
        "lower",
        of=lambda ranked: atd(ranked.label),
        definition="atd@1(mean rank of the included, by records)",
    ),
    "last_relevant_rank": RankingMeasure(
        "Rank of the last included paper",
        "Records that a person reads in the model's order until the last paper of a "
        "review is found",
        "lower",
        of=lambda ranked: last_relevant_rank(ranked.label),
        definition="last_relevant_rank@1(records)",
        range=NOT_NEGATIVE,
    ),
    "loss": RankingMeasure(
        "Ranking loss",
        "Distance of the model's order from the best one; 0 is the best order, 1 the "
        "worst",
        "lower",
        of=lambda ranked: screening_loss(ranked.label),
        definition="screening_loss@1(0 best order, 1 worst)",
    ),
    "ndcg": RankingMeasure(
        "Normalised discounted cumulative gain",
        "How near the model's order is to one with all included papers first, which "
        "has 1",
        "higher",
        of=lambda ranked: screening_ndcg(ranked.label),
        definition="screening_ndcg@1(whole list)",
    ),
    "auroc": RankingMeasure(
        "AUROC",
        "How often an included paper ranks above a negative of its review; chance is "
        "0.5",
        "higher",
        of=lambda ranked: auroc(ranked.label, ranked.height),
        definition="auroc@1(ties count half)",
    ),
    "ap": RankingMeasure(
        "Average precision",
        "Precision averaged over the ranks of a review's included papers; chance is "
        "the share included",
        "higher",
        of=lambda ranked: auprc(ranked.label, ranked.height),
        definition="auprc@1(steps over distinct scores)",
        note=RATIO_CAVEAT,
    ),
}

WSS = Measure(
    "WSS at {level}%",
    "Work saved over sampling: the share of reading saved, beyond chance, when a "
    "person reads in the model's order until {level}% of a review's papers are "
    "found",
    "higher",
)
RECALL_AT = Measure(
    "Recall in the first {share}%",
    "Share of a review's papers in the first {share}% of the model's order",
    "higher",
)


def ranking_measures(settings: ScreeningSettings) -> Mapping[str, RankingMeasure]:
    """Return the measures by name, in display order."""
    is_ceil = settings.recall_share == "ceil"
    recall = RankingMeasure(
        RECALL_AT.name,
        RECALL_AT.meaning,
        RECALL_AT.direction,
        of=lambda ranked: recall_at_share(ranked.label, FIRST, ceil=is_ceil),
        definition=f"recall_at_share@1(share={FIRST}, {settings.recall_share})",
    )
    return {
        **{
            f"wss{100 * level:g}": _work_saved(level, settings.wss)
            for level in (*LEVELS, *settings.wss_level)
        },
        "tnr95": RANKING["tnr95"],
        "recall_at_10pct": recall,
        **RANKING,
    }


def _work_saved(level: float, form: Wss) -> RankingMeasure:
    return RankingMeasure(
        WSS.name,
        WSS.meaning,
        WSS.direction,
        of=lambda ranked: wss(ranked.label, level, form=form),
        definition=f"wss@1(level={level:g}, form={form})",
        note=RATIO_CAVEAT,
        range=SIGNED,
    )


ReviewValues = Mapping[str, list[float | None]]
"""By measure, a value per review; None if it is undefined."""


def measure_ranking(view: DecisionView, rows: Bools) -> ReviewValues:
    """Return every measure of every review of a stratum."""
    measures = ranking_measures(view.settings)
    m = len(view.records.reviews)
    values: dict[str, list[float | None]] = {name: [None] * m for name in measures}
    for ranked in rank_reviews(view, rows):
        if ranked.has_both:
            for name, measure in measures.items():
                values[name][ranked.review] = measure.of(ranked)
    return values


TARGET_SENSITIVITY = 0.95
"""Sensitivity that a threshold is chosen for."""

_NO_RECORDS = Confusion(tp=0, fp=0, tn=0, fn=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChosenThreshold:
    """A chosen threshold, with the confusion counts it gives."""

    threshold: float | None  #: None: no included paper has a probability
    left_out: str = ""  #: the review it was evaluated on; empty: the same records
    counts: Confusion | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdSweep:
    """The thresholds of one view, over the records that have a probability."""

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
        """Counts of all left-out reviews, each under the threshold of the others."""
        left_out_counts = [
            chosen.counts for chosen in self.left_out if chosen.counts is not None
        ]
        if not left_out_counts:
            return None
        cells = zip(*map(astuple, left_out_counts), strict=True)
        return Confusion(*map(sum, cells))

    def judged(self) -> Iterator[JudgedThreshold]:
        """Yield each distinct probability as a threshold, then the chosen ones."""
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

    def measurements(self) -> Iterator[Measurement]:
        """Yield the metrics of the chosen threshold, in sample and left out.

        Only the left-out ones have an interval: resampling records under a threshold
        that was chosen on them would hide the uncertainty of the choice.
        """
        subset = "has p_include"
        left_out = tuple(chosen.counts or _NO_RECORDS for chosen in self.left_out)
        for judged in (
            ThresholdCounts(choice="in_sample", counts=self.in_sample.counts),
            ThresholdCounts(
                choice="leave_one_out", counts=self.over_reviews, drawn=left_out
            ),
        ):
            yield from measured(THRESHOLD_RATES, judged, subset=subset)
        yield from measured(THRESHOLDS, self, subset=subset)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThresholdCounts:
    """Counts of thresholds that were chosen in one way."""

    choice: str
    counts: Confusion | None
    drawn: tuple[Confusion, ...] = ()  #: by review; empty: there is no interval

    def rate(
        self, word: str, of: Callable[[Confusion], tuple[float, float]]
    ) -> Mapping[str, MeasuredValue]:
        """Return one of the rates, with an interval over its counts *of*."""
        rate_values = {} if self.counts is None else rates(self.counts)
        value = MeasuredValue(
            value=rate_values.get(word),
            n=0 if self.counts is None else int(self.counts.n),
            statistic=Ratio.of(self.drawn, of) if self.drawn else None,
        )
        return {self.choice: value}


THRESHOLD_RATES: Mapping[str, ValueMeasure[ThresholdCounts]] = {
    "threshold95.{choice}.sensitivity": ValueMeasure(
        "Sensitivity at a threshold for 95%, {choice}",
        "Sensitivity where records are included from the largest probability that "
        "reaches 95% sensitivity; {choice}",
        "higher",
        of=lambda judged: judged.rate("sensitivity", lambda c: (c.tp, c.tp + c.fn)),
        definition=f"sensitivity@1(threshold for sensitivity >= {TARGET_SENSITIVITY}, "
        "{choice}, by review)",
    ),
    "threshold95.{choice}.specificity": ValueMeasure(
        "Specificity at a threshold for 95% sensitivity, {choice}",
        "Specificity where records are included from the largest probability that "
        "reaches 95% sensitivity; {choice}",
        "higher",
        of=lambda judged: judged.rate("specificity", lambda c: (c.tn, c.tn + c.fp)),
        definition=f"specificity@1(threshold for sensitivity >= {TARGET_SENSITIVITY}, "
        "{choice}, by review)",
    ),
}

THRESHOLDS: Mapping[str, ValueMeasure[ThresholdSweep]] = {
    "threshold95.{choice}.threshold": ValueMeasure(
        "Threshold for 95% sensitivity, {choice}",
        "Largest probability of inclusion that reaches 95% sensitivity; {choice}",
        of=lambda sweep: {"in_sample": count(sweep.in_sample.threshold, len(sweep.p))},
        definition="threshold@1(largest p_include with sensitivity >= "
        f"{TARGET_SENSITIVITY})",
    )
}


@dataclass(frozen=True, kw_only=True)
class JudgedThreshold:
    """A threshold of a sweep, with its counts."""

    sweep: ThresholdSweep
    choice: str
    threshold: float | None
    left_out: str = ""
    counts: Confusion | None

    @cached_property
    def rates(self) -> Mapping[str, float | None]:
        """Rates of the threshold; empty without counts."""
        return {} if self.counts is None else rates(self.counts)


def sweep_thresholds(view: DecisionView) -> ThresholdSweep:
    """Return all thresholds of a view, over the whole set."""
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
    """Return the largest threshold that reaches the target sensitivity."""
    above, below = Decimal(str(TARGET_SENSITIVITY)).as_integer_ratio()
    needed = -(-above * len(falling) // below)
    return float(falling[needed - 1]) if needed else None
