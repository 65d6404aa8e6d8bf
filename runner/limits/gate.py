"""One kind of limit a minute: set by hand, told by the endpoint, or neither; sans-IO.

Where several processes share a limit, whoever lends it to them makes the gates
(`runner.leasing`); a process by itself has gates of its own.
"""

from __future__ import annotations

from typing import Protocol

from runner.limits.bucket import MINUTE_S, MinuteBucket
from runner.limits.told import Quota


class Credit(Protocol):
    """What may still leave of one kind: requests, or tokens."""

    @property
    def per_minute(self) -> float:
        """The limit in force."""
        ...

    def ready_at(self, now: float, amount: float) -> float:
        """When *amount* may be taken; infinity: nobody knows yet."""
        ...

    def take(self, now: float, amount: float) -> None:
        """Spend *amount*."""
        ...

    def give_back(self, amount: float) -> None:
        """Return what a reservation did not need; negative: it needed more."""
        ...


class Gate(Protocol):
    """One kind of limit of one model."""

    @property
    def bucket(self) -> Credit | None:
        """What may leave; None: there is no such limit."""
        ...

    def set(self, now: float, by_hand: float | None) -> None:
        """Go by another limit of a person's, or by none; what is told holds on."""
        ...

    def hear(self, now: float, quota: Quota | None) -> None:
        """Take the lower of what is told and what a person set."""
        ...


class Pausable(Protocol):
    """An endpoint, as far as whoever lends its limits knows it."""

    @property
    def name(self) -> str:
        """Its address."""
        ...

    def pause(self, until: float) -> None:
        """Send nothing before *until*; never shortens a pause."""
        ...


class Lender(Protocol):
    """Whoever lends the processes of one run their parts of its limits."""

    def gates(
        self, endpoint: Pausable, model: str, *, rpm: float | None, tpm: float | None
    ) -> tuple[Gate, Gate]:
        """A model's gates for requests and for tokens."""
        ...

    def paused(self, endpoint: str, now: float, until: float) -> None:
        """An endpoint asked to be left alone, which concerns the others too."""
        ...


class MinuteGate:
    """The gate of a process that has a limit to itself."""

    def __init__(
        self,
        by_hand: float | None,
        burst_s: float,
        *,
        window_s: float = MINUTE_S,
        first: float | None = None,
    ) -> None:
        """A full bucket if *by_hand* is a limit.

        Args:
            by_hand: what a person set, a minute.
            burst_s: as for `MinuteBucket`.
            window_s: as for `MinuteBucket`.
            first: the most that buckets hold which are made later; None: they are full.
        """
        self._by_hand = by_hand
        self._told: float | None = None
        self._burst_s = burst_s
        self._window_s = window_s
        self._first = first
        self.bucket = self._filled(by_hand) if by_hand is not None else None

    def _filled(self, limit: float) -> MinuteBucket:
        return MinuteBucket(limit, self._burst_s, window_s=self._window_s)

    def set(self, now: float, by_hand: float | None) -> None:
        """Go by another limit of a person's, or by none; what is told holds on."""
        self._by_hand = by_hand
        self._apply(now, self._first)

    def hear(self, now: float, quota: Quota | None) -> None:
        """Take the lower of what is told and what a person set."""
        if quota is None or quota.per_minute == self._told:
            return
        self._told = quota.per_minute
        # an earlier process may have used the minute up
        known = [x for x in (quota.remaining, self._first) if x is not None]
        self._apply(now, min(known, default=None))

    def _apply(self, now: float, credit: float | None) -> None:
        limits = [x for x in (self._by_hand, self._told) if x is not None]
        limit = min(limits, default=None)
        if limit is None:
            self.bucket = None
        elif self.bucket is None or self.bucket.per_minute != limit:
            self.bucket = self._filled(limit)
            if credit is not None:
                self.bucket.at_most(now, credit)
