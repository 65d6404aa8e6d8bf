"""Several yes-or-no labels an item: the many readings of "accuracy" and "macro F1".

Tables are (items, labels) of 0 and 1, complete. On sparse labels the three readings of
macro F1 differ threefold, hence the long names.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jobs.metrics.columns import Bools, Floats, as_value, labels, quotient


@dataclass(frozen=True, slots=True, kw_only=True)
class Multilabel:
    """Figures of a decision table against the truth; None where undefined."""

    items: int
    labels: int
    exact_match: float | None  #: also subset accuracy
    hamming_score: float | None  #: share of right cells; not subset accuracy
    jaccard_per_item: float | None  #: mean over items with something to find or found
    jaccard_defined: int  #: how many those are
    micro_f1: float | None  #: over all cells
    f1_per_item: float | None  #: items with nothing to find and nothing found count 0
    f1_per_item_empty_one: float | None  #: those count 1
    f1_per_item_defined: float | None  #: those are left out
    f1_per_item_n_defined: int
    weighted_f1_per_item: float | None  #: by the item's positives
    macro_f1_over_labels: float | None  #: mean over labels where it is defined
    macro_f1_n_defined: int
    weighted_f1_over_labels: float | None  #: by the label's positives

    @property
    def hamming_loss(self) -> float | None:
        """Share of wrong cells."""
        return None if self.hamming_score is None else 1 - self.hamming_score


def multilabel(
    truth: Sequence[Sequence[int]] | npt.NDArray[np.generic],
    decided: Sequence[Sequence[int]] | npt.NDArray[np.generic],
) -> Multilabel:
    """All figures of two tables of one shape.

    Raises:
        ValueError: where the shapes differ, or a cell is not 0 or 1.
    """
    y, h = _table("truth", truth), _table("decided", decided)
    if y.shape != h.shape:
        raise ValueError(f"truth has the shape {y.shape} and decided {h.shape}.")
    items, width = y.shape
    per_item, per_label = _f1(y, h, axis=1), _f1(y, h, axis=0)
    both, either = (y & h).sum(axis=1), (y | h).sum(axis=1)
    jaccard = quotient(both, either)
    there = ~np.isnan(per_item)
    whole = int(y.sum() + h.sum())
    return Multilabel(
        items=items,
        labels=width,
        exact_match=_share(int((y == h).all(axis=1).sum()), items),
        hamming_score=_share(int((y == h).sum()), items * width),
        jaccard_per_item=_mean(jaccard),
        jaccard_defined=int(np.count_nonzero(~np.isnan(jaccard))),
        micro_f1=_share(2 * int((y & h).sum()), whole),
        f1_per_item=_mean(np.where(there, per_item, 0.0)),
        f1_per_item_empty_one=_mean(np.where(there, per_item, 1.0)),
        f1_per_item_defined=_mean(per_item),
        f1_per_item_n_defined=int(there.sum()),
        weighted_f1_per_item=_weighted(per_item, y.sum(axis=1)),
        macro_f1_over_labels=_mean(per_label),
        macro_f1_n_defined=int(np.count_nonzero(~np.isnan(per_label))),
        weighted_f1_over_labels=_weighted(per_label, y.sum(axis=0)),
    )


def _table(
    name: str, values: Sequence[Sequence[int]] | npt.NDArray[np.generic]
) -> Bools:
    table: npt.NDArray[np.generic] = np.asarray(values)
    if table.ndim != len(("items", "labels")):
        raise ValueError(f"{name} must be a table of items by labels.")
    cells: Bools = labels(name, table.ravel()).reshape(table.shape)
    return cells


def _f1(y: Bools, h: Bools, axis: int) -> Floats:
    return quotient(2 * (y & h).sum(axis=axis), y.sum(axis=axis) + h.sum(axis=axis))


def _share(k: int, n: int) -> float | None:
    return k / n if n else None


def _mean(column: Floats) -> float | None:
    there = column[~np.isnan(column)]
    return math.fsum(there) / len(there) if len(there) else None


def _weighted(column: Floats, load: npt.NDArray[np.int_]) -> float | None:
    """The mean by *load*; an undefined value has no load."""
    total = math.fsum(np.nan_to_num(column) * load)
    return as_value(float(quotient(total, load.sum())))
