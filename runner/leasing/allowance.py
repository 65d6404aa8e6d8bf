"""A shard's part of the budget; sans-IO.

A `Budget` whose cap is what the broker has lent so far. Where there is no room for a
call it asks for more, and only the broker's word that there never will be any ends a
shard: money that others hold may come back.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, assert_never

from runner.leasing.messages import (
    AskMoney,
    Money,
    MoneyBack,
    NoMoney,
    Raised,
    Said,
    Short,
)
from runner.money.budget import Budget, BudgetStatistics

CALLS_AHEAD: Final = 16
"""For whose worst case is asked at a time. A call mostly costs a small part of it, and
the rest serves later ones: so there are many more calls than that to a question."""

HELD_S: Final = 1.0
"""That money stays where it was lent for a call, though others wait for some: the call
may wait for its rate, and money would go to and fro as fast as messages do."""


class Allowance(Budget):
    """The money of one shard."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """Nothing is lent yet; *wake* is called where something is to be said."""
        super().__init__(0)
        self._wake = wake
        self._granted = 0
        self._needed = 0  #: by a call that found no room
        self._asked = 0  #: by the question under way
        self._ahead = 0  #: worst case of the last call, if more is lent ahead
        self._is_short = False
        self._is_lean = False  #: nothing is lent ahead any more
        self._reported = 0  #: spent, as the broker knows it
        self._is_fresh = False  #: lent since anything was said
        self._held_until = 0.0
        self._refused: NoMoney | None = None
        self._never = 0  #: what was refused

    @property
    def granted_pico(self) -> int:
        """Lent in all, less what went back."""
        return self._granted

    @property
    def spent_pico(self) -> int:
        """By this process, with what may be billed."""
        here = super().statistics()
        return here.spent_pico + here.possible_pico

    @property
    def is_settled(self) -> bool:
        """Whether no call, and nobody else, can bring room for what was refused."""
        is_waiting = bool(self._needed or self._asked)
        return super().is_settled and self._refused is not None and not is_waiting

    def has_room(self, worst_pico: int) -> bool:
        """Whether a call of that worst case may be sent; asks for money if not."""
        if worst_pico == 0 or super().has_room(worst_pico):
            return True
        worst = self._worst(worst_pico)
        if self._refused is None or worst < self._never:
            self._needed = worst
            self._wake()
        return False

    def reserve(self, worst_pico: int) -> int:
        """A call of that worst case is sent; what is reserved for it."""
        reserved = super().reserve(worst_pico)
        if reserved and not self._is_lean and self._room < reserved * CALLS_AHEAD // 4:
            self._ahead = reserved
            self._wake()
        return reserved

    def settle(
        self, worst_pico: int, cost_pico: int | None, *, reserved_pico: int
    ) -> None:
        """A call has ended: see `Budget.settle`; others may wait for what it left."""
        super().settle(worst_pico, cost_pico, reserved_pico=reserved_pico)
        if self._is_short:
            self._wake()

    def add(self, pico: int) -> None:
        """Nothing: the budget is the broker's, and raised there."""

    def statistics(self) -> BudgetStatistics:
        """The sums as values; once it is refused, those of all shards together."""
        here = super().statistics()
        if self._refused is None:
            return here
        return BudgetStatistics(
            cap_pico=self._refused.cap_pico,
            spent_pico=self._refused.taken_pico,
            possible_pico=0,
            reserved_pico=here.reserved_pico,
        )

    # -- with the broker ---------------------------------------------------------

    def hear(self, message: Money | NoMoney | Short | Raised) -> None:
        """The broker says something of money."""
        match message:
            case Money():
                self._is_lean = self._is_lean or not message.pico
                self._granted += message.pico
                super().add(message.pico)
                self._needed = self._asked = 0
                self._is_fresh = True
            case NoMoney():
                self._refused, self._never = message, self._asked
                self._needed = self._asked = 0
            case Short():
                self._is_short = message.is_short
                self._is_lean = self._is_lean or message.is_short
            case Raised():
                self._refused = None
                self._is_lean = False
            case _:
                assert_never(message)

    def reconnected(self) -> None:
        """Whoever was asked has forgotten it."""
        self._asked = 0

    @property
    def gives_back_at(self) -> float:
        """When what was lent and not used yet goes to others, who wait for money."""
        return self._held_until if self._is_short and self._room else math.inf

    def says(self, now: float) -> list[Said]:
        """What is to be said to the broker at *now*."""
        if self._is_fresh:
            self._is_fresh = False
            self._held_until = now + HELD_S
        asks = bool(self._needed) and not self._asked
        said: list[Said] = []
        # whoever asks has nothing then: so two never wait for what the other has
        if asks or (self._is_short and now >= self._held_until):
            said += self._back()
        if self._asked:
            return said
        if asks:
            self._asked = self._needed
            want = 0 if self._is_lean else self._needed * CALLS_AHEAD
            said.append(AskMoney(need_pico=self._needed, want_pico=want))
        elif self._ahead and not self._is_lean:
            self._asked = want = self._ahead * CALLS_AHEAD
            said.append(AskMoney(need_pico=0, want_pico=want))
        self._ahead = 0
        return said

    def _back(self) -> list[Said]:
        """Give back what is free, and say what is spent, if there is any news."""
        room, spent = self._room, self.spent_pico
        if not room and spent == self._reported:
            return []
        self._reported = spent
        self._granted -= room
        super().add(-room)
        return [MoneyBack(back_pico=room, spent_pico=spent)]

    @property
    def _room(self) -> int:
        here = super().statistics()
        taken = here.spent_pico + here.possible_pico + here.reserved_pico
        return max(0, (here.cap_pico or 0) - taken)
