"""What an endpoint's refusals show: a rate, calls at a time, or chance; sans-IO.

A refusal does not say what was too much. So one explanation after the other is acted
on, the usual one first, and given up if acting on it does not end the refusals:

    429        the rate; then calls at a time, if refusals come when most are in flight
    503, 529   calls at a time; likewise where this process has too many files open
    else       chance: that share is expected from then on, and only more of it counts
"""

from __future__ import annotations

from typing import TypeAlias

from runner import errors as e
from runner.limits.pace import Pace
from runner.limits.places import Places
from runner.limits.surplus import Surplus

FULL = 2.5
"""`Crowd.score` from which 429s are blamed on calls at a time: two windows at the
least, in both of which nothing passed at as many calls in flight as were refused."""


Refusal: TypeAlias = e.RateLimited | e.Overloaded | e.OutOfFiles


class Ceiling:
    """The limits that were learned from refusals."""

    def __init__(self) -> None:
        self.pace = Pace()
        self.places = Places()
        self.in_flight = 0
        self._surplus = {
            kind: Surplus() for kind in (e.RateLimited, e.Overloaded, e.OutOfFiles)
        }
        self._blames_places = False  #: for 429s
        self._full = FULL

    @property
    def has_place(self) -> bool:
        """Whether a call may be added to those in flight."""
        return self.in_flight < self.places.limit

    def ready_at(self, now: float) -> float:
        """When the next request may leave."""
        when = self.pace.ready_at(now)
        if self.pace.crowd.score >= self._full:
            self._blames_places = True
        elif self.pace.is_doubtful:
            self._surplus[e.RateLimited].learn(self.pace.share)
        else:
            return when
        self.pace.drop(now)
        return now

    def sent(self, now: float) -> int:
        """A request leaves; how many others are in flight."""
        among = self.in_flight
        self.in_flight += 1
        self.pace.sent(now, among)
        self.places.sent(now, among)
        return among

    def ended(self) -> None:
        """A request is over, however it ended."""
        self.in_flight -= 1

    def passed(self) -> None:
        """A request was let through."""
        for surplus in self._surplus.values():
            surplus.passed()

    def refused(
        self,
        error: Refusal,
        now: float,
        sent_at: float,
        among: int,
        resume_at: float,
    ) -> bool:
        """A request was refused; whether that speaks of a limit.

        Args:
            error: how it was refused.
            now: when that became known.
            sent_at: when the request left,
            among: and how many others were in flight.
            resume_at: until when the endpoint asked to be left alone.
        """
        is_limit = self._surplus[type(error)].refused()
        self.pace.missed(sent_at)
        if not is_limit:
            return False
        if isinstance(error, e.RateLimited) and not self._blames_places:
            self.pace.refused(now, sent_at, among, resume_at)
            return True
        self.places.refused(now, sent_at, among)
        if self.places.is_doubtful:
            self._give_up_places(error)
            return False
        return True

    def _give_up_places(self, error: Refusal) -> None:
        if self._blames_places:
            self._full *= 2  # more is asked for before they are blamed again
            self._blames_places = False
        else:
            self._surplus[type(error)].learn(self.places.share)
        self.places.drop()
