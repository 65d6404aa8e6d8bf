"""What reading in the order of a model saves, review by review.

A review with one class only has no ranking to be right or wrong: every measure of it is
undefined.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from jobs.metrics import auprc, auroc
from jobs.metrics.columns import Bools, Floats, Ints
from jobs.metrics.screening import (
    atd,
    last_relevant_rank,
    recall_at_share,
    screening_loss,
    screening_ndcg,
    tnr_at_recall,
    wss,
)
from jobs.screening.measuring.view import View
from jobs.screening.settings import Settings

SHARE = 0.10
LEVELS = (0.95, 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """One review in screening order."""

    review: int
    rows: Ints  #: places among all records
    label: Bools
    height: Floats  #: what they are ranked by, falling

    @property
    def has_both(self) -> bool:
        """Whether there are included papers and others."""
        return bool(self.label.any() and not self.label.all())


def ranked(view: View, rows: Bools) -> Iterator[Ranked]:
    """Every review of a stratum that has records, in order of its id."""
    order = view.order[rows[view.order]]
    review = view.records.review[order]
    label = view.records.label[order] == 1
    height = view.height[order]
    starts = np.flatnonzero(np.diff(review, prepend=-1))
    for start, end in zip(starts, [*starts[1:], len(order)], strict=True):
        yield Ranked(
            review=int(review[start]),
            rows=order[start:end],
            label=label[start:end],
            height=height[start:end],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A measure of one ranked review."""

    of: Callable[[Ranked], float | None]
    definition: str


def measures(settings: Settings) -> Mapping[str, Measure]:
    """The measures by name, in reading order."""
    ceil = settings.recall_share == "ceil"
    found: dict[str, Measure] = {}
    for level in dict.fromkeys((*LEVELS, *settings.wss_level)):
        found[f"wss{100 * level:g}"] = _wss(level, settings)
    found["tnr95"] = Measure(
        of=lambda own: tnr_at_recall(own.label, LEVELS[0]),
        definition="tnr_at_recall@1(negatives ranked after recall 0.95 is reached)",
    )
    found["recall_at_10pct"] = Measure(
        of=lambda own: recall_at_share(own.label, SHARE, ceil=ceil),
        definition=f"recall_at_share@1(share={SHARE}, {settings.recall_share})",
    )
    found["atd"] = Measure(
        of=lambda own: atd(own.label),
        definition="atd@1(mean rank of the included, by records)",
    )
    found["last_relevant_rank"] = Measure(
        of=lambda own: last_relevant_rank(own.label),
        definition="last_relevant_rank@1(records)",
    )
    found["loss"] = Measure(
        of=lambda own: screening_loss(own.label),
        definition="screening_loss@1(0 best order, 1 worst)",
    )
    found["ndcg"] = Measure(
        of=lambda own: screening_ndcg(own.label),
        definition="screening_ndcg@1(whole list)",
    )
    found["auroc"] = Measure(
        of=lambda own: auroc(own.label, own.height),
        definition="auroc@1(ties count half)",
    )
    found["ap"] = Measure(
        of=lambda own: auprc(own.label, own.height),
        definition="auprc@1(steps over distinct scores)",
    )
    return found


def _wss(level: float, settings: Settings) -> Measure:
    form = settings.wss
    return Measure(
        of=lambda own: wss(own.label, level, form=form),
        definition=f"wss@1(level={level:g}, form={form})",
    )


Values = Mapping[str, list[float | None]]
"""By measure, a value a review; None where it is undefined."""


def measured(view: View, rows: Bools) -> Values:
    """Every measure of every review of a stratum."""
    wanted = measures(view.settings)
    m = len(view.records.reviews)
    found: dict[str, list[float | None]] = {name: [None] * m for name in wanted}
    for own in ranked(view, rows):
        if own.has_both:
            for name, measure in wanted.items():
                found[name][own.review] = measure.of(own)
    return found
