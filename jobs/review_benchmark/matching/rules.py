"""The rules by which a truth paper gets its record.

Records are seen as a `Pool`: an order, and three ways to look one up. That is all that
matching needs, so a handful of records and a database of a million are matched by the
same lines.

A rule says which of the records that could be a paper's own serve it equally well, in
their order, of which the first one counts: so the same answer holds under any order,
and every threshold, which puts other records first, is matched without matching again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

Method: TypeAlias = Literal["pmid", "doi", "title_fuzzy"]
Matching: TypeAlias = Literal["whole-list", "single-pass"]

METHODS: Mapping[str, Method] = {"pmid": "pmid", "doi": "doi", "title": "title_fuzzy"}
"""How papers are matched, by what they are looked up by: a field of the keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a truth paper is looked up by, in normal form; empty: not given."""

    pmid: str
    doi: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A record of a truth paper."""

    place: int  #: in the order of the pool
    method: Method
    confidence: float  #: the ratio of the titles; 1.0 for identifiers


Hits: TypeAlias = tuple[Hit, ...]
"""Records that serve a truth paper equally well, in their order; the first counts."""


class Pool(Protocol):
    """Records in an order, included ones first."""

    def by_pmid(self, pmid: str) -> Sequence[int]:
        """Places of the records with a PMID, in order; none for an empty one."""
        ...

    def by_doi(self, doi: str) -> Sequence[int]:
        """Places of the records with a DOI, in order; none for an empty one."""
        ...

    def alike(self, title: str) -> Iterator[tuple[int, float]]:
        """Places and ratios of the titles at or above the cutoff, in order."""
        ...


def any_record(wanted: Wanted, pool: Pool) -> Hits:
    """The records with the PMID or the DOI; else all whose title is alike enough.

    Of one record the PMID counts.
    """
    exact = {hit.place: hit for hit in _by_doi(wanted, pool)}
    exact |= {hit.place: hit for hit in _by_pmid(wanted, pool)}
    if exact:
        return tuple(exact[place] for place in sorted(exact))
    return tuple(_titled(place, ratio) for place, ratio in pool.alike(wanted.title))


def whole_list(records: Hits) -> Hits:
    """Those with the PMID; else with the DOI; else with the likest title."""
    for method in ("pmid", "doi"):
        exact = tuple(hit for hit in records if hit.method == method)
        if exact:
            return exact
    best = max((hit.confidence for hit in records), default=None)
    return tuple(hit for hit in records if hit.confidence == best)


def single_pass(records: Hits) -> Hits:
    """All of them, as one pass over the records takes the first that it meets.

    Older benchmarks matched so: a later title is not looked at, however alike.
    """
    return records


RULES: Mapping[Matching, Callable[[Hits], Hits]] = {
    "whole-list": whole_list,
    "single-pass": single_pass,
}
"""Which of the records that could be a paper's own serve it; in their order."""


def _by_pmid(wanted: Wanted, pool: Pool) -> Sequence[Hit]:
    return [_exact(place, "pmid") for place in pool.by_pmid(wanted.pmid)]


def _by_doi(wanted: Wanted, pool: Pool) -> Sequence[Hit]:
    return [_exact(place, "doi") for place in pool.by_doi(wanted.doi)]


def _exact(place: int, method: Method) -> Hit:
    return Hit(place=place, method=method, confidence=1.0)


def _titled(place: int, ratio: float) -> Hit:
    return Hit(place=place, method="title_fuzzy", confidence=ratio)
