"""A pool of records that are all in memory: an agent's result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from jobs.review_benchmark.matching.normal import Normal, pmid_of
from jobs.review_benchmark.matching.ratio import alike
from jobs.review_benchmark.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """Records in their order, looked up by dictionaries: a pool for matching."""

    titles: tuple[str, ...]  #: normalised, one a record
    cutoff: float
    autojunk: bool
    _pmids: Mapping[str, Sequence[int]] = field(repr=False)
    _dois: Mapping[str, Sequence[int]] = field(repr=False)

    @classmethod
    def of(
        cls,
        records: Iterable[Record],
        normal: Normal,
        *,
        cutoff: float,
        autojunk: bool,
    ) -> Listed:
        """The pool of *records*, which come in the order that counts."""
        titles: list[str] = []
        pmids: dict[str, list[int]] = {}
        dois: dict[str, list[int]] = {}
        for place, record in enumerate(records):
            titles.append(normal.title(record.title))
            pmids.setdefault(pmid_of(record.pmid), []).append(place)
            dois.setdefault(normal.doi(record.doi), []).append(place)
        for places in (pmids, dois):
            places.pop("", None)  # not given
        return cls(
            titles=tuple(titles),
            cutoff=cutoff,
            autojunk=autojunk,
            _pmids=pmids,
            _dois=dois,
        )

    def by_pmid(self, pmid: str) -> Sequence[int]:
        """Places of the records with a PMID, in order."""
        return self._pmids.get(pmid, ())

    def by_doi(self, doi: str) -> Sequence[int]:
        """Places of the records with a DOI, in order."""
        return self._dois.get(doi, ())

    def alike(self, title: str) -> Iterator[tuple[int, float]]:
        """Places and ratios of the titles at or above the cutoff, in order."""
        return alike(title, self.titles, self.cutoff, autojunk=self.autojunk)
