"""How many sentences of a ranking to show: as many as hold most of the score's mass."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

import numpy as np

from jobs.metrics.columns import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class KRule:
    """How many sentences a query of one state gets."""

    gamma: float  #: share of the mass that must be shown
    k_min: int
    cap: int
    ratio: float  #: of the pool, at most

    def bounds(self, n: int) -> tuple[int, int]:
        """Fewest and most of a pool of *n*; in a short post the most wins."""
        # on decimals: 0.7 * 10 is not 7 in doubles, and its ceiling would be 8
        share = math.ceil(Decimal(str(self.ratio)) * n)
        most = min(self.cap, share, n)
        return min(self.k_min, most), most


UNCERTAIN = KRule(gamma=0.95, k_min=5, cap=12, ratio=0.70)
POS = KRule(gamma=0.90, k_min=3, cap=12, ratio=0.60)

RULES: Mapping[str, KRule | None] = {"NEG": None, "UNCERTAIN": UNCERTAIN, "POS": POS}
"""By state; NEG shows nothing. Without states the rule of UNCERTAIN is everybody's."""

Scale = Literal["zscore", "raw"]


def held_mass(
    scores: Sequence[float] | Floats,
    *,
    scale: Scale = "zscore",
    temperature: float = 1.0,
) -> Floats:
    """The share of the softmax of the scores that the first 1, 2, ... of them hold.

    Scores are z-scored first, for a softmax of probabilities is almost flat.
    """
    column = np.sort(np.asarray(scores, dtype=np.float64))[::-1]
    if not len(column):
        return column
    if scale == "zscore":
        spread = column.std()
        column = (column - column.mean()) / spread if spread > 0 else column * 0
    raised = np.exp((column - column[0]) / temperature)
    held: Floats = np.cumsum(raised) / raised.sum()
    return held


def mass_k(held: Floats, gamma: float) -> int:
    """The first rank at which *held* reaches *gamma*.

    The whole pool if rounding keeps the sum below.
    """
    reached = np.flatnonzero(held >= gamma)
    return int(reached[0]) + 1 if len(reached) else len(held)


def selected_k(held: Floats, rule: KRule | None, gamma: float | None = None) -> int:
    """How many sentences of the pool are shown under *rule*; none without one.

    A *gamma* that is given stands in for the rule's own, as in a sweep.
    """
    if rule is None:
        return 0
    fewest, most = rule.bounds(len(held))
    k = mass_k(held, rule.gamma if gamma is None else gamma)
    return min(max(k, fewest), most)
