"""Whether a database has the truth papers at all: no agent can find what is not there.

Each is looked up by PMID, then DOI, then title, by the rule `whole-list` on the papers
in the order of their ids.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from jobs.metrics.columns import ratio
from jobs.review_benchmark.database.merging import NORMAL
from jobs.review_benchmark.database.paper import Paper
from jobs.review_benchmark.database.reading import Database
from jobs.review_benchmark.matching.lookup import Stocked, looked_up
from jobs.review_benchmark.matching.match import wanted
from jobs.review_benchmark.matching.rules import (
    METHODS,
    Method,
    Wanted,
    any_record,
    whole_list,
)
from jobs.review_benchmark.review import Review, TruthPaper


@dataclass(frozen=True, slots=True, kw_only=True)
class Present:
    """A truth paper that the database has."""

    paper: Paper
    method: Method
    ratio: float  #: of the titles; 1.0 for identifiers


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """A truth paper, and what the database has of it."""

    review: str
    truth: TruthPaper
    present: Present | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """How many truth papers a database has."""

    truth: int
    pmid: int
    doi: int
    title: int

    @property
    def found(self) -> int:
        """Those that are present, by whatever key."""
        return self.pmid + self.doi + self.title

    @property
    def share(self) -> float | None:
        """Those that are present, of all; None where there are none."""
        return ratio(self.found, self.truth)


def counts(papers: Sequence[Covered]) -> Counts:
    """Count papers by what they were found by."""
    methods = [each.present.method for each in papers if each.present is not None]
    by = {key: methods.count(method) for key, method in METHODS.items()}
    return Counts(truth=len(papers), **by)


def covered(
    reviews: Sequence[Review],
    database: Database,
    *,
    keys: Collection[str],
    cutoff: float,
    autojunk: bool,
) -> tuple[Covered, ...]:
    """Look the truth papers of reviews up, in the order of reviews and of their files.

    Args:
        reviews: whose papers.
        database: where they should be.
        keys: those of `METHODS` that count.
        cutoff: least ratio of titles, inclusive.
        autojunk: as for `matching.ratio.ratio`.
    """
    papers = [(review.id, truth) for review in reviews for truth in review.studies]
    sought = [_only(wanted(truth, NORMAL), keys) for _, truth in papers]
    lookups = looked_up(sought, database, cutoff=cutoff, autojunk=autojunk)
    found = []
    for (review, truth), each, lookup in zip(papers, sought, lookups, strict=True):
        records = any_record(each, Stocked(order={}, lookup=lookup))
        hit = next(iter(whole_list(records)), None)
        # without an agent, a paper's place is its id
        paper = None if hit is None else database.paper(hit.place)
        present = (
            None
            if hit is None or paper is None
            else Present(paper=paper, method=hit.method, ratio=hit.confidence)
        )
        found.append(Covered(review=review, truth=truth, present=present))
    return tuple(found)


def _only(sought: Wanted, keys: Collection[str]) -> Wanted:
    """What is looked up by some keys alone."""
    return replace(sought, **{key: "" for key in METHODS if key not in keys})
