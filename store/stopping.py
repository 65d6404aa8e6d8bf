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

    def __str__(self) -> str:
        """As it is typed."""
        return f"{self.metric}>={self.margin:g}" if self.margin else self.metric
