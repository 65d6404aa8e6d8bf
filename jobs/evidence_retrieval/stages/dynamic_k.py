"""How many sentences of a ranking to show: as many as hold most of the score's mass."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal

import numpy as np


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


def mass_k(
    scores: Sequence[float],
    gamma: float,
    *,
    scale: Scale = "zscore",
    temperature: float = 1.0,
) -> int:
    """The first rank at which the softmax of the scores adds up to *gamma*.

    The whole pool if rounding keeps the sum below. Scores are z-scored first, for a
    softmax of probabilities is almost flat.
    """
    if not scores:
        return 0
    column = np.sort(np.asarray(scores, dtype=np.float64))[::-1]
    spread = column.std()
    if scale == "zscore":
        column = (column - column.mean()) / spread if spread > 0 else column * 0
    raised = np.exp((column - column[0]) / temperature)
    held = np.cumsum(raised) / raised.sum()
    reached = np.flatnonzero(held >= gamma)
    return int(reached[0]) + 1 if len(reached) else len(scores)


def selected_k(
    scores: Sequence[float],
    rule: KRule | None,
    *,
    scale: Scale = "zscore",
    temperature: float = 1.0,
) -> int:
    """How many sentences of the pool are shown under *rule*; none without one."""
    if rule is None:
        return 0
    fewest, most = rule.bounds(len(scores))
    k = mass_k(scores, rule.gamma, scale=scale, temperature=temperature)
    return min(max(k, fewest), most)
