"""When a run of two models has answered enough, and what it has shown by then."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar


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


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonDecided:
    """Enough was answered to tell two models apart in the metric the run stops at.

    What it says follows from the answers alone: whoever looks again, however late,
    finds it decided after the same documents.
    """

    VERSION: ClassVar[int] = 1

    stopping: Stopping
    a: str  #: model
    b: str
    verdict: str  #: of B: "better", "worse", or "close", apart by less than the margin
    clusters: int  #: documents that it took, from the first one planned on
    cluster: str  #: what such a document is called, such as "paper"
    difference: float  #: B minus A, mean over these documents
    lo: float  #: what the mean difference lies between, whenever one looks
    hi: float
    seq: int  #: the log's last event that was read
