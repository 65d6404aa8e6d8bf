"""Decides which record is a truth paper. Pure; every rule is documented exactly.

Records form a `RecordPool`: an order, and three ways to look one up. Matching needs no
more, so a few records and a database of a million are matched by the same code.

A rule selects, among the records that could be a paper, those that serve it equally
well, in their order; the first one counts. So the same result holds under any order,
and every threshold, which puts other records first, needs no new matching.

If one record may serve only one truth paper, a maximum bipartite matching is grown
record by record along augmenting paths (Kuhn 1955). A record that has claimed a truth
paper always retains one, so those that claim first are served as well as if there were
no others.
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
"""Method of matching by the key that is looked up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LookupKeys:
    """Keys by which a truth paper is looked up, in normal form; empty: not given."""

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
        """Return indices of records with a PMID, in order; none for an empty one."""
        ...

    def by_doi(self, doi: str) -> Sequence[int]:
        """Return indices of records with a DOI, in order; none for an empty one."""
        ...

    def by_title(self, title: str) -> Iterator[tuple[int, float]]:
        """Yield indices and ratios of the titles at or above the cutoff, in order."""
        ...


def find_records(paper_keys: LookupKeys, pool: RecordPool) -> RecordHits:
    """Return the records with the PMID or the DOI; else all with a similar title.

    If a record has both, the PMID counts.
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
    """Return records with the PMID, else the DOI, else the most similar title."""
    for method in ("pmid", "doi"):
        exact = tuple(hit for hit in records if hit.method == method)
        if exact:
            return exact
    best = max((hit.confidence for hit in records), default=None)
    return tuple(hit for hit in records if hit.confidence == best)


def single_pass(records: RecordHits) -> RecordHits:
    """Return all records: one pass over them takes the first.

    Older benchmarks matched this way: later titles are ignored, however similar.
    """
    return records


RULES: Mapping[Matching, Callable[[RecordHits], RecordHits]] = {
    "whole-list": whole_list,
    "single-pass": single_pass,
}
"""Rule that selects the records that serve a paper, in their order."""


LEVELS: Sequence[frozenset[Method]] = (
    frozenset({"pmid"}),
    frozenset({"pmid", "doi"}),
    frozenset({"pmid", "doi", "title_fuzzy"}),
)
"""Methods in the order of certainty: a title never takes a record from a PMID."""


class ClaimMatching:
    """A one-to-one matching of truth papers and records, which claim them in turn."""

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
        """Records that have a truth paper."""
        return self._paper_of.keys()

    def add(self, index: int, methods: frozenset[Method] = LEVELS[-1]) -> bool:
        """Let one more record claim a truth paper.

        Args:
            index: of the record; one that already has a truth paper retains it.
            methods: allowed for it and for the records that make room for it.

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
        """Return the record of each truth paper that has one."""
        return {
            paper: hit
            for paper, index in self._holder.items()
            for claimed, hit in self._claims[index]
            if claimed == paper
        }

    def _hand_over(self, paper: int, reached_by: Mapping[int, int]) -> None:
        """Give a free paper to the record that reached it; pass on its old one."""
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
    """Return the record of each truth paper; a record may serve only one of them.

    Args:
        claimable: of each truth paper, the records that `find_records` returns.
        included: indices of the included records; as many as possible are used.
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
"""Prefixes of a DOI; none is the beginning of another."""


def pmid_of(text: str) -> str:
    """Return a PubMed id: the first ASCII digits, without leading zeros.

    Empty if there is none: no digits, zero, or an id of PubMed Central (`PMC...`),
    which has a different numbering.
    """
    if text.strip().lower().startswith("pmc"):
        return ""
    match = _DIGITS.search(text)
    return match.group().lstrip("0") if match else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Normaliser:
    """Rules for normalising DOIs and titles."""

    punctuation: Punctuation = "blank"  #: replacement of a mark in a title
    strip_dx: bool = True  #: whether `dx.doi.org/` before a DOI is removed

    def doi(self, text: str) -> str:
        """Return a DOI in lower case without resolver or `doi:`, or an empty text.

        Characters after it, such as a full stop, are part of it.
        """
        lowered = text.strip().lower()
        for prefix in (*_DX, *_DOI) if self.strip_dx else _DOI:
            if lowered.startswith(prefix):
                return lowered.removeprefix(prefix).strip()
        return lowered

    def title(self, text: str) -> str:
        """Return a title in lower case, without marks and runs of blanks.

        Accents remain: they are word characters. An empty result matches no title.
        """
        mark = " " if self.punctuation == "blank" else ""
        return " ".join(_MARKS.sub(mark, text.lower()).split())


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchingRules:
    """Rules for matching truth papers with records; comparable runs share them."""

    matching: Matching = "whole-list"
    title_cutoff: float = 0.85  #: least ratio of titles, inclusive
    autojunk: bool = True  #: as in difflib by default
    unique_claims: bool = False  #: one record serves only one truth paper
    normal: Normaliser = field(default_factory=Normaliser)


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedPapers:
    """Truth papers of a review and their records, with one entry for each paper."""

    hits: tuple[RecordHit | None, ...]  #: its record
    serving: tuple[RecordHits, ...]  #: all records that serve it equally well
    claimable: tuple[RecordHits, ...]  #: all records that could be it


def lookup_keys(paper: TruthPaper, normal: Normaliser) -> LookupKeys:
    """Return the keys of a truth paper."""
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

    Papers are matched independently, so that two may have one record, unless the rules
    allow a record to serve only one paper.

    Args:
        truth_keys: keys of the papers.
        pools: the pool of each paper.
        rules: of matching.
        included: indices of the included records.
    """
    claimable = tuple(map(find_records, truth_keys, pools))
    serving = tuple(map(RULES[rules.matching], claimable))
    if rules.unique_claims:
        hits = one_to_one_hits(claimable, included)
    else:
        hits = tuple(records[0] if records else None for records in serving)
    return MatchedPapers(hits=hits, serving=serving, claimable=claimable)
