"""What a run may still spend: each call reserves its worst case before it is sent.

Sans-IO, in whole pico-dollars. Three sums are held against the cap: what is known to
be spent; what may have been billed although no reply arrived or none told its usage,
at its worst case; and the worst case of the calls in flight. A call is sent only if
its worst case fits, so spending cannot pass the cap, whatever comes back in which
order.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetStatistics:
    """A budget's sums in pico-dollars."""

    cap_pico: int | None
    spent_pico: int
    possible_pico: int
    reserved_pico: int


class Budget:
    """The money of one run; without a cap it only counts."""

    def __init__(
        self,
        cap_pico: int | None = None,
        *,
        spent_pico: int = 0,
        possible_pico: int = 0,
    ) -> None:
        """Go on from what earlier processes of the run have spent, and may have."""
        self._cap = cap_pico
        self._spent = spent_pico
        self._possible = possible_pico
        self._reserved = 0

    def has_room(self, worst_pico: int) -> bool:
        """Whether a call of that worst case may be sent; a free one always may."""
        if self._cap is None or worst_pico == 0:
            return True
        taken = self._spent + self._possible + self._reserved
        return taken + worst_pico <= self._cap

    def reserve(self, worst_pico: int) -> None:
        """A call is sent."""
        self._reserved += worst_pico

    def settle(self, worst_pico: int, cost_pico: int | None) -> None:
        """A call that had reserved *worst_pico* has ended.

        Args:
            worst_pico: what was reserved.
            cost_pico: what it cost; None: unknown, its worst case stays counted.
        """
        self._reserved -= worst_pico
        if cost_pico is None:
            self._possible += worst_pico
        else:
            self._spent += cost_pico

    def add(self, pico: int) -> None:
        """Raise the cap; without one there is nothing to raise."""
        if self._cap is not None:
            self._cap += pico

    def statistics(self) -> BudgetStatistics:
        """The sums as values."""
        return BudgetStatistics(
            cap_pico=self._cap,
            spent_pico=self._spent,
            possible_pico=self._possible,
            reserved_pico=self._reserved,
        )
