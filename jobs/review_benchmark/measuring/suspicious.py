"""Matches that somebody should look at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from jobs.review_benchmark.matching.normal import pmid_of
from jobs.review_benchmark.measuring.lost import PaperMatch
from jobs.review_benchmark.rebuilt import Rebuilt

Reason: TypeAlias = Literal["other_pmid", "other_year", "shared"]

YEARS = 1
"""So far apart two years may be: printed, and online before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspicious:
    """A match, and why it may be wrong."""

    index: int  #: of the truth paper
    document: str
    reason: Reason
    message: str  #: without an end


def suspicious(matches: Sequence[PaperMatch], own: Rebuilt) -> tuple[Suspicious, ...]:
    """Titles of other PMIDs or years, and records of several truth papers."""
    uses = Counter(match.document for match in matches if match.found)
    return tuple(
        Suspicious(
            index=match.index, document=match.document, reason=reason, message=message
        )
        for match in matches
        if match.found
        for reason, message in _reasons(match, own, uses[match.document])
    )


def _reasons(
    match: PaperMatch, own: Rebuilt, uses: int
) -> Iterator[tuple[Reason, str]]:
    paper, record = match.paper, own.records[match.document]
    if match.method == "title_fuzzy":
        mine, other = pmid_of(paper.pmid), pmid_of(record.pmid)
        if mine and other and mine != other:
            yield (
                "other_pmid",
                f"matched by its title; PMIDs differ: {mine} and {other}",
            )
        if (
            paper.year is not None
            and record.year is not None
            and abs(paper.year - record.year) > YEARS
        ):
            yield (
                "other_year",
                f"matched by its title; years differ: {paper.year} and {record.year}",
            )
    if uses > 1:
        yield "shared", f"{match.document} is the record of {uses} studies"
