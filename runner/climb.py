"""When a learned limit is tried upwards; sans-IO.

A limit that was refused is left alone for a while. If nothing is refused then, it may
have risen, or was taken too low, and it is tried with 5 % more, 10 %, 20 %, ... as long
as it is what holds requests back.
"""

from __future__ import annotations

import math

QUIET_S, QUIET_REQUESTS = 30.0, 300
"""So much without a refusal comes before the first step: a look costs one or two."""
STEP_S, STEP_REQUESTS = 5.0, 10
"""Steps are so far apart: a bucket that is full hides the first seconds of a rise."""
FIRST_STEP = 0.05
SEVERAL = 3
"""Refusals in vain from which they may be a matter of chance."""


class Climb:
    """The steps upwards of one limit."""

    def __init__(self) -> None:
        #: refusals in a row that came although the limit had not been raised
        self.in_vain = 0
        self._sent = 0  #: since the first of those
        self._refused = 0
        self._steps = 0  #: upwards, not measured and not undone
        self.rest(float("-inf"))

    def rest(
        self, now: float, seconds: float = math.inf, requests: float = math.inf
    ) -> None:
        """No step before *seconds* and *requests*, at most those of a full rest.

        After several refusals in vain, nor before three times as many requests as came
        between them: if they come by chance, such a pause is one of twenty.
        """
        usual = self._sent // self.in_vain if self.in_vain >= SEVERAL else 0
        self._due_at = now + min(seconds, QUIET_S)
        self._due_in = max(min(requests, QUIET_REQUESTS), 3 * usual)
        self._step = FIRST_STEP
        self._had_slack = False

    @property
    def share(self) -> float:
        """Share of the requests that were refused, of those refused in vain."""
        return self._refused / max(1, self._sent)

    def refused(self) -> None:
        """The limit was refused; the last step upwards, if any, is undone.

        Without a step, it was taken too high, or it is no limit of this kind.
        """
        if self._steps:
            self._steps -= 1
            self.in_vain = self._sent = self._refused = 0
        else:
            self.in_vain += 1

    def measured(self) -> None:
        """The limit was learned anew, whatever steps there were."""
        self._steps = 0

    def missed(self) -> None:
        """A request was refused, whatever for."""
        self._refused += 1

    def slack(self) -> None:
        """Something else held requests back: the limit is not what matters."""
        self._had_slack = True

    def sent(self, now: float) -> float:
        """A request leaves; by how much the limit is to be raised now: 0.05 is 5 %."""
        self._sent += 1
        self._due_in -= 1
        if self._due_in > 0 or now < self._due_at:
            return 0.0
        self._due_at, self._due_in = now + STEP_S, STEP_REQUESTS
        if self._had_slack:
            self._had_slack = False
            return 0.0
        step = self._step
        self._step = min(1.0, 2 * step)
        self._steps += 1
        return step
