"""Decides which record is a truth paper. Pure, and documented to the character.

Records are seen as a `RecordPool`: an order, and three ways to look one up. That is all
that matching needs, so a handful of records and a database of a million are matched by
the same lines.

A rule says which of the records that could be a paper's own serve it equally well, in
their order, of which the first one counts: so the same answer holds under any order,
and every threshold, which puts other records first, is matched without matching again.

Where one record may serve only one truth paper, a maximum bipartite matching is grown
record by record along augmenting paths (Kuhn 1955). A record that has claimed a truth
paper never goes without one again, so those that claim first are served as well as if
there were no others.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from jobs.review_benchmark.data import TruthPaper

Method: TypeAlias = Literal["pmid", "doi", "title_fuzzy"]
Matching: TypeAlias = Literal["whole-list", "single-pass"]

METHODS: Mapping[str, Method] = {"pmid": "pmid", "doi": "doi", "title": "title_fuzzy"}
"""How papers are matched, by what they are looked up by: a field of the keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupKeys:
    """What a truth paper is looked up by, in normal form; empty: not given."""

    pmid: str
    doi: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordHit:
    """A record of a truth paper."""

    index: int  #: in the order of the pool
    method: Method
    confidence: float  #: the ratio of the titles; 1.0 for identifiers


RecordHits: TypeAlias = tuple[RecordHit, ...]
"""Records that serve a truth paper equally well, in their order; the first counts."""


class RecordPool(Protocol):
    """Records in an order, included ones first."""

    def by_pmid(self, pmid: str) -> Sequence[int]:
        """Places of the records with a PMID, in order; none for an empty one."""
        ...

    def by_doi(self, doi: str) -> Sequence[int]:
        """Places of the records with a DOI, in order; none for an empty one."""
        ...

    def by_title(self, title: str) -> Iterator[tuple[int, float]]:
        """Places and ratios of the titles at or above the cutoff, in order."""
        ...


def find_records(paper_keys: LookupKeys, pool: RecordPool) -> RecordHits:
    """The records with the PMID or the DOI; else all whose title is alike enough.

    Of one record the PMID counts.
    """
    by_id: Sequence[tuple[Method, Sequence[int]]] = (
        ("doi", pool.by_doi(paper_keys.doi)),
        ("pmid", pool.by_pmid(paper_keys.pmid)),
    )
    exact = {
        index: RecordHit(index=index, method=method, confidence=1.0)
        for method, indices in by_id
        for index in indices
    }
    if exact:
        return tuple(exact[index] for index in sorted(exact))
    return tuple(
        RecordHit(index=index, method="title_fuzzy", confidence=ratio)
        for index, ratio in pool.by_title(paper_keys.title)
    )


def whole_list(records: RecordHits) -> RecordHits:
    """Those with the PMID; else with the DOI; else with the likest title."""
    for method in ("pmid", "doi"):
        exact = tuple(hit for hit in records if hit.method == method)
        if exact:
            return exact
    best = max((hit.confidence for hit in records), default=None)
    return tuple(hit for hit in records if hit.confidence == best)


def single_pass(records: RecordHits) -> RecordHits:
    """All of them, as one pass over the records takes the first that it meets.

    Older benchmarks matched so: a later title is not looked at, however alike.
    """
    return records


RULES: Mapping[Matching, Callable[[RecordHits], RecordHits]] = {
    "whole-list": whole_list,
    "single-pass": single_pass,
}
"""Which of the records that could be a paper's own serve it; in their order."""


LEVELS: Sequence[frozenset[Method]] = (
    frozenset({"pmid"}),
    frozenset({"pmid", "doi"}),
    frozenset({"pmid", "doi", "title_fuzzy"}),
)
"""What counts, from the surest on: a title never takes what a PMID could have."""


class ClaimMatching:
    """Truth papers and the records that claim them, one by one."""

    def __init__(self, claimable: Sequence[RecordHits]) -> None:
        claims: dict[int, list[tuple[int, RecordHit]]] = {}
        for paper, hits in enumerate(claimable):
            for hit in hits:
                claims.setdefault(hit.index, []).append((paper, hit))
        for record_claims in claims.values():
            record_claims.sort(key=lambda claim: (-claim[1].confidence, claim[0]))
        self._claims: Mapping[int, Sequence[tuple[int, RecordHit]]] = claims
        self._holder: dict[int, int] = {}  # the record of each truth paper
        self._paper_of: dict[int, int] = {}  # the truth paper of each record

    def __len__(self) -> int:
        return len(self._holder)

    @property
    def matched_indices(self) -> Collection[int]:
        """The records that have a truth paper."""
        return self._paper_of.keys()

    def add(self, index: int, methods: frozenset[Method] = LEVELS[-1]) -> bool:
        """Let one more record claim a truth paper.

        Args:
            index: of the record; one that has a truth paper already keeps it.
            methods: by which it and those that make room for it may be matched.

        Returns:
            Whether one more truth paper is served.
        """
        if index in self._paper_of:
            return False
        reached_by: dict[int, int] = {}
        waiting = deque([index])
        while waiting:
            record = waiting.popleft()
            for paper, hit in self._claims.get(record, ()):
                if paper in reached_by or hit.method not in methods:
                    continue
                reached_by[paper] = record
                holder = self._holder.get(paper)
                if holder is None:
                    self._hand_over(paper, reached_by)
                    return True
                waiting.append(holder)
        return False

    def hits(self) -> Mapping[int, RecordHit]:
        """The record of each truth paper that has one."""
        return {
            paper: hit
            for paper, index in self._holder.items()
            for claimed, hit in self._claims[index]
            if claimed == paper
        }

    def _hand_over(self, paper: int, reached_by: Mapping[int, int]) -> None:
        """Give a free paper to the record that reached it, and its own one on."""
        at: int | None = paper
        while at is not None:
            record = reached_by[at]
            before = self._paper_of.get(record)
            self._holder[at] = record
            self._paper_of[record] = at
            at = before


