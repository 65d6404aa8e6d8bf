"""Looks truth papers up in a database or a result, by identifiers and similar titles.

A lookup lists all papers that a truth paper could be; the choice among them depends on
the order of the records, and so on the papers that an agent included. The order is part
of `DatabasePool`, so a million titles are searched once, not once per model.

The ratio of `difflib.SequenceMatcher` counts characters in common blocks, twice, over
the characters of both; the blocks are one common subsequence, and rapidfuzz's Indel
similarity counts the longest. So a pair whose Indel similarity is too small cannot
reach the cutoff, and only the others are compared by difflib.

Regardless of the order of its characters, a title has no more in common with another
than the sum over all characters of the smaller count. Counted in unary (three e are
"one e", "a second e", "a third e") the sum is the number of equal features, and so all
pairs are one product of matrices: a tenth of the time that comparing the titles takes.

The nearest title of a paper without a record is a hint for a person: pairs are compared
from the most similar on until none of the rest can be the nearest.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
from rapidfuzz.distance import Indel
from rapidfuzz.process import cdist, cpdist, extract_iter

from jobs.review_benchmark.data import AgentRecord
from jobs.review_benchmark.database.reader import PaperDatabase
from jobs.review_benchmark.matching import LookupKeys, Normaliser, pmid_of

JUNK_FROM = 200
"""Shortest record title, in characters, for which `autojunk` makes a difference."""

MARGIN = 1e-5
"""Margin below the cutoff for rapidfuzz, which keeps about eight digits."""


def ratio(truth: str, record: str, *, autojunk: bool = True) -> float:
    """Return the ratio of two normalised titles, 0 to 1, as difflib computes it.

    It is not symmetric: the truth paper's title comes first.

    Args:
        truth: title of the truth paper.
        record: title of the record.
        autojunk: leave out characters that make up more than 1 % of a record's title of
            200 characters or more, as difflib does by default.
    """
    return SequenceMatcher(None, truth, record, autojunk=autojunk).ratio()


def similar_titles(
    truth: str, records: Sequence[str], cutoff: float, *, autojunk: bool = True
) -> Iterator[tuple[int, float]]:
    """Yield the titles at or above a cutoff, in their order, as index and ratio.

    An empty title matches none.

    Args:
        truth: normalised title of the truth paper.
        records: normalised titles of the records.
        cutoff: least ratio, inclusive.
        autojunk: as for `ratio`.
    """
    if not truth:
        return
    # the cutoff of rapidfuzz must be at least 0; empty titles are excluded below
    least = max(cutoff - MARGIN, 0.0)
    survivors = extract_iter(
        truth,
        records,
        scorer=Indel.normalized_similarity,
        processor=None,
        score_cutoff=least,
    )
    for title, _, index in survivors:
        if title:
            title_ratio = ratio(truth, title, autojunk=autojunk)
            if title_ratio >= cutoff:
                yield index, title_ratio


Floats: TypeAlias = npt.NDArray[np.float32]
Counts: TypeAlias = npt.NDArray[np.intp]

COLUMNS = 97
"""Number of character columns: codes modulo this separate a to z, digits and the blank.

Other characters share a column with some of them, which can only raise a bound.
"""


class CharacterBags:
    """Normalised titles as bags of their characters."""

    def __init__(self, titles: Sequence[str]) -> None:
        counts = _character_counts(titles)
        # further occurrences in another title cannot be common to any of these
        most = counts.max(axis=0)
        self._columns = np.repeat(np.arange(COLUMNS), most)
        self._ordinals = np.concatenate([np.arange(1, n + 1) for n in most])
        self._features = self._unary(counts)

    def common(self, titles: Sequence[str]) -> Floats:
        """Return upper bounds of the characters in common with *titles*, by column."""
        shared: Floats = self._features @ self._unary(_character_counts(titles)).T
        return shared

    def _unary(self, counts: Counts) -> Floats:
        return (counts[:, self._columns] >= self._ordinals).astype(np.float32)


def _character_counts(titles: Sequence[str]) -> Counts:
    """Count the occurrences of each character: one row per title."""
    codes = np.frombuffer("".join(titles).encode("utf-32-le"), dtype=np.uint32)
    rows = np.repeat(np.arange(len(titles)), [len(title) for title in titles])
    cells = rows * COLUMNS + codes % COLUMNS
    counts = np.bincount(cells, minlength=len(titles) * COLUMNS)
    return counts.reshape(len(titles), COLUMNS)


PAIRS = 1 << 17
"""Pairs of titles compared in one step; they fit the cache of a processor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseLookup:
    """Papers of a database that a truth paper could be."""

    by_pmid: int | None = None
    by_doi: int | None = None
    by_title: Mapping[int, float] = field(default_factory=dict)
    """Ratio of the most similar title of each paper at or above the cutoff.

    Empty if a paper has the PMID or the DOI: no rule uses titles then.
    """


