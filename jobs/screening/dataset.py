"""A run's inputs: the settings and the set that is screened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from jobs.screening.corpus import Text
from jobs.screening.settings import Settings
from jobs.screening.validation_set import Record, SetReview, ValidationSet
from jobs.screening.wording import WORDING
from runner.prompts import PromptBook
from runner.scorecard import Finding


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """All inputs of a run; an imported one may have none but settings."""

    settings: Settings
    prompts: PromptBook = field(default_factory=WORDING.shipped)
    validation_set: ValidationSet | None = None
    fulltexts: Mapping[str, Path] = field(default_factory=dict)  #: by paper
    findings: tuple[Finding, ...] = ()
    _records: Mapping[str, Record] = field(init=False, repr=False, compare=False)
    _reviews: Mapping[str, SetReview] = field(init=False, repr=False, compare=False)
    _by_review: Mapping[str, list[Record]] = field(
        init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        drawn = self.validation_set
        records = {} if drawn is None else {each.key: each for each in drawn.records}
        reviews = {} if drawn is None else {each.id: each for each in drawn.reviews}
        by_review: dict[str, list[Record]] = {}
        for each in records.values():
            by_review.setdefault(each.review, []).append(each)
        object.__setattr__(self, "_records", records)
        object.__setattr__(self, "_reviews", reviews)
        object.__setattr__(self, "_by_review", by_review)

    @property
    def screened(self) -> tuple[str, ...]:
        """The reviews that have records, in set order."""
        return tuple(self._by_review)

    def record(self, key: str) -> Record:
        """A record by its item key; raise `KeyError` where there is none."""
        return self._records[key]

    def find(self, key: str) -> Record | None:
        """A record by its item key, if the set still has it."""
        return self._records.get(key)

    def records_of(self, review: str) -> Sequence[Record]:
        """The records of a review in set order; none where the set lost it."""
        return self._by_review.get(review, ())

    def review(self, review: str) -> SetReview:
        """A review of the set; raise `KeyError` where there is none."""
        return self._reviews[review]

    def paper(self, paper: str) -> Text:
        """The text of a paper of the set; raise `KeyError` where there is none."""
        if self.validation_set is None:
            raise KeyError(paper)
        return self.validation_set.papers[paper]

    def has_fulltext(self, paper: str) -> bool:
        """Whether there is a full text of a paper."""
        return paper in self.fulltexts

    def fulltext(self, paper: str) -> str:
        """The full text of a paper; raise `KeyError` where there is none.

        Read when it is needed: all of them together would not fit into memory.
        """
        return self.fulltexts[paper].read_text("utf-8", errors="replace")
