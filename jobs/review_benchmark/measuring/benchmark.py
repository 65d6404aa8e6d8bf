"""One review and one agent: how much of the ground truth was rebuilt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from jobs.review_benchmark.matching.rules import Hit

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
    documents: int  #: distinct records that are matched
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
    def precision(self) -> float | None:
        """Included rows that are truth papers, of all; None without any."""
        if not self.included_rows:
            return None
        return self.right_rows / self.included_rows

    @property
    def ceiling(self) -> float:
        """The recall that a perfect judge of the records would reach."""
        return self.found / self.truth

    def passes(self, target: float) -> bool:
        """Whether recall reaches *target*; whole numbers are compared where it is 1."""
        if target == 1.0:
            return self.found_and_included == self.truth
        return self.recall >= target


def benchmarked(
    hits: Sequence[Hit | None], documents: Mapping[int, str], included: Sequence[str]
) -> Benchmark:
    """What the matches of a review come to.

    Args:
        hits: the record of each truth paper.
        documents: the id of each record that was hit, by place.
        included: the ids of the included rows, duplicates and all.
    """
    kept = frozenset(included)
    found = [documents[hit.place] for hit in hits if hit is not None]
    right = {document for document in found if document in kept}
    return Benchmark(
        truth=len(hits),
        included_rows=len(included),
        found=len(found),
        found_and_included=sum(document in kept for document in found),
        right_rows=sum(document in right for document in included),
        documents=len(set(found)),
        methods=Counter(NONE if hit is None else hit.method for hit in hits),
    )
