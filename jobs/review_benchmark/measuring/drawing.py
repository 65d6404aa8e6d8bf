"""The draws of reviews that all intervals of a scoring share."""

from __future__ import annotations

from dataclasses import dataclass, field

from jobs.metrics import Resamples
from jobs.review_benchmark.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class Draws:
    """One sequence of draws for each set of reviews, made when it is asked for."""

    settings: Settings
    _known: dict[tuple[str, ...], Resamples] = field(default_factory=dict, repr=False)

    def of(self, reviews: tuple[str, ...]) -> Resamples:
        """The draws of some reviews."""
        known = self._known.get(reviews)
        if known is None:
            settings = self.settings
            known = self._known[reviews] = Resamples(
                reviews,
                settings.boot_b,
                settings.boot_seed,
                level=settings.level,
                cluster="review",
                form=settings.interval,
            )
        return known
