"""Enforces the budget: each call reserves its worst case before it is sent.

Sans-IO, in whole pico-dollars. Three sums count against the cap: the known cost; the
worst case of calls that may have been billed without a reply or usage; and the worst
case of the calls in flight. A call is sent only if its worst case fits, so spending
cannot exceed the cap, in any order of replies.

Only the provider knows the exact number of tokens of a prompt. If a call costs more
than its worst case, it is counted in full, and all later calls reserve more by that
factor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

WHOLE: Final = Fraction(1)
"""The share of a run that is not split."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetStatistics:
    """A budget's sums in pico-dollars."""

    cap_pico: int | None
    spent_pico: int
    possible_pico: int
    reserved_pico: int
    share: Fraction = WHOLE  #: of the run's cap that this is


class Budget:
    """The money of one run; without a cap it only counts."""

    def __init__(
        self,
        cap_pico: int | None = None,
        *,
        spent_pico: int = 0,
        possible_pico: int = 0,
        share: Fraction = WHOLE,
    ) -> None:
        """Continue from the known and possible cost of earlier processes.

        Args:
            cap_pico: the run's budget; None: no cap.
            spent_pico: known cost so far of this process's share.
            possible_pico: cost that may be billed in addition.
            share: this process's share of the cap; other processes spend the rest.
        """
        self._share = share
        self._cap = None if cap_pico is None else math.floor(cap_pico * share)
        self._spent = spent_pico
        self._possible = possible_pico
        self._reserved = 0
        self._factor = 1.0  #: by which worst cases have proved too low

    def has_room(self, worst_pico: int) -> bool:
        """Return whether a call of that worst case fits; a free one always does."""
        if self._cap is None or worst_pico == 0:
            return True
        taken = self._spent + self._possible + self._reserved
        return taken + self._worst(worst_pico) <= self._cap

    @property
    def is_settled(self) -> bool:
        """Return whether the remaining budget is final: no reservation can return."""
        return not self._reserved

    def reserve(self, worst_pico: int) -> int:
        """Reserve the worst case of a call; return the amount reserved."""
        reserved = self._worst(worst_pico)
        self._reserved += reserved
        return reserved

    def settle(
        self, worst_pico: int, cost_pico: int | None, *, reserved_pico: int
    ) -> None:
        """Release the reservation of a finished call and count its cost.

        Args:
            worst_pico: the argument of `reserve`.
            cost_pico: its cost; None: unknown, so the reservation stays counted.
            reserved_pico: the return value of `reserve`.
        """
        self._reserved -= reserved_pico
        if cost_pico is None:
            self._possible += reserved_pico
            return
        self._spent += cost_pico
        if worst_pico:
            self._factor = max(self._factor, cost_pico / worst_pico)

    def _worst(self, pico: int) -> int:
        return pico if self._factor == 1.0 else math.ceil(pico * self._factor)

    def add(self, pico: int) -> None:
        """Raise the run's cap; without one, do nothing."""
        if self._cap is not None:
            self._cap += math.floor(pico * self._share)

    def statistics(self) -> BudgetStatistics:
        """Return the sums as values."""
        return BudgetStatistics(
            cap_pico=self._cap,
            spent_pico=self._spent,
            possible_pico=self._possible,
            reserved_pico=self._reserved,
            share=self._share,
        )
