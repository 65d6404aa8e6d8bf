"""When a run has answered enough, as its first event says."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopping:
    """The question that a run of two models stops at once it is decided.

    B, the second model, is compared with A, the first.
    """

    metric: str  #: path
    margin: float = 0.0  #: a difference that does not matter is no larger
    alpha: float = 0.05  #: chance of a wrong decision, at most

    @classmethod
    def of(cls, typed: str, alpha: float) -> Stopping:
        """What was typed as `METRIC` or `METRIC>=MARGIN`.

        Raises:
            ValueError: the margin is no share from 0 to below 1.
        """
        metric, _, margin = typed.partition(">=")
        try:
            share = float(margin or 0)
        except ValueError:
            share = -1.0
        if not 0 <= share < 1:
            raise ValueError(f"the margin in {typed!r} is no number from 0 to below 1")
        return cls(metric=metric.strip(), margin=share, alpha=alpha)

    def __str__(self) -> str:
        """As it is typed."""
        return f"{self.metric}>={self.margin:g}" if self.margin else self.metric
