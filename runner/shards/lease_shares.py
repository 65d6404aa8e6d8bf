"""Spends a shard's share of the limits and of the budget; sans-IO.

Replaces the time-based buckets of a single process. Credit comes in leases, and the
unused part is returned at the end of a lease's life. A request asks for twice the
amount used since the last lease, or the same amount if some was returned; if leases are
used fast, the next is requested when one is half used.

Its `Budget` has the money lent so far as its cap. If a call does not fit, it asks for
more, and the shard ends only when the broker refuses finally, because other shards may
return money.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Final, Literal, assert_never

from runner.limits.rate_limits import Quota
from runner.money.budget import Budget, BudgetStatistics
from runner.shards.lease_protocol import (
    BudgetRaised,
    CreditLease,
    HeaderLimitSeen,
    LeaseMessage,
    MoneyExhausted,
    MoneyLease,
    MoneyShort,
    RequestCredit,
    RequestMoney,
    ReturnCredit,
    ReturnMoney,
)

MOST_CALLS: Final = 4096
"""Maximum calls requested at a time; a broker lends far fewer."""
FEWEST_AHEAD: Final = 4
"""Calls of a lease below which the next one is not requested in advance."""


class LeasedCredit:
    """Leased credit of one kind; the `runner.limits.rate_limits.Credit` of a shard."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """Start without credit; *wake* is called when more is needed."""
        self._wake = wake
        self._lent: deque[tuple[float, float]] = deque()  #: (expiry, amount)
        self.per_minute = math.inf  #: limit of all shards together
        self.needed = 0.0  #: amount missing for the next call
        self.taken = 0.0  #: amount taken since the last lease
        self.calls = 0  #: calls since then
        self.has_expired = False  #: whether credit has expired since then
        self.is_back_due = False  #: other shards may wait for expired credit
        self.unused = 0.0  #: to return; negative: more was used than lent

    @property
    def level(self) -> float:
        """Unused credit."""
        return sum(amount for _, amount in self._lent)

    @property
    def expires_at(self) -> float:
        """When the oldest credit expires."""
        return self._lent[0][0] if self._lent else math.inf

    def lend(self, amount: float, until: float) -> None:
        """Add credit that expires at *until*."""
        self._lent.append((until, amount))
        self.needed = self.taken = 0.0
        self.calls, self.has_expired = 0, False

    def expire(self, now: float) -> None:
        """Move expired credit to the amount to return."""
        while self.expires_at <= now:
            self.unused += self._lent.popleft()[1]
            self.has_expired = self.is_back_due = True

    def ready_at(self, now: float, amount: float) -> float:
        """Return *now*, or infinity until enough is lent."""
        self.expire(now)
        if self.level >= amount:
            return now
        self.needed = amount
        self._wake()
        return math.inf

    def take(self, now: float, amount: float) -> None:
        """Spend *amount*, the oldest credit first."""
        self.expire(now)
        self.calls += 1
        self.taken += amount
        while self._lent and amount > 0:
            until, lent = self._lent.popleft()
            if lent > amount:
                self._lent.appendleft((until, lent - amount))
            amount -= lent
        self._wake()

    def give_back(self, amount: float) -> None:
        """Return an unused part of a reservation; negative: it needed more."""
        self.unused += amount


class LeasedGate:
    """A limit enforced by the broker; a `runner.limits.rate_limits.Gate`."""

    def __init__(
        self,
        credit: LeasedCredit,
        by_hand: float | None,
        notify: Callable[[Quota], None],
    ) -> None:
        """Create a gate; *notify* reports header limits to the broker."""
        self._credit = credit
        self._by_hand = by_hand
        self._header_limit: float | None = None
        self._notify = notify
        self.bucket: LeasedCredit | None = None
        self._apply()

    def set(self, now: float, by_hand: float | None) -> None:
        """Set or remove the user's limit; the limit in headers remains."""
        del now
        self._by_hand = by_hand
        self._apply()

    def apply_quota(self, now: float, quota: Quota | None) -> None:
        """Apply the lower of the limit in headers and the user's."""
        del now
        if quota is None or quota.per_minute == self._header_limit:
            return
        self._header_limit = quota.per_minute
        self._apply()
        self._notify(quota)

    def _apply(self) -> None:
        limits = [x for x in (self._by_hand, self._header_limit) if x is not None]
        self.bucket = self._credit if limits else None
        self._credit.per_minute = min(limits, default=math.inf)


