"""One review and one agent: how much of the ground truth was rebuilt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from jobs.metrics import ratio
from jobs.review_benchmark.matching.claims import Claims
from jobs.review_benchmark.matching.rules import Hit
from jobs.review_benchmark.rebuilt import Rebuilt
from jobs.review_benchmark.settings import Precision

NONE = "null"
"""How a truth paper without a record is called among the methods."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """What matching and decisions come to; counts are of truth papers or of rows."""

    truth: int
    included_rows: int  #: rows of the list of included papers, duplicates counted
    found: int  #: truth papers with a record
    found_and_included: int
    right_rows: int  #: included rows that are the record of a truth paper
    credited: int  #: numerator of precision: right rows, unless settings say otherwise
    documents: int  #: distinct records that are matched
    distinct: int  #: truth papers included, if a record may serve one of them only
    retrieved: int  #: truth papers whose record is a candidate
    methods: Mapping[str, int]  #: truth papers by how they were matched; `null`: not

    @property
    def not_found(self) -> int:
        """Truth papers without a record."""
        return self.truth - self.found

    @property
    def found_but_excluded(self) -> int:
        """Truth papers whose record is not included."""
        return self.found - self.found_and_included

    @property
    def recall(self) -> float:
        """Truth papers that were included, of all."""
        return self.found_and_included / self.truth

    @property
    def recall_distinct(self) -> float:
        """Recall, if a record may serve one truth paper only."""
        return self.distinct / self.truth

    @property
    def precision(self) -> float | None:
        """Included rows that are truth papers, of all; None without any."""
        return ratio(self.credited, self.included_rows)

    @property
    def nnr(self) -> float | None:
        """Number needed to read: included rows for each that is a truth paper."""
        return ratio(self.included_rows, self.right_rows)

    @property
    def ceiling(self) -> float:
        """The recall that a perfect judge of the records would reach."""
        return self.found / self.truth

    @property
    def retrieval_recall(self) -> float:
        """Truth papers that became candidates, of all."""
        return self.retrieved / self.truth

    @property
    def screening_recall(self) -> float | None:
        """Truth papers that were included, of those that became candidates."""
        return ratio(self.found_and_included, self.retrieved)

    def passes(self, target: float) -> bool:
        """Whether recall reaches *target*; whole numbers are compared where it is 1."""
        return passes(self.found_and_included, self.truth, target)


def passes(included: int, truth: int, target: float) -> bool:
    """Whether so many of the truth papers are enough."""
    return included == truth if target == 1.0 else included / truth >= target


CREDITED: Mapping[Precision, Callable[[int, int], int]] = {
    "rows": lambda right_rows, _: right_rows,
    "gt_over_included": lambda _, papers: papers,
}
"""The numerator of precision, from right rows and truth papers included."""


def benchmarked(own: Rebuilt, precision: Precision) -> Benchmark:
    """What an agent's matches and decisions come to for a review."""
    return _counted(own, own.hits, precision)


def otherwise(own: Rebuilt, precision: Precision) -> Benchmark | None:
    """The same under the other value of `autojunk`; None where it is the same."""
    if own.otherwise is None:
        return None
    return _counted(own, own.otherwise.hits, precision)


def served_alone(own: Rebuilt, replicate: int) -> int:
    """The truth papers that one replicate by itself would include; it counts from 0."""
    kept = {each.document for each in own.candidates if each.votes[replicate]}
    return sum(
        any(own.documents[hit.place] in kept for hit in hits)
        for hits in own.matched.serving
    )


def _counted(
    own: Rebuilt, hits: Sequence[Hit | None], precision: Precision
) -> Benchmark:
    kept = frozenset(own.included)
    offered = frozenset(each.document for each in own.candidates)
    found = [own.documents[hit.place] for hit in hits if hit is not None]
    right = {document for document in found if document in kept}
    right_rows = sum(document in right for document in own.included)
    found_and_included = sum(document in kept for document in found)
    return Benchmark(
        truth=len(hits),
        included_rows=len(own.included),
        found=len(found),
        found_and_included=found_and_included,
        right_rows=right_rows,
        credited=CREDITED[precision](right_rows, found_and_included),
        documents=len(set(found)),
        distinct=_distinct(own),
        retrieved=sum(document in offered for document in found),
        methods=Counter(NONE if hit is None else hit.method for hit in hits),
    )


def _distinct(own: Rebuilt) -> int:
    kept = frozenset(own.included)
    claims = Claims(own.matched.claimable)
    for place, document in sorted(own.documents.items()):
        if document in kept:
            claims.add(place)
    return len(claims)
