"""What became of each truth paper of a review: its record, or none."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from jobs.review_benchmark.matching.claims import claimed
from jobs.review_benchmark.matching.normal import Normal, pmid_of
from jobs.review_benchmark.matching.rules import (
    RULES,
    Hit,
    Hits,
    Matching,
    Pool,
    Wanted,
    any_record,
)
from jobs.review_benchmark.review import TruthPaper


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How truth papers are matched with records; part of what makes runs comparable."""

    matching: Matching = "whole-list"
    title_cutoff: float = 0.85  #: least ratio of titles, inclusive
    autojunk: bool = True  #: as difflib has it by default
    unique_claims: bool = False  #: one record serves one truth paper only
    normal: Normal = field(default_factory=Normal)


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """The truth papers of a review and their records; one entry for each paper."""

    hits: tuple[Hit | None, ...]  #: its record
    serving: tuple[Hits, ...]  #: all records that the rule calls equally good
    claimable: tuple[Hits, ...]  #: all records that could be its own


def wanted(paper: TruthPaper, normal: Normal) -> Wanted:
    """What a truth paper is looked up by."""
    return Wanted(
        pmid=pmid_of(paper.pmid),
        doi=normal.doi(paper.doi),
        title=normal.title(paper.title),
    )


def matched(
    sought: Sequence[Wanted],
    pools: Sequence[Pool],
    rules: Rules,
    included: Collection[int],
) -> Matched:
    """Match truth papers with records.

    Each is matched on its own, so that two may have one record, unless the rules have
    it that a record serves one paper only.

    Args:
        sought: what the papers are looked up by.
        pools: where; one for each of them.
        rules: how.
        included: places of the included records.
    """
    claimable = tuple(map(any_record, sought, pools))
    serving = tuple(map(RULES[rules.matching], claimable))
    if rules.unique_claims:
        hits = claimed(claimable, included)
    else:
        hits = tuple(own[0] if own else None for own in serving)
    return Matched(hits=hits, serving=serving, claimable=claimable)
