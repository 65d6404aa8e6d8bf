"""A shard's part of what may be sent to one model; sans-IO.

Stands where a process by itself has buckets that refill with time. Here credit comes
in leases, and what is not used within a lease's life goes back. What is asked for is
twice what was used since the last lease, or as much if some of it went back; and where
leases are used fast, the next is asked for when one is half used.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Final, Literal

from runner.leasing.messages import Ask, Back, Lease, Said, Told
from runner.limits.told import Quota

MOST_CALLS: Final = 4096
"""That are asked for at a time; a broker lends far fewer at a time."""
FEWEST_AHEAD: Final = 4
"""Calls of a lease below which the next is not asked for before it is needed."""


class LeasedCredit:
    """What may leave of one kind; the `runner.limits.gate.Credit` of a shard."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """No credit; *wake* is called where more is needed."""
        self._wake = wake
        self._lent: deque[tuple[float, float]] = deque()  #: until when, how much
        self.per_minute = math.inf  #: of all shards together
        self.needed = 0.0  #: by the next call, where there is less
        self.taken = 0.0  #: since something was lent
        self.calls = 0  #: since then
        self.has_expired = False  #: some of it, since then
        self.is_back_due = False  #: others may wait for what has expired
        self.unused = 0.0  #: to go back; negative: more was used than was lent

    @property
    def level(self) -> float:
        """What may be taken, if in time."""
        return sum(amount for _, amount in self._lent)

    @property
    def expires_at(self) -> float:
        """When some of it goes back."""
        return self._lent[0][0] if self._lent else math.inf

    def lend(self, amount: float, until: float) -> None:
        """So much more may leave until then."""
        self._lent.append((until, amount))
        self.needed = self.taken = 0.0
        self.calls, self.has_expired = 0, False

    def expire(self, now: float) -> None:
        """Give back what was not used in time."""
        while self.expires_at <= now:
            self.unused += self._lent.popleft()[1]
            self.has_expired = self.is_back_due = True

    def ready_at(self, now: float, amount: float) -> float:
        """*now*, or infinity: it has to be lent first."""
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
        """Return what a reservation did not need; negative: it needed more."""
        self.unused += amount


class LeasedGate:
    """One kind of limit, kept by the broker; a `runner.limits.gate.Gate`."""

    def __init__(
        self,
        credit: LeasedCredit,
        by_hand: float | None,
        tell: Callable[[Quota], None],
    ) -> None:
        """A gate; *tell* has a limit told to the broker, who has the ones by hand."""
        self._credit = credit
        self._by_hand = by_hand
        self._told: float | None = None
        self._tell = tell
        self.bucket: LeasedCredit | None = None
        self._apply()

    def set(self, now: float, by_hand: float | None) -> None:
        """Go by another limit of a person's, or by none; what is told holds on."""
        del now
        self._by_hand = by_hand
        self._apply()

    def hear(self, now: float, quota: Quota | None) -> None:
        """Take the lower of what is told and what a person set."""
        del now
        if quota is None or quota.per_minute == self._told:
            return
        self._told = quota.per_minute
        self._apply()
        self._tell(quota)

    def _apply(self) -> None:
        limits = [x for x in (self._by_hand, self._told) if x is not None]
        self.bucket = self._credit if limits else None
        self._credit.per_minute = min(limits, default=math.inf)


class Share:
    """What a shard may send to one model."""

    def __init__(
        self,
        endpoint: str,
        model: str,
        wake: Callable[[], None],
        *,
        rpm: float | None,
        tpm: float | None,
    ) -> None:
        """Nothing yet.

        Args:
            endpoint: where the model is asked.
            model: its name.
            wake: called where something is to be said.
            rpm: what a person set for all shards together, requests a minute.
            tpm: tokens a minute.
        """
        self._endpoint = endpoint
        self._model = model
        self._wake = wake
        self._told: list[Said] = []
        self._is_waiting = False
        self._usual_tokens = 0.0  #: of a call
        self._requests, self._tokens = LeasedCredit(wake), LeasedCredit(wake)
        self.gates = (
            LeasedGate(
                self._requests, rpm, lambda quota: self._tell("requests", quota)
            ),
            LeasedGate(self._tokens, tpm, lambda quota: self._tell("tokens", quota)),
        )

    @property
    def expires_at(self) -> float:
        """When something goes back."""
        return min(self._requests.expires_at, self._tokens.expires_at)

    def lend(self, lease: Lease, until: float) -> None:
        """Use a lease, until then by this process's clock."""
        self._is_waiting = False
        self._requests.lend(lease.requests, until)
        self._tokens.lend(lease.tokens, until)

    def reconnected(self) -> None:
        """Whoever was asked has forgotten it."""
        self._is_waiting = False

    def says(self, now: float, *, is_due: bool) -> list[Said]:
        """What is to be said to the broker at *now*.

        Args:
            now: seconds of this process's clock.
            is_due: something is said to it anyway. What is only to go back waits for
                that, unless it can be lent to others.
        """
        is_wanted = not self._is_waiting and self._is_wanted
        asked = [self._ask()] if is_wanted else []
        self._is_waiting |= is_wanted
        for credit in (self._requests, self._tokens):
            credit.expire(now)
            is_due = is_due or credit.is_back_due
        back = self._back() if is_due or asked else []
        told, self._told = self._told, []
        return [*told, *back, *asked]

    def _tell(self, kind: Literal["requests", "tokens"], quota: Quota) -> None:
        self._told.append(
            Told(
                endpoint=self._endpoint,
                model=self._model,
                kind=kind,
                per_minute=quota.per_minute,
                remaining=quota.remaining,
            )
        )
        self._wake()

    def _back(self) -> list[Said]:
        requests, tokens = int(self._requests.unused), round(self._tokens.unused)
        if not (requests or tokens):
            return []
        for credit in (self._requests, self._tokens):
            credit.unused, credit.is_back_due = 0.0, False
        return [
            Back(
                endpoint=self._endpoint,
                model=self._model,
                requests=requests,
                tokens=tokens,
            )
        ]

    @property
    def _counted(self) -> list[LeasedCredit]:
        """Of the kinds that are limited."""
        return [gate.bucket for gate in self.gates if gate.bucket is not None]

    @property
    def _is_wanted(self) -> bool:
        return any(
            credit.needed
            or (credit.calls >= FEWEST_AHEAD / 2 and credit.level <= credit.taken)
            for credit in self._counted
        )

    def _ask(self) -> Ask:
        calls = max((credit.calls for credit in self._counted), default=0)
        if not any(credit.has_expired for credit in self._counted):
            calls *= 2
        calls = min(max(1, calls), MOST_CALLS)
        requests, tokens = (gate.bucket for gate in self.gates)
        if self._tokens.calls:
            self._usual_tokens = self._tokens.taken / self._tokens.calls
        needed = 0 if tokens is None else math.ceil(tokens.needed)
        usual = max(self._usual_tokens, float(needed))
        return Ask(
            endpoint=self._endpoint,
            model=self._model,
            requests=calls if requests is not None else 0,
            tokens=math.ceil(calls * usual) if tokens is not None else 0,
            tokens_least=needed,
        )
