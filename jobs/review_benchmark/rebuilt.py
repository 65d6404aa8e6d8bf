"""What is scored: what each agent made of each review.

Both ways in, a run of our own and results made elsewhere, end in a `Sheet`; scoring
sees nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from jobs.review_benchmark.answered import Likeness, Vector
from jobs.review_benchmark.matching.rules import Hit
from jobs.review_benchmark.review import Review
from jobs.review_benchmark.search.query import Query
from runner.scorecard import Finding

Outcome: TypeAlias = Literal[
    "scored", "unparsed", "failed", "no_text", "too_long", "open"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A paper that an agent has looked at."""

    document: str  #: id in the database, or `document_id` of an import
    rank: int  #: from 1, in the fused order; of an import, in the file's order
    included: bool
    outcome: Outcome = "scored"
    failure: str = ""  #: its class, where it has no score
    score: float | None = None  #: mean of the replicates that have one
    scores: tuple[float | None, ...] = ()  #: by replicate
    rationale: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Searched:
    """One search plan, carried out."""

    replicate: int
    queries: tuple[Query, ...]
    hits: tuple[int, ...]  #: papers that each query found, before `top_k`
    cut: int  #: papers beyond `max_candidates`
    is_fallback: bool  #: the reply was of no use; the deterministic plan was searched


@dataclass(frozen=True, slots=True, kw_only=True)
class Concluded:
    """What one replicate concludes of a review, and what compares it."""

    text: str = ""  #: empty: there is none
    failure: str = ""
    """Why there is none, or nothing that compares it with what the authors concluded:
    the reason of a skip, a class of errors, the reason of a parse failure, `open`."""
    judged: Mapping[str, Likeness] = field(default_factory=dict)
    """Beside the authors' conclusions of reviews, its own among them."""
    vector: Vector = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """What one agent made of one review."""

    review: str
    model: str
    hits: tuple[Hit | None, ...]
    """The record of each truth paper, by the matching rules."""
    documents: Mapping[int, str]  #: ids of the records that were hit, by place
    included: tuple[str, ...]  #: ids of the included rows, duplicates and all
    candidates: tuple[Candidate, ...]  #: by rank
    searches: tuple[Searched, ...] = ()  #: by replicate; none of an import
    conclusions: tuple[Concluded, ...] = ()  #: by replicate
    skip: str = ""  #: why it was not done: `no_candidates`, ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """All that is scored."""

    reviews: tuple[Review, ...]  #: ascending by id
    models: tuple[str, ...]
    rebuilt: tuple[Rebuilt, ...]  #: by model, then review
    imported: bool
    vectors: Mapping[str, Vector] = field(default_factory=dict)
    """Of what the authors concluded, by review; empty unless vectors are compared."""
    findings: tuple[Finding, ...] = ()
    missing: int = 0  #: tasks that the present plan asks for and the run has not
    stale: int = 0  #: stored answers that the present plan no longer asks for
