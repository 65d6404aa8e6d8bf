"""Where truth papers stand in a database, whatever an agent made of it.

A lookup says all papers that a truth paper could be; which of them it is depends on the
order of the records, and so on what an agent included. The order is `Stocked`'s part,
so a million titles are gone through once, not once a model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
from rapidfuzz.distance import Indel
from rapidfuzz.process import cdist

from jobs.review_benchmark.database.reading import Database
from jobs.review_benchmark.matching.ratio import MARGIN, ratio
from jobs.review_benchmark.matching.rules import Wanted

BLOCK = 8192
"""Titles compared at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """The papers of a database that a truth paper could be."""

    by_pmid: int | None = None
    by_doi: int | None = None
    alike: Mapping[int, float] = field(default_factory=dict)
    """Ratio of the likest title of each paper at or above the cutoff."""


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
    alike = _alike([each.title for each in wanted], database, cutoff, autojunk=autojunk)
    return tuple(
        Lookup(
            by_pmid=database.by_pmid(each.pmid) if each.pmid else None,
            by_doi=database.by_doi(each.doi) if each.doi else None,
            alike=found,
        )
        for each, found in zip(wanted, alike, strict=True)
    )


def _alike(
    titles: Sequence[str], database: Database, cutoff: float, *, autojunk: bool
) -> list[dict[int, float]]:
    """For each title the papers with one at or above the cutoff, and the best ratio.

    Two titles whose lengths differ too much cannot reach it: the ratio is at most
    twice the shorter length over both.
    """
    found: list[dict[int, float]] = [{} for _ in titles]
    share = cutoff / (2.0 - cutoff)
    by_length = sorted(
        (len(title), place) for place, title in enumerate(titles) if title
    )
    for length, group in groupby(by_length, key=lambda pair: pair[0]):
        places = [place for _, place in group]
        shortest = math.ceil(length * share - MARGIN)
        longest = math.floor(length / share + MARGIN)
        stocked = database.titles_within(shortest, longest)
        for start in range(0, len(stocked), BLOCK):
            block = stocked[start : start + BLOCK]
            scores = cdist(
                [titles[place] for place in places],
                [title for _, title in block],
                scorer=Indel.normalized_similarity,
                score_cutoff=max(cutoff - MARGIN, 0.0),
                dtype=np.float64,
            )
            for row, column in zip(*np.nonzero(scores), strict=True):
                paper, title = block[column]
                place = places[row]
                exact = ratio(titles[place], title, autojunk=autojunk)
                if exact >= cutoff:
                    known = found[place].get(paper, 0.0)
                    found[place][paper] = max(known, exact)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Stocked:
    """A database in the order that one agent gives it; a `rules.Pool` of one paper.

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
