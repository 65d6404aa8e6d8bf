"""A run's inputs: the settings, the reviews, and the papers that may be found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from jobs.review_benchmark.database.reading import Database
from jobs.review_benchmark.review import Review
from jobs.review_benchmark.settings import Settings, VerdictKind
from runner.scorecard import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """What a person says of an agent's conclusion about a review."""

    review: str
    model: str
    similar: bool  #: to what its authors concluded


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """All inputs of a run; an imported one has no database."""

    settings: Settings
    reviews: tuple[Review, ...]  #: ascending by id as text
    database: Database | None = None
    labels: tuple[Label, ...] = ()  #: of the reviews that there are
    findings: tuple[Finding, ...] = ()
    _by_id: Mapping[str, Review] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        by_id = {review.id: review for review in self.reviews}
        object.__setattr__(self, "_by_id", by_id)

    def review(self, review: str) -> Review:
        """A review by its id; raise `KeyError` where there is none."""
        return self._by_id[review]

    def find(self, review: str) -> Review | None:
        """A review by its id, if there is one."""
        return self._by_id.get(review)

    @property
    def concluded(self) -> tuple[Review, ...]:
        """The reviews whose authors' conclusion is known."""
        return tuple(review for review in self.reviews if review.conclusion)

    @property
    def verdict(self) -> VerdictKind:
        """How conclusions are compared, by the settings or by what there is."""
        if self.settings.verdict is None:
            return "direction" if self.concluded else "off"
        return self.settings.verdict
