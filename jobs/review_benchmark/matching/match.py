"""What became of each truth paper of a review: its record, or none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from jobs.review_benchmark.matching.normal import Normal, pmid_of
from jobs.review_benchmark.matching.rules import RULES, Hit, Matching, Pool, Wanted
from jobs.review_benchmark.review import TruthPaper


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How truth papers are matched with records; part of what makes runs comparable."""

    matching: Matching = "whole-list"
    title_cutoff: float = 0.85  #: least ratio of titles, inclusive
    autojunk: bool = True  #: as difflib has it by default
    normal: Normal = field(default_factory=Normal)


def wanted(paper: TruthPaper, normal: Normal) -> Wanted:
    """What a truth paper is looked up by."""
    return Wanted(
        pmid=pmid_of(paper.pmid),
        doi=normal.doi(paper.doi),
        title=normal.title(paper.title),
    )


def matched(
    papers: Sequence[TruthPaper], pool: Pool, rules: Rules
) -> tuple[Hit | None, ...]:
    """The record of each truth paper, on its own: two may have the same."""
    rule = RULES[rules.matching]
    return tuple(rule(wanted(paper, rules.normal), pool) for paper in papers)
