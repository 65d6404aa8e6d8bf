"""Counts of a stratum by review: everything that rates are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from jobs.metrics.columns import Bools, Floats, Ints
from jobs.screening.decisions import OUTCOMES
from jobs.screening.measuring.view import SAID, UNDECIDED, View

READINGS: Mapping[str, int] = {"as_include": 1, "as_exclude": 0}
"""What a record counts as that was neither included nor excluded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """A confusion matrix, one number of each cell a review."""

    tp: Floats
    fp: Floats
    tn: Floats
    fn: Floats

    @property
    def n(self) -> Floats:
        """Records in the matrix."""
        return self.tp + self.fp + self.tn + self.fn

    def pooled(self) -> tuple[int, int, int, int]:
        """tp, fp, tn, fn of all reviews together."""
        tp, fp, tn, fn = (int(c.sum()) for c in (self.tp, self.fp, self.tn, self.fn))
        return tp, fp, tn, fn


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """A stratum under one view, by review."""

    records: Floats
    positives: Floats
    decided: Cells  #: decided records only
    readings: Mapping[str, Cells]
    """All records, by how whoever said neither counts: `as_include`, `as_exclude`."""
    outcomes: Mapping[str, int]  #: records of the stratum, by outcome
    imputed: int  #: records that rank without a p_include


def counts(view: View, rows: Bools) -> Counts:
    """Count the *rows* of a view."""
    records = view.records
    m = len(records.reviews)
    review, label = records.review[rows], records.label[rows]
    call = view.call[rows]
    by_outcome = np.bincount(view.outcome[rows], minlength=len(OUTCOMES)).tolist()
    is_decided = call != UNDECIDED
    # whatever the setting makes of what is unclear: a reading is the same under all
    said = SAID[view.outcome[rows]]
    return Counts(
        records=_by_review(review, m),
        positives=_by_review(review[label == 1], m),
        decided=_cells(review[is_decided], label[is_decided], call[is_decided], m),
        readings={
            name: _cells(review, label, np.where(said == UNDECIDED, read_as, said), m)
            for name, read_as in READINGS.items()
        },
        outcomes=dict(zip(OUTCOMES, by_outcome, strict=True)),
        imputed=int(view.imputed[rows].sum()),
    )


def _cells(review: Ints, label: Ints, call: Ints, m: int) -> Cells:
    # 0: true negative, 1: false positive, 2: false negative, 3: true positive
    found = np.bincount(review * 4 + label * 2 + call, minlength=4 * m)
    table = found.reshape(m, 4).astype(np.float64)
    return Cells(tp=table[:, 3], fp=table[:, 1], tn=table[:, 0], fn=table[:, 2])


def _by_review(review: Ints, m: int) -> Floats:
    return np.bincount(review, minlength=m).astype(np.float64)