def one_to_one_hits(
    claimable: Sequence[RecordHits], included: Collection[int]
) -> tuple[RecordHit | None, ...]:
    """The record of each truth paper, where one record may serve one of them only.

    Args:
        claimable: of each truth paper, the records that `find_records` finds.
        included: places of the included records; as many of them as can be are used.
    """
    claims = ClaimMatching(claimable)
    indices = sorted({hit.index for hits in claimable for hit in hits})
    groups: Iterable[Sequence[int]] = (
        [index for index in indices if index in included],
        [index for index in indices if index not in included],
    )
    for group in groups:
        for methods in LEVELS:
            for index in group:
                claims.add(index, methods)
    hits = claims.hits()
    return tuple(hits.get(paper) for paper in range(len(claimable)))


Punctuation: TypeAlias = Literal["blank", "delete"]

_DIGITS = re.compile(r"[0-9]+")
_MARKS = re.compile(r"[^\w\s]")

_DX = ("https://dx.doi.org/", "http://dx.doi.org/", "dx.doi.org/")
_DOI = ("https://doi.org/", "http://doi.org/", "doi.org/", "doi:")
"""What may stand before a DOI; no prefix is the beginning of another."""


def pmid_of(text: str) -> str:
    """A PubMed id: the first run of ASCII digits, as a number without leading zeros.

    Empty where there is none: no digits, zero, or an id of PubMed Central (`PMC...`),
    which counts otherwise.
    """
    if text.strip().lower().startswith("pmc"):
        return ""
    match = _DIGITS.search(text)
    return match.group().lstrip("0") if match else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Normaliser:
    """How DOIs and titles are normalised."""

    punctuation: Punctuation = "blank"  #: what a mark in a title becomes
    strip_dx: bool = True  #: whether `dx.doi.org/` before a DOI is removed

    def doi(self, text: str) -> str:
        """A DOI in lower case without resolver or `doi:`; empty where there is none.

        What stands after it, such as a full stop, belongs to it.
        """
        lowered = text.strip().lower()
        for prefix in (*_DX, *_DOI) if self.strip_dx else _DOI:
            if lowered.startswith(prefix):
                return lowered.removeprefix(prefix).strip()
        return lowered

    def title(self, text: str) -> str:
        """A title in lower case, with neither marks nor runs of blanks.

        Accents stay: they are word characters. Empty where nothing is left, and such a
        title is alike to none.
        """
        mark = " " if self.punctuation == "blank" else ""
        return " ".join(_MARKS.sub(mark, text.lower()).split())


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchingRules:
    """How truth papers are matched with records; part of what makes runs comparable."""

    matching: Matching = "whole-list"
    title_cutoff: float = 0.85  #: least ratio of titles, inclusive
    autojunk: bool = True  #: as difflib has it by default
    unique_claims: bool = False  #: one record serves one truth paper only
    normal: Normaliser = field(default_factory=Normaliser)


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedPapers:
    """The truth papers of a review and their records; one entry for each paper."""

    hits: tuple[RecordHit | None, ...]  #: its record
    serving: tuple[RecordHits, ...]  #: all records that the rule calls equally good
    claimable: tuple[RecordHits, ...]  #: all records that could be its own


def lookup_keys(paper: TruthPaper, normal: Normaliser) -> LookupKeys:
    """What a truth paper is looked up by."""
    return LookupKeys(
        pmid=pmid_of(paper.pmid),
        doi=normal.doi(paper.doi),
        title=normal.title(paper.title),
    )


def match_papers(
    truth_keys: Sequence[LookupKeys],
    pools: Sequence[RecordPool],
    rules: MatchingRules,
    included: Collection[int],
) -> MatchedPapers:
    """Match truth papers with records.

    Each is matched on its own, so that two may have one record, unless the rules have
    it that a record serves one paper only.

    Args:
        truth_keys: what the papers are looked up by.
        pools: where; one for each of them.
        rules: how.
        included: places of the included records.
    """
    claimable = tuple(map(find_records, truth_keys, pools))
    serving = tuple(map(RULES[rules.matching], claimable))
    if rules.unique_claims:
        hits = one_to_one_hits(claimable, included)
    else:
        hits = tuple(records[0] if records else None for records in serving)
    return MatchedPapers(hits=hits, serving=serving, claimable=claimable)
