"""Defines reviews, papers, exclusions and the validation set drawn from them.

A `ValidationSet` is what `prepare` writes, `run` reads and scoring uses: each review's
included papers and its negatives. It includes the texts, so a set is complete without
the tables it was drawn from. A `ScreeningJudgement` is the parsed reply about one
record. Ids are text everywhere: leading zeros count, and order is that of text.
"""

from __future__ import annotations

import difflib
from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

import msgspec

from runner.errors import DatasetError
from runner.scorecard import Finding

Decision: TypeAlias = Literal["include", "exclude", "unclear"]

ReasonCode: TypeAlias = Literal[
    "meets_criteria",
    "population",
    "intervention",
    "comparator",
    "outcome",
    "study_design",
    "duplicate",
    "ongoing",
    "language",
    "date",
    "insufficient_information",
    "other",
]
REASON_CODES: tuple[ReasonCode, ...] = get_args(ReasonCode)


class ScreeningJudgement(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """A parsed reply."""

    decision: Decision
    p_include: float | None = None  #: 0..1; None: no usable value
    reason_code: str = "other"
    reason: str = ""
    rule: str = "json"  #: the parsing rule that fired
    issues: tuple[str, ...] = ()
    """`bad_confidence`, `inconsistent`, `bad_reason_code`: counted, never hidden."""


Ids: TypeAlias = tuple[str, ...]
Status: TypeAlias = Literal["excluded", "awaiting", "ongoing"]


def index_in(ids: Ids, target: str) -> int | None:
    """Return the index of an id in a sorted sequence, or None."""
    index = bisect_left(ids, target)
    return index if ids[index : index + 1] == (target,) else None


class ArticleText(msgspec.Struct, frozen=True, kw_only=True):
    """Text and year of a review or a paper."""

    title: str = ""
    abstract: str = ""  #: blank: missing
    year: int | None = None

    @property
    def has_abstract(self) -> bool:
        """Whether there is an abstract that is not blank."""
        return bool(self.abstract.strip())


NO_TEXT = ArticleText()


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusion:
    """A paper that a review has assessed and not included, or not yet."""

    review: str
    paper: str
    status: Status = "excluded"
    reason: str = ""
    reason_code: str = ""  #: from the file; empty: coded from the reason
    study: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Criteria:
    """Criteria of a review, as passed to a model."""

    question: str = ""
    pico: Mapping[str, str] = field(default_factory=dict)
    inclusion: Ids = ()
    exclusion: Ids = ()
    headings: Mapping[str, str] = field(default_factory=dict)
    """Further criteria by heading."""

    @property
    def is_empty(self) -> bool:
        """Whether there are no criteria."""
        return not (
            self.question
            or self.pico
            or self.inclusion
            or self.exclusion
            or self.headings
        )


RecordKind: TypeAlias = Literal[
    "included", "near-miss", "random", "true-excluded", "unspecified", "unlabelled"
]
KINDS: tuple[RecordKind, ...] = get_args(RecordKind)
"""In the order of a set's rows. `unspecified` are negatives of an import; of
`unlabelled` records it is not known whether they are included."""

UNLABELLED = -1
"""Label of a record that has not been decided."""


class ScreeningRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A paper that is to be screened for a review."""

    review: str
    paper: str
    kind: RecordKind
    also_near_miss: bool = False  #: of a true exclusion
    reason: str = ""  #: the review's reason for excluding it, as written
    reason_code: str = ""
    n_links: int = 0  #: related reviews that contain it
    n_shared: int = 0  #: largest overlap of those reviews with this one
    similarity: float | None = None  #: to the review's included papers

    @property
    def label(self) -> int:
        """1: the review includes it; 0: it does not; `UNLABELLED`: not known."""
        return UNLABELLED if self.kind == "unlabelled" else int(self.kind == "included")

    @property
    def key(self) -> str:
        """Item key of its tasks."""
        return record_key(self.review, self.paper)


def record_key(review: str, paper: str) -> str:
    """Return the item key of a record; no id has a colon (the reader rejects it)."""
    return f"{review}:{paper}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetReview:
    """A review of the set, as a model may see it."""

    id: str
    text: ArticleText
    criteria: Criteria | None = None  #: from the criteria file, if it has any


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationSet:
    """Records in set order: by review, kind, paper."""

    reviews: tuple[SetReview, ...]  #: ascending as text
    records: tuple[ScreeningRecord, ...]
    papers: Mapping[str, ArticleText] = field(default_factory=dict)  #: texts by id
    pools: Mapping[str, int] = field(default_factory=dict)
    """Papers that each kind could be drawn from, over all reviews."""
    near_misses: Mapping[str, float | None] = field(default_factory=dict)
    """Statistics of the candidates of all reviews, by name, as in summary.json."""
    candidates: Mapping[str, int] = field(default_factory=dict)
    """Number of reviews by their number of candidates."""
    contamination: Mapping[str, float | None] = field(default_factory=dict)
    """Shares and bounds of the candidates, if exclusions are known."""
    drift: Mapping[str, float | None] = field(default_factory=dict)
    """Macro averages of topic drift by name, as in summary.json."""
    findings: tuple[Finding, ...] = ()


def review_index(review: str, reviews: Ids) -> int:
    """Return the index of a review among those that cite any paper.

    Args:
        review: its id.
        reviews: ids, ascending.

    Raises:
        DatasetError: there is no such review; names the nearest.
    """
    index = index_in(reviews, review)
    if index is not None:
        return index
    near = difflib.get_close_matches(review, reviews, cutoff=0.0)
    hint = f"the nearest are {', '.join(near)}" if near else "there are no reviews"
    raise DatasetError(f"No review {review!r} cites any paper; {hint}.")
