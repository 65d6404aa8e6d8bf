"""What an endpoint's refusals show: a rate, calls at a time, or chance; sans-IO.

A refusal alone does not say what was too much. So one explanation after the other is
acted on, the usual one first, and given up if acting on it does not end the refusals:

    429        the rate; or calls at a time, if refusals come when most are in flight
    503, 529   calls at a time
    else       chance: that share is expected from then on, and only more of it counts
"""

from __future__ import annotations

from runner import errors as e
from runner.pace import Pace
from runner.places import Places
from runner.surplus import Surplus

FULL = 3.0
"""`Pace.fullness` from which it is calls at a time that are limited. Where they have
nothing to do with it, 3 in 100 doubts come so far (Fisher's test, 10 degrees of
freedom), and are found out later."""


class Ceiling:
    """The limits that were learned from refusals."""

    def __init__(self) -> None:
        self.pace = Pace()
        self.places = Places()
        self._surplus = {e.RateLimited: Surplus(), e.Overloaded: Surplus()}
        self._blames_places = False  #: for 429s
        self._full = FULL
        self.in_flight = 0

    @property
    def has_place(self) -> bool:
        """Whether a call may be added to those in flight."""
        return self.in_flight < self.places.limit

    def ready_at(self, now: float) -> float:
        """When the next request may leave."""
        when = self.pace.ready_at(now)
        if self.pace.fullness >= self._full:
            self._blames_places = True
            self.pace.drop(now)
            return now
        if self.pace.is_doubtful:
            self._surplus[e.RateLimited].learn(self.pace.doubtful_share)
            self.pace.drop(now)
            return now
        return when

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
        error: e.RateLimited | e.Overloaded,
        now: float,
        sent_at: float,
        among: int,
        resume_at: float,
    ) -> bool:
        """A request of *sent_at* was refused; whether that speaks of a limit."""
        is_believed = self._surplus[type(error)].refused()
        if isinstance(error, e.Overloaded) or self._blames_places:
            self.pace.missed(sent_at)
            if is_believed:
                self.places.refused(now, sent_at, among)
                if self.places.is_doubtful:
                    return self._give_up_places(error, now)
        elif is_believed:
            self.pace.refused(now, sent_at, among, resume_at)
        else:
            self.pace.missed(sent_at)
        return is_believed

    def _give_up_places(self, error, now) -> bool:
        if isinstance(error, e.Overloaded):
            self._surplus[type(error)].learn(self.places.doubtful_share)
        else:
            self._full *= 2
        self.places.drop()
        self._blames_places = False
        return False