def look_up(
    truth_keys: Sequence[LookupKeys],
    database: PaperDatabase,
    *,
    cutoff: float,
    autojunk: bool,
) -> tuple[DatabaseLookup, ...]:
    """Look truth papers up by all their keys; exact, also for titles.

    Args:
        truth_keys: the truth papers.
        database: the papers.
        cutoff: least ratio of titles, inclusive.
        autojunk: as for `ratio`.
    """
    exact = [
        DatabaseLookup(
            by_pmid=database.by_pmid(keys.pmid) if keys.pmid else None,
            by_doi=database.by_doi(keys.doi) if keys.doi else None,
        )
        for keys in truth_keys
    ]
    titles = [
        keys.title if lookup.by_pmid is None and lookup.by_doi is None else ""
        for keys, lookup in zip(truth_keys, exact, strict=True)
    ]
    similar_papers = _similar_papers(titles, database, cutoff, autojunk=autojunk)
    return tuple(
        replace(lookup, by_title=near)
        for lookup, near in zip(exact, similar_papers, strict=True)
    )


def _similar_papers(
    titles: Sequence[str], database: PaperDatabase, cutoff: float, *, autojunk: bool
) -> list[dict[int, float]]:
    """Return for each title the papers at or above the cutoff, with the best ratio.

    A ratio is twice the characters in common over those of both titles. So it cannot
    be reached if the lengths differ too much, or the bags have too little in common,
    or rapidfuzz finds too little; only the other titles are compared by difflib.
    """
    similar_papers: list[dict[int, float]] = [{} for _ in titles]
    indices = [index for index, title in enumerate(titles) if title]
    if not indices:
        return similar_papers
    nonempty = [titles[index] for index in indices]
    lengths = np.array([len(title) for title in nonempty])
    share = cutoff / (2.0 - cutoff)
    shortest = math.ceil(lengths.min() * share - MARGIN)
    longest = math.floor(lengths.max() / share + MARGIN)
    least = max(cutoff - MARGIN, MARGIN)
    bags = CharacterBags(nonempty)
    for block in database.titles_within(shortest, longest, PAIRS // len(nonempty) + 1):
        stocked = [title for _, title in block]
        both = lengths[:, None] + np.array([len(title) for title in stocked])
        near = bags.common(stocked) >= both * (cutoff / 2.0) - MARGIN
        rows, columns = (axis.tolist() for axis in np.nonzero(near))
        scores = cpdist(
            [nonempty[row] for row in rows],
            [stocked[column] for column in columns],
            scorer=Indel.normalized_similarity,
            score_cutoff=least,
            dtype=np.float64,
        )
        for index in np.flatnonzero(scores).tolist():
            truth, (paper, title) = nonempty[rows[index]], block[columns[index]]
            exact = ratio(truth, title, autojunk=autojunk)
            if exact >= cutoff:
                papers = similar_papers[indices[rows[index]]]
                papers[paper] = max(papers.get(paper, 0.0), exact)
    return similar_papers


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabasePool:
    """A database in the order of one agent: a pool for one truth paper.

    First the included papers, then the other candidates by rank, then the rest by id.
    Indices are those of this order for a paper in it, and follow the ids beyond it.
    """

    order: Mapping[int, int]  #: indices of the included papers and candidates, by id
    lookup: DatabaseLookup  #: of the truth paper to match

    def by_pmid(self, pmid: str) -> Sequence[int]:
        """Return the index of the paper with its PMID."""
        del pmid  # the lookup already used it
        return self._indices(self.lookup.by_pmid)

    def by_doi(self, doi: str) -> Sequence[int]:
        """Return the index of the paper with its DOI."""
        del doi
        return self._indices(self.lookup.by_doi)

    def by_title(self, title: str) -> Iterator[tuple[int, float]]:
        """Yield indices and ratios of papers with a title at the cutoff, in order."""
        del title
        matches = (
            (self.index(paper), ratio) for paper, ratio in self.lookup.by_title.items()
        )
        yield from sorted(matches)

    def index(self, paper: int) -> int:
        """Return the index of a paper."""
        return self.order.get(paper, len(self.order) + paper)

    def _indices(self, paper: int | None) -> Sequence[int]:
        return () if paper is None else (self.index(paper),)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordListPool:
    """Records in their order, looked up by dictionaries: a pool for matching."""

    titles: tuple[str, ...]  #: normalised, one per record
    cutoff: float
    autojunk: bool
    _pmids: Mapping[str, Sequence[int]] = field(repr=False)
    _dois: Mapping[str, Sequence[int]] = field(repr=False)

    @classmethod
    def of(
        cls,
        records: Iterable[AgentRecord],
        normal: Normaliser,
        *,
        cutoff: float,
        autojunk: bool,
    ) -> RecordListPool:
        """Return the pool of *records*, in their order."""
        titles: list[str] = []
        pmids: dict[str, list[int]] = {}
        dois: dict[str, list[int]] = {}
        for index, record in enumerate(records):
            titles.append(normal.title(record.title))
            pmids.setdefault(pmid_of(record.pmid), []).append(index)
            dois.setdefault(normal.doi(record.doi), []).append(index)
        for indices_by_id in (pmids, dois):
            indices_by_id.pop("", None)  # not given
        return cls(
            titles=tuple(titles),
            cutoff=cutoff,
            autojunk=autojunk,
            _pmids=pmids,
            _dois=dois,
        )

    def by_pmid(self, pmid: str) -> Sequence[int]:
        """Return the indices of the records with a PMID, in order."""
        return self._pmids.get(pmid, ())

    def by_doi(self, doi: str) -> Sequence[int]:
        """Return the indices of the records with a DOI, in order."""
        return self._dois.get(doi, ())

    def by_title(self, title: str) -> Iterator[tuple[int, float]]:
        """Yield indices and ratios of the titles at or above the cutoff, in order."""
        return similar_titles(title, self.titles, self.cutoff, autojunk=self.autojunk)


FLOOR = 0.60
"""Least ratio of related titles."""

BAND = 0.05
"""Width of the band below the cutoff in which a person should check a title."""

MOST = 200
"""Most pairs of one truth paper that difflib compares, most similar by rapidfuzz."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NearestTitle:
    """The most similar title below the cutoff."""

    document: str  #: id of its record
    title: str  #: normalised
    ratio: float

    def is_near_miss(self, cutoff: float) -> bool:
        """Return whether it is so close below the cutoff that it may be the paper."""
        # tolerance for 0.85 - 0.05, which is inexact in binary floats
        return self.ratio >= cutoff - BAND - MARGIN


TitleBlock = Sequence[tuple[str, str]]
"""Documents and their normalised titles."""


def nearest_titles(
    titles: Sequence[str], blocks: Iterable[TitleBlock], *, autojunk: bool
) -> list[NearestTitle | None]:
    """Return for each title the most similar one, if any reaches `FLOOR`.

    Of equals, the first one counts.

    Args:
        titles: normalised titles of truth papers; an empty one is near to none.
        blocks: all records, in their order.
        autojunk: as for `ratio`.
    """
    pairs: list[list[tuple[float, int, str, str]]] = [[] for _ in titles]
    start = 0
    for block in blocks:
        similarity = cdist(
            titles,
            [title for _, title in block],
            scorer=Indel.normalized_similarity,
            score_cutoff=FLOOR - MARGIN,
            dtype=np.float64,
        )
        for row, column in zip(*np.nonzero(similarity), strict=True):
            document, title = block[column]
            if titles[row] and title:
                pair = (-similarity[row, column], start + column, document, title)
                pairs[row].append(pair)
        for row, title_pairs in enumerate(pairs):
            pairs[row] = sorted(title_pairs)[:MOST]
        start += len(block)
    return [
        _best(truth, title_pairs, autojunk=autojunk)
        for truth, title_pairs in zip(titles, pairs, strict=True)
    ]


def _best(
    truth: str, pairs: Sequence[tuple[float, int, str, str]], *, autojunk: bool
) -> NearestTitle | None:
    best: tuple[float, int] | None = None
    near = None
    for falling, index, document, title in pairs:
        if best is not None and -falling < -best[0] - MARGIN:
            break
        exact = ratio(truth, title, autojunk=autojunk)
        if exact >= FLOOR and (best is None or (-exact, index) < best):
            best = -exact, index
            near = NearestTitle(document=document, title=title, ratio=exact)
    return near
