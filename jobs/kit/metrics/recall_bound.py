"""Bounds how many relevant records a library holds, at any time of a screening.

People read a library of N records in any order that they like, such as that of a
model, and now and then a record that is drawn at random from those not yet read. From
the random draws alone follows an upper bound on R, the number of relevant records in
the library, and so a lower bound on the recall so far, found / R. It holds at all
looks together: the chance that it is ever wrong is at most alpha, whenever somebody
looks or stops, and however the rest of the order was chosen.

Derivation. Fix a number r and suppose that R = r. Before a draw, F relevant records
are found and u records are unread, so r - F of those are relevant, which is known if
r is true. The draw is uniform, so it is relevant with probability p = (r - F) / u,
whatever was read before and why. Against r stands the alternative that the library
holds s = floor(tau r) relevant records (tau: the recall aimed at), which says
q = max(0, s - F) / u. The likelihood ratio

    L(r) = product over draws of  q / p  if relevant,  (1 - q) / (1 - p)  if not

has, given the past, the expected factor p q / p + (1 - p) (1 - q) / (1 - p) = 1, since
F, u, p and q are known before the draw: a martingale that starts at 1. By Ville's
inequality it ever reaches 1 / alpha with probability at most alpha. Numbers r with
that ratio are rejected for good; the bound is the largest r that is left. The true R
is one fixed number, so trying all r costs nothing.

Why this alternative. Screening may stop once all r > F / tau are rejected. For those
F <= s, so their ratio never dies, and s is the largest number at which stopping would
be right: between the two the likelihood ratio is the most powerful test (Neyman and
Pearson, 1933; sequentially Wald, 1945).

Sources: Ville (1939); Waudby-Smith and Ramdas, "Confidence sequences for sampling
without replacement", 2020. Tests of one look are those of Lewis, Yang and Frieder,
"Certifying one-phase technology-assisted reviews", 2021, and of Callaghan and
Müller-Hansen, "Statistical stopping criteria for automated screening", 2020.

Assumptions: draws are uniform over unread records, recorded before they are shown,
and all are labelled; labels are right; the library does not change. The guarantee is
over the draws, for any library and any ranking. It does not say that relevant records
are in the library at all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np

from jobs.kit.metrics.columns import Bools, Floats, Ints


@dataclass(slots=True, kw_only=True)
class RelevantBound:
    """An upper bound on the relevant records of a library, updated by draws.

    Raises:
        ValueError: *records* is negative, or *target* or *alpha* not between 0 and 1.
    """

    records: int
    target: float  #: recall aimed at; the bound holds at any, and is sharpest for this
    alpha: float  #: chance that the bound is ever wrong, at most
    _ratios: Floats = field(init=False)  #: L(r) of r = 0 .. records
    _rejected: Bools = field(init=False)
    _top: int = field(init=False)  #: all numbers above it are rejected

    def __post_init__(self) -> None:
        if self.records < 0:
            raise ValueError(f"records must be 0 or more, and is {self.records}.")
        for name in ("target", "alpha"):
            value = getattr(self, name)
            if not 0 < value < 1:
                raise ValueError(f"{name} must lie between 0 and 1, and is {value}.")
        self._ratios = np.ones(self.records + 1)
        self._rejected = np.zeros(self.records + 1, dtype=np.bool_)
        self._top = self.records

    def draw(self, *, is_relevant: bool, relevant: int, unread: int) -> None:
        """Take a record drawn from *unread* ones, after *relevant* ones were read.

        Raises:
            ValueError: counts that cannot be.
        """
        if not (0 < unread <= self.records and 0 <= relevant <= self.records - unread):
            raise ValueError(
                f"A draw from {unread} unread records after {relevant} relevant ones "
                f"cannot be in a library of {self.records}."
            )
        # a rejected number stays so, whatever its ratio becomes
        self._top = max(relevant, self.upper(relevant=relevant, unread=unread))
        r = np.arange(relevant, self._top + 1)
        left = (r - relevant).astype(np.float64)  # relevant ones among the unread
        supposed = np.maximum(0, self._alternatives(r) - relevant).astype(np.float64)
        if is_relevant:
            # the least r says that none is left; it is refuted, but bounds nothing
            factors = np.divide(supposed, left, out=np.ones_like(left), where=left > 0)
        else:
            above, below = unread - supposed, unread - left
            factors = np.divide(
                above, below, out=np.full_like(left, math.inf), where=below > 0
            )
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            ratios = self._ratios[r] * factors
        # 0 * inf: all unread were relevant by r, and one was not, so r is refuted
        self._ratios[r] = np.where(np.isnan(ratios), math.inf, ratios)
        self._rejected[r] |= self._ratios[r] >= 1 / self.alpha

    def upper(self, *, relevant: int, unread: int) -> int:
        """The largest number of relevant records that is not rejected."""
        top = min(self._top, relevant + unread)
        rejected = self._rejected[relevant : top + 1]
        if not len(rejected):
            return relevant
        from_top = int(np.argmin(rejected[::-1]))  # 0 as well where all are rejected
        return relevant if rejected[-1 - from_top] else top - from_top

    def recall(self, *, relevant: int, unread: int) -> float:
        """Lower bound on the share of relevant records that was read.

        1 where there is none.
        """
        upper = self.upper(relevant=relevant, unread=unread)
        return relevant / upper if upper else 1.0

    def reaches_target(self, *, relevant: int, unread: int) -> bool:
        """Whether the bound on recall is at least the target, compared exactly."""
        above, below = self._target_ratio
        upper = self.upper(relevant=relevant, unread=unread)
        return relevant * below >= above * upper

    def draws_without_hit(self, *, relevant: int, unread: int) -> int:
        """Return how many more draws reach the target if none of them is relevant.

        Of the numbers to reject, the smallest is rejected last.
        """
        above, below = self._target_ratio
        r = relevant * below // above + 1
        if self.reaches_target(relevant=relevant, unread=unread):
            return 0
        left = r - relevant
        sizes = np.arange(unread, left, -1, dtype=np.float64)  # unread before a draw
        with np.errstate(over="ignore"):
            ratios = float(self._ratios[r]) * np.cumprod(sizes / (sizes - left))
        return int(np.searchsorted(ratios, 1 / self.alpha)) + 1

    def _alternatives(self, r: Ints) -> Ints:
        above, below = self._target_ratio
        return r * above // below

    @property
    def _target_ratio(self) -> tuple[int, int]:
        return Decimal(str(self.target)).as_integer_ratio()