class CreditShare:
    """A shard's share of the limits of one model."""

    def __init__(
        self,
        endpoint: str,
        model: str,
        wake: Callable[[], None],
        *,
        rpm: float | None,
        tpm: float | None,
    ) -> None:
        """Start without credit.

        Args:
            endpoint: the model's endpoint.
            model: its name.
            wake: called when there is a message to send.
            rpm: the user's limit for all shards together, requests per minute.
            tpm: tokens per minute.
        """
        self._endpoint = endpoint
        self._model = model
        self._wake = wake
        self._limit_messages: list[LeaseMessage] = []
        self._is_waiting = False
        self._usual_tokens = 0.0  #: of a call
        self._requests, self._tokens = LeasedCredit(wake), LeasedCredit(wake)
        self.gates = (
            LeasedGate(
                self._requests, rpm, lambda quota: self._report_limit("requests", quota)
            ),
            LeasedGate(
                self._tokens, tpm, lambda quota: self._report_limit("tokens", quota)
            ),
        )

    @property
    def expires_at(self) -> float:
        """When the oldest credit expires."""
        return min(self._requests.expires_at, self._tokens.expires_at)

    def lend(self, lease: CreditLease, until: float) -> None:
        """Add a lease that expires at *until* by this process's clock."""
        self._is_waiting = False
        self._requests.lend(lease.requests, until)
        self._tokens.lend(lease.tokens, until)

    def reconnected(self) -> None:
        """Forget pending requests, which the broker has lost."""
        self._is_waiting = False

    def says(self, now: float, *, is_due: bool) -> list[LeaseMessage]:
        """Return the messages for the broker at *now*.

        Args:
            now: seconds of this process's clock.
            is_due: other messages are sent anyway. Returns wait for that, unless other
                shards may need them.
        """
        is_requesting = not self._is_waiting and self._has_demand
        requests = [self._ask()] if is_requesting else []
        self._is_waiting |= is_requesting
        for credit in (self._requests, self._tokens):
            credit.expire(now)
            is_due = is_due or credit.is_back_due
        back = self._give_back() if is_due or requests else []
        limit_messages, self._limit_messages = self._limit_messages, []
        return [*limit_messages, *back, *requests]

    def _report_limit(self, kind: Literal["requests", "tokens"], quota: Quota) -> None:
        self._limit_messages.append(
            HeaderLimitSeen(
                endpoint=self._endpoint,
                model=self._model,
                kind=kind,
                per_minute=quota.per_minute,
                remaining=quota.remaining,
            )
        )
        self._wake()

    def _give_back(self) -> list[LeaseMessage]:
        requests, tokens = int(self._requests.unused), round(self._tokens.unused)
        if not (requests or tokens):
            return []
        for credit in (self._requests, self._tokens):
            credit.unused, credit.is_back_due = 0.0, False
        return [
            ReturnCredit(
                endpoint=self._endpoint,
                model=self._model,
                requests=requests,
                tokens=tokens,
            )
        ]

    @property
    def _counted(self) -> list[LeasedCredit]:
        """Return the credit of the limited kinds."""
        return [gate.bucket for gate in self.gates if gate.bucket is not None]

    @property
    def _has_demand(self) -> bool:
        return any(
            credit.needed
            or (credit.calls >= FEWEST_AHEAD / 2 and credit.level <= credit.taken)
            for credit in self._counted
        )

    def _ask(self) -> RequestCredit:
        calls = max((credit.calls for credit in self._counted), default=0)
        if not any(credit.has_expired for credit in self._counted):
            calls *= 2
        calls = min(max(1, calls), MOST_CALLS)
        requests, tokens = (gate.bucket for gate in self.gates)
        if self._tokens.calls:
            self._usual_tokens = self._tokens.taken / self._tokens.calls
        needed = 0 if tokens is None else math.ceil(tokens.needed)
        usual = max(self._usual_tokens, float(needed))
        return RequestCredit(
            endpoint=self._endpoint,
            model=self._model,
            requests=calls if requests is not None else 0,
            tokens=math.ceil(calls * usual) if tokens is not None else 0,
            tokens_least=needed,
        )


CALLS_AHEAD: Final = 16
"""Calls whose worst case is requested at a time. A call usually costs a small part of
that, so the rest serves later calls, and requests are rare."""

HOLD_S: Final = 1.0
"""Minimum time for which lent money is kept although others wait: the call may wait for
its rate, and money would otherwise move back and forth with every message."""


