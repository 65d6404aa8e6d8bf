"""Where truth papers stand in a database, whatever an agent made of it.

A lookup says all papers that a truth paper could be; which of them it is depends on the
order of the records, and so on what an agent included. The order is `Stocked`'s part,
so a million titles are gone through once, not once a model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from rapidfuzz.distance import Indel
from rapidfuzz.process import cpdist

from jobs.review_benchmark.database.reading import Database
from jobs.review_benchmark.matching.bags import Bags
from jobs.review_benchmark.matching.ratio import MARGIN, ratio
from jobs.review_benchmark.matching.rules import Wanted

PAIRS = 1 << 17
"""Pairs of titles compared at once: what fits the cache of a processor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """The papers of a database that a truth paper could be."""

    by_pmid: int | None = None
    by_doi: int | None = None
    alike: Mapping[int, float] = field(default_factory=dict)
    """Ratio of the likest title of each paper at or above the cutoff.

    Empty where a paper has the PMID or the DOI: no rule asks for titles then."""


def looked_up(
    wanted: Sequence[Wanted], database: Database, *, cutoff: float, autojunk: bool
) -> tuple[Lookup, ...]:
    """Look truth papers up by all that is known of them; exact, titles too.

    Args:
        wanted: the truth papers.
        database: the papers.
        cutoff: least ratio of titles, inclusive.
        autojunk: as for `ratio`.
    """
    exact = [
        Lookup(
            by_pmid=database.by_pmid(each.pmid) if each.pmid else None,
            by_doi=database.by_doi(each.doi) if each.doi else None,
        )
        for each in wanted
    ]
    titles = [
        each.title if found.by_pmid is None and found.by_doi is None else ""
        for each, found in zip(wanted, exact, strict=True)
    ]
    alike = _alike(titles, database, cutoff, autojunk=autojunk)
    return tuple(
        replace(found, alike=near) for found, near in zip(exact, alike, strict=True)
    )


def _alike(
    titles: Sequence[str], database: Database, cutoff: float, *, autojunk: bool
) -> list[dict[int, float]]:
    """For each title the papers with one at or above the cutoff, and the best ratio.

    A ratio is twice the characters in common over those of both titles. So it cannot
    be reached where the lengths differ too much, nor where the bags have too little in
    common, nor where rapidfuzz finds too little; only the others are given to difflib.
    """
    found: list[dict[int, float]] = [{} for _ in titles]
    places = [place for place, title in enumerate(titles) if title]
    if not places:
        return found
    named = [titles[place] for place in places]
    lengths = np.array([len(title) for title in named])
    share = cutoff / (2.0 - cutoff)
    shortest = math.ceil(lengths.min() * share - MARGIN)
    longest = math.floor(lengths.max() / share + MARGIN)
    least = max(cutoff - MARGIN, MARGIN)
    bags = Bags(named)
    for block in database.titles_within(shortest, longest, PAIRS // len(named) + 1):
        stocked = [title for _, title in block]
        both = lengths[:, None] + np.array([len(title) for title in stocked])
        near = bags.common(stocked) >= both * (cutoff / 2.0) - MARGIN
        rows, columns = (axis.tolist() for axis in np.nonzero(near))
        scores = cpdist(
            [named[row] for row in rows],
            [stocked[column] for column in columns],
            scorer=Indel.normalized_similarity,
            score_cutoff=least,
            dtype=np.float64,
        )
        for each in np.flatnonzero(scores).tolist():
            truth, (paper, title) = named[rows[each]], block[columns[each]]
            exact = ratio(truth, title, autojunk=autojunk)
            if exact >= cutoff:
                papers = found[places[rows[each]]]
                papers[paper] = max(papers.get(paper, 0.0), exact)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Stocked:
    """A database in the order that one agent gives it: a pool for one truth paper.

    First the included papers, then the other candidates by rank, then the rest by id.
    Places are those of this order where a paper stands in it, and beyond it by id.
    """

    order: Mapping[int, int]  #: places of the included papers and candidates, by id
    lookup: Lookup  #: of the truth paper that is matched

    def by_pmid(self, pmid: str) -> Sequence[int]:
        """Place of the paper with its PMID."""
        del pmid  # it was looked up by it
        return self._places(self.lookup.by_pmid)

    def by_doi(self, doi: str) -> Sequence[int]:
        """Place of the paper with its DOI."""
        del doi
        return self._places(self.lookup.by_doi)

    def alike(self, title: str) -> Iterator[tuple[int, float]]:
        """Places and ratios of the papers with a title at the cutoff, in order."""
        del title
        found = (
            (self.place(paper), ratio) for paper, ratio in self.lookup.alike.items()
        )
        yield from sorted(found)

    def place(self, paper: int) -> int:
        """The place of a paper."""
        return self.order.get(paper, len(self.order) + paper)

    def _places(self, paper: int | None) -> Sequence[int]:
        return () if paper is None else (self.place(paper),)
