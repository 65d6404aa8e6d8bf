"""Whether more is refused than comes by chance; sans-IO.

Some endpoints refuse one request in fifty whatever is sent. Once such a share is known,
a single refusal says nothing any more; what counts is a share that has grown. Page's
cumulative sum (Biometrika 41, 1954) finds that in the fewest requests: every refusal
adds to it, every request let through takes away, each as much as it is likelier under
a grown share than under the usual one.
"""

from __future__ import annotations

import math

GROWN = 0.1
"""A share this much above the usual one is what is looked for; it notices half of it,
and a bucket that is empty refuses more."""
MOST = 0.25
"""A share above is no chance, whatever else it is."""
SURE = math.log(1e6)
"""A false alarm in a million requests or fewer (Lorden's bound)."""
MEMORY = 5000
"""Requests over which the usual share is averaged; it may change."""
NONE = 0.0001
"""A usual share below is none: then every refusal counts again."""


class Surplus:
    """Tells refusals that mean something from those that come by chance."""

    def __init__(self) -> None:
        self.usual = 0.0  #: share of requests that is refused by chance
        self._learned = 0.0  #: the usual share sinks below, and never rises above
        self._score = 0.0

    def learn(self, share: float) -> None:
        """Take *share* of the requests to be refused whatever is done.

        If so many are refused that it can be no chance, nothing is learned: an
        endpoint that refuses nearly everything is not to be pressed.
        """
        self.usual = self._learned = share if share <= MOST else 0.0
        self._score = 0.0

    def passed(self) -> None:
        """A request was let through."""
        if self.usual:
            self._count(0.0)

    def refused(self) -> bool:
        """A request was refused; whether that is more than chance."""
        if not self.usual:
            return True
        self._count(1.0)
        return self._score >= SURE

    def _count(self, refused: float) -> None:
        usual, grown = self.usual, self.usual + GROWN
        gain = grown / usual if refused else (1 - grown) / (1 - usual)
        self._score = min(SURE, max(0.0, self._score + math.log(gain)))
        self.usual = min(self._learned, usual + (refused - usual) / MEMORY)
        if self.usual < NONE:
            self.learn(0.0)