class MoneyShare(Budget):
    """The money of one shard."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """Start without money; *wake* is called when there is a message to send."""
        super().__init__(0)
        self._wake = wake
        self._granted_pico = 0
        self._needed_pico = 0  #: by a call that did not fit
        self._requested_pico = 0  #: by the pending request
        self._ahead_pico = 0  #: worst case of the last call, to lend ahead
        self._is_short = False
        self._is_lean = False  #: money is no longer lent in advance
        self._reported = 0  #: spending last reported to the broker
        self._is_fresh = False  #: lent since the last message
        self._hold_until = 0.0
        self._refused: MoneyExhausted | None = None
        self._refused_pico = 0  #: the refused amount

    @property
    def granted_pico(self) -> int:
        """Money lent in total, minus returns."""
        return self._granted_pico

    @property
    def spent_pico(self) -> int:
        """Spending of this process, including what may be billed."""
        here = super().statistics()
        return here.spent_pico + here.possible_pico

    @property
    def is_settled(self) -> bool:
        """Whether no call and no shard can make room for the refused amount."""
        is_waiting = bool(self._needed_pico or self._requested_pico)
        return super().is_settled and self._refused is not None and not is_waiting

    def has_room(self, worst_pico: int) -> bool:
        """Return whether a call of that worst case fits; request money if not."""
        if worst_pico == 0 or super().has_room(worst_pico):
            return True
        worst = self._worst(worst_pico)
        if self._refused is None or worst < self._refused_pico:
            self._needed_pico = worst
            self._wake()
        return False

    def reserve(self, worst_pico: int) -> int:
        """Reserve the worst case of a call; return the reserved amount."""
        reserved = super().reserve(worst_pico)
        if reserved and not self._is_lean and self._room < reserved * CALLS_AHEAD // 4:
            self._ahead_pico = reserved
            self._wake()
        return reserved

    def settle(
        self, worst_pico: int, cost_pico: int | None, *, reserved_pico: int
    ) -> None:
        """Settle a call as `Budget.settle` does; others may wait for the rest."""
        super().settle(worst_pico, cost_pico, reserved_pico=reserved_pico)
        if self._is_short:
            self._wake()

    def add(self, pico: int) -> None:
        """Do nothing: the budget is raised at the broker."""

    def statistics(self) -> BudgetStatistics:
        """Return the sums; after a refusal, those of all shards together."""
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

    def receive(
        self, message: MoneyLease | MoneyExhausted | MoneyShort | BudgetRaised
    ) -> None:
        """Handle the broker's messages about money."""
        match message:
            case MoneyLease():
                self._is_lean = self._is_lean or not message.pico
                self._granted_pico += message.pico
                super().add(message.pico)
                self._needed_pico = self._requested_pico = 0
                self._is_fresh = True
            case MoneyExhausted():
                self._refused, self._refused_pico = message, self._requested_pico
                self._needed_pico = self._requested_pico = 0
            case MoneyShort():
                self._is_short = message.is_short
                self._is_lean = self._is_lean or message.is_short
            case BudgetRaised():
                self._refused = None
                self._is_lean = False
            case _:
                assert_never(message)

    def reconnected(self) -> None:
        """Forget pending requests, which the broker has lost."""
        self._requested_pico = 0

    @property
    def gives_back_at(self) -> float:
        """Time when unused money is returned because others wait for it."""
        return self._hold_until if self._is_short and self._room else math.inf

    def says(self, now: float) -> list[LeaseMessage]:
        """Return the messages for the broker at *now*."""
        if self._is_fresh:
            self._is_fresh = False
            self._hold_until = now + HOLD_S
        is_requesting = bool(self._needed_pico) and not self._requested_pico
        messages: list[LeaseMessage] = []
        # a shard that requests money has none left, so two never wait for each other
        if is_requesting or (self._is_short and now >= self._hold_until):
            messages += self._give_back()
        if self._requested_pico:
            return messages
        if is_requesting:
            self._requested_pico = self._needed_pico
            want = 0 if self._is_lean else self._needed_pico * CALLS_AHEAD
            messages.append(RequestMoney(need_pico=self._needed_pico, want_pico=want))
        elif self._ahead_pico and not self._is_lean:
            self._requested_pico = want = self._ahead_pico * CALLS_AHEAD
            messages.append(RequestMoney(need_pico=0, want_pico=want))
        self._ahead_pico = 0
        return messages

    def _give_back(self) -> list[LeaseMessage]:
        """Return free money and report spending, if anything changed."""
        room, spent = self._room, self.spent_pico
        if not room and spent == self._reported:
            return []
        self._reported = spent
        self._granted_pico -= room
        super().add(-room)
        return [ReturnMoney(back_pico=room, spent_pico=spent)]

    @property
    def _room(self) -> int:
        here = super().statistics()
        taken = here.spent_pico + here.possible_pico + here.reserved_pico
        return max(0, (here.cap_pico or 0) - taken)
