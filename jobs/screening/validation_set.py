"""A set to screen: each review's included papers and the negatives drawn beside them.

What `prepare` writes, `run` reads and scoring goes by. It holds its texts, so that a
set is whole without the tables that it was drawn from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from jobs.screening.corpus import Criteria, Text
from runner.scorecard import Finding

Kind: TypeAlias = Literal[
    "included", "near-miss", "random", "true-excluded", "unspecified"
]
KINDS: tuple[Kind, ...] = (
    "included",
    "near-miss",
    "random",
    "true-excluded",
    "unspecified",
)
"""In the order of a set's rows; `unspecified` are negatives of an import alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """A paper that is to be screened for a review."""

    review: str
    paper: str
    kind: Kind
    also_near_miss: bool = False  #: of a true exclusion
    reason: str = ""  #: why the review excluded it, as written
    reason_code: str = ""
    n_links: int = 0  #: related reviews that contain it
    n_shared: int = 0  #: largest overlap of those reviews with this one
    similarity: float | None = None  #: to the review's included papers

    @property
    def label(self) -> int:
        """1: the review includes it."""
        return int(self.kind == "included")

    @property
    def key(self) -> str:
        """The item key of its tasks."""
        return record_key(self.review, self.paper)


def record_key(review: str, paper: str) -> str:
    """The item key of a record; neither id holds a colon (reading refuses it)."""
    return f"{review}:{paper}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetReview:
    """A review of the set: what a model may be told of it."""

    id: str
    text: Text
    criteria: Criteria | None = None  #: from the criteria file; None: it has none


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidationSet:
    """Records in set order: by review, kind, paper."""

    reviews: tuple[SetReview, ...]  #: ascending as text
    records: tuple[Record, ...]
    papers: Mapping[str, Text] = field(default_factory=dict)  #: texts by id
    pools: Mapping[str, int] = field(default_factory=dict)
    """How many papers each kind could be drawn from, over all reviews."""
    near_misses: Mapping[str, float | None] = field(default_factory=dict)
    """The candidates of all reviews in figures, by name, as in summary.json."""
    candidates: Mapping[str, int] = field(default_factory=dict)
    """Reviews by how many candidates they have."""
    contamination: Mapping[str, float | None] = field(default_factory=dict)
    """Shares and bounds of the candidates, where exclusions are known."""
    drift: Mapping[str, float | None] = field(default_factory=dict)
    """Macro figures of topic drift by name, as in summary.json."""
    findings: tuple[Finding, ...] = ()
