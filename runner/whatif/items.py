"""What a what-if is played with: recorded items, and a rate that refuses; sans-IO."""

from __future__ import annotations

from dataclasses import dataclass

from runner import errors as e
from runner.bucket import Bucket
from runner.told import NOTHING, Told


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A recorded attempt: what the simulation needs of it."""

    took_s: float  #: from the taking of its slot to its outcome
    error: e.AttemptError | None = None  #: None: it was answered
    tokens_in: int = 0
    tokens_out: int = 0
    tokens_cached: int = 0
    cost_pico: int | None = 0  #: None: its price is unknown
    told: Told = NOTHING  #: limits in the reply's headers

    @property
    def tokens(self) -> int:
        """What it used of a limit on tokens."""
        return self.tokens_in + self.tokens_out


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A recorded task with its attempts in order."""

    stage: str
    model: str
    attempts: tuple[Attempt, ...]
    worst_tokens: int = 0  #: reserved for an attempt where tokens are limited


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A first-stage task and what followed from it."""

    first: Trial
    later: tuple[Trial, ...] = ()  #: by stage, in the stages' order


class Ceiling:
    """A request rate that an endpoint was found to allow: it refuses what is above.

    Where there is none, refusals are among the recorded attempts.
    """

    def __init__(self, per_second: float, *, refused_s: float, tells: bool) -> None:
        """Allow so much, with a second's worth at once, as most servers do.

        Args:
            per_second: requests that are let through.
            refused_s: what a refusal takes.
            tells: whether a refusal says how long to wait.
        """
        self.per_second = per_second
        self._bucket = Bucket(per_second, max(1.0, per_second))
        self._refused_s = refused_s
        self._tells = tells

    def refuses(self, now: float) -> Attempt | None:
        """The refusal of a request that arrives *now*; None: it is let through."""
        free_at = self._bucket.ready_at(now, 1.0)
        if free_at <= now:
            self._bucket.take(now, 1.0)
            return None
        wait_s = free_at - now if self._tells else None
        error = e.RateLimited("over the rate", retry_after_s=wait_s)
        return Attempt(took_s=self._refused_s, error=error)
