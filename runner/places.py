"""How many calls at a time an endpoint takes, learned from its refusals; sans-IO.

At a refusal the endpoint is full: what is in flight then *is* the limit. A limit that
is refused again before it was raised was taken too high (replies are on their way for a
moment after the endpoint has finished them) and is cut a little deeper each time. If
even that does not help, the refusals have nothing to do with calls in flight, and the
limit is *doubtful*.
"""

from __future__ import annotations

from runner.climb import Climb

LESS = 1 / 64
"""Cut for the first time in vain; doubled for each further time."""
ALIKE = 0.9
"""A call that was refused beside fewer than this share of the limit has little to do
with it; it counts as refused in vain."""
OFTEN = 5
"""Refused so often in a row, a limit is doubtful; it is 0.78 of the first then."""


class Places:
    """The learned limit on calls at a time; free until something is refused."""

    def __init__(self) -> None:
        self.drop()

    def drop(self) -> None:
        """Forget the limit: calls are free again."""
        self._limit = float("inf")
        self._climb = Climb()
        self._cut_at = float("-inf")

    @property
    def limit(self) -> float:
        """Calls that may be in flight; infinite: nothing was learned."""
        return int(self._limit) if self.is_learned else self._limit

    @property
    def is_learned(self) -> bool:
        """Whether anything was refused that speaks of calls at a time."""
        return self._limit < float("inf")

    @property
    def is_doubtful(self) -> bool:
        """Whether lowering the limit does not lessen the refusals."""
        return self._climb.in_vain >= OFTEN

    @property
    def share(self) -> float:
        """Share of the requests that were refused since the limit was in doubt."""
        return self._climb.share

    def sent(self, now: float, among: int) -> None:
        """A call leaves, while *among* others are in flight."""
        if not self.is_learned:
            return
        if among + 1 < self.limit:
            self._climb.slack()
        if step := self._climb.sent(now):
            self._limit = max(self._limit * (1 + step), self._limit + 1.0)

    def refused(self, now: float, sent_at: float, among: int) -> None:
        """A refusal to a call that was sent while *among* others were in flight."""
        self._climb.missed()
        if sent_at <= self._cut_at:
            return  # sent before the limit that is in force
        if self.is_learned:
            self._climb.refused()
            self._climb.measured()
        in_vain = self._climb.in_vain
        cut = LESS * 2 ** (in_vain - 1) if in_vain else 0.0
        if among >= ALIKE * self._limit or not self.is_learned:
            self._limit = min(self._limit, among)
        self._limit = max(1.0, self._limit * (1 - cut))
        self._cut_at = now
        self._climb.rest(now)
