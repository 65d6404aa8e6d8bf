"""What is scored: what each agent made of each review.

Both ways in, a run of our own and results made elsewhere, end in a `Sheet`; scoring
sees nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from jobs.review_benchmark.answered import Certainty, Direction, Likeness, Vector
from jobs.review_benchmark.matching.match import Matched
from jobs.review_benchmark.matching.nearest import Near
from jobs.review_benchmark.matching.rules import Hit
from jobs.review_benchmark.record import Record
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
    votes: tuple[bool, ...] = ()  #: by replicate: whether it alone would include it
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
    direction: Direction | None = None  #: as the reply states it; None: it does not
    certainty: Certainty | None = None  #: the same
    failure: str = ""
    """Why there is none, or nothing that compares it with what the authors concluded:
    the reason of a skip, a class of errors, the reason of a parse failure, `open`."""
    judged: Mapping[str, Likeness] = field(default_factory=dict)
    """Beside the authors' conclusions of reviews, its own among them."""
    vector: Vector = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class MissedBy:
    """Why one query did not offer a paper that the database has."""

    label: str  #: of the query
    replicate: int
    unmet: tuple[tuple[str, ...], ...] = ()  #: groups of which its text has no synonym
    unwanted: tuple[str, ...] = ()  #: exclusions that its text has
    rank: int | None = None  #: among the query's papers, where it is one of them


@dataclass(frozen=True, slots=True, kw_only=True)
class Missed:
    """Why a paper that the database has is no candidate."""

    queries: tuple[MissedBy, ...] = ()  #: by replicate, then in the plan's order
    rank: int | None = None  #: in the fused order, where too many are before it
    year: int | None = None  #: its own, where a query fits and the years do not
    is_review: bool = False  #: it was left out as a Cochrane review


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What the replies about one review took.

    Those that compare its conclusion are no work of the agent, and do not count.
    """

    calls: int = 0
    tokens_in: int | None = None  #: None: no endpoint counted them
    tokens_out: int | None = None
    cost_usd: float | None = None  #: None: no price is known


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebuilt:
    """What one agent made of one review.

    Whatever speaks of truth papers has one entry for each, in the review's order.
    """

    review: str
    model: str
    matched: Matched
    otherwise: Matched | None = None
    """Under the other value of `autojunk`; None: it makes no difference."""
    documents: Mapping[int, str]  #: ids of the records that may be hit, by place
    records: Mapping[str, Record]  #: the records that were hit, by id
    nearest: Mapping[int, Near] = field(default_factory=dict)
    """The likest title for each truth paper without a record, where one comes near."""
    papers: Mapping[str, Record] = field(default_factory=dict)
    """Every candidate's record, by id."""
    missed: Mapping[int, Missed] = field(default_factory=dict)
    """Why the search did not offer a truth paper's record, where it did not."""
    included: tuple[str, ...]  #: ids of the included rows, duplicates and all
    candidates: tuple[Candidate, ...]  #: by rank
    searches: tuple[Searched, ...] = ()  #: by replicate; none of an import
    conclusions: tuple[Concluded, ...] = ()  #: by replicate
    spent: Spent = field(default_factory=Spent)
    skip: str = ""  #: why it was not done: `no_candidates`, ...

    @property
    def hits(self) -> tuple[Hit | None, ...]:
        """The record of each truth paper."""
        return self.matched.hits

    @property
    def conclusion(self) -> str:
        """What is concluded, by the first replicate that says; empty: nothing."""
        return next((own.text for own in self.conclusions if own.text), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """All that is scored."""

    reviews: tuple[Review, ...]  #: ascending by id
    models: tuple[str, ...]
    rebuilt: tuple[Rebuilt, ...]  #: by model, then review
    replicates: int = 1
    imported: bool
    vectors: Mapping[str, Vector] = field(default_factory=dict)
    """Of what the authors concluded, by review; empty unless vectors are compared."""
    findings: tuple[Finding, ...] = ()
    missing: int = 0  #: tasks that the present plan asks for and the run has not
    stale: int = 0  #: stored answers that the present plan no longer asks for
