"""The rules by which a truth paper gets its record.

A rule sees records as a `Pool`: an order, and three ways to look one up. That is all
that either rule needs, so a handful of records and a database of a million are matched
by the same lines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

Method: TypeAlias = Literal["pmid", "doi", "title_fuzzy"]
Matching: TypeAlias = Literal["whole-list", "single-pass"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a truth paper is looked up by, in normal form; empty: not given."""

    pmid: str
    doi: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """The record of a truth paper."""

    place: int  #: in the order of the pool
    method: Method
    confidence: float  #: the ratio of the titles; 1.0 for identifiers


class Pool(Protocol):
    """Records in an order, included ones first."""

    def by_pmid(self, pmid: str) -> int | None:
        """Place of the first record with a PMID."""
        ...

    def by_doi(self, doi: str) -> int | None:
        """Place of the first record with a DOI."""
        ...

    def alike(self, title: str) -> Iterator[tuple[int, float]]:
        """Places and ratios of the titles at or above the cutoff, in order."""
        ...


def whole_list(wanted: Wanted, pool: Pool) -> Hit | None:
    """First record with the PMID; else with the DOI; else with the likest title.

    Of equally alike titles the first one counts.
    """
    place = pool.by_pmid(wanted.pmid) if wanted.pmid else None
    if place is not None:
        return Hit(place=place, method="pmid", confidence=1.0)
    place = pool.by_doi(wanted.doi) if wanted.doi else None
    if place is not None:
        return Hit(place=place, method="doi", confidence=1.0)
    best: tuple[int, float] | None = None
    for found in pool.alike(wanted.title):
        if best is None or found[1] > best[1]:
            best = found
    return None if best is None else _titled(best)


def single_pass(wanted: Wanted, pool: Pool) -> Hit | None:
    """One pass over the records, as older benchmarks made it.

    The first record with the PMID or the DOI ends the search, and of one record the
    PMID counts; without any, the first title at the cutoff stays, however alike a later
    one is.
    """
    exact: list[tuple[int, Method]] = []
    place = pool.by_pmid(wanted.pmid) if wanted.pmid else None
    if place is not None:
        exact.append((place, "pmid"))
    place = pool.by_doi(wanted.doi) if wanted.doi else None
    if place is not None:
        exact.append((place, "doi"))
    if exact:
        # min keeps the first of equals: the PMID
        place, method = min(exact, key=lambda found: found[0])
        return Hit(place=place, method=method, confidence=1.0)
    first = next(pool.alike(wanted.title), None)
    return None if first is None else _titled(first)


RULES: Mapping[Matching, Callable[[Wanted, Pool], Hit | None]] = {
    "whole-list": whole_list,
    "single-pass": single_pass,
}


def _titled(found: tuple[int, float]) -> Hit:
    place, ratio = found
    return Hit(place=place, method="title_fuzzy", confidence=ratio)
