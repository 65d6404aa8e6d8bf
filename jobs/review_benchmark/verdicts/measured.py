"""Matched and mismatched conclusions of one agent, and what they come to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jobs.metrics import auroc
from jobs.review_benchmark.verdicts.threshold import Threshold


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdicts:
    """How an agent's conclusions compare with those of the authors."""

    matched: Mapping[str, float]  #: similarity by review
    mismatched: Mapping[tuple[str, str], float]
    """Similarity of an agent's conclusion of one review and the truth of another."""
    alike: tuple[tuple[str, str, float], ...]
    """Pairs of reviews whose authors' own conclusions reach the threshold."""
    threshold: Threshold | None
    opposite: frozenset[str] = frozenset()  #: reviews of which a judge says so

    def passes(self, review: str) -> bool | None:
        """Whether a conclusion counts as the same; None without a threshold."""
        if self.threshold is None:
            return None
        if review in self.opposite:
            return False
        return self.matched[review] >= self.threshold.value

    @property
    def auroc(self) -> float | None:
        """How well similarity tells matched from mismatched pairs."""
        labels = [1] * len(self.matched) + [0] * len(self.mismatched)
        scores = [*self.matched.values(), *self.mismatched.values()]
        return auroc(labels, scores) if scores else None
