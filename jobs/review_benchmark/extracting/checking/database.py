"""PMIDs held against the titles that a paper database has for them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol

from jobs.review_benchmark.database.paper import Paper
from jobs.review_benchmark.extracting.checking.flags import Flag
from jobs.review_benchmark.matching.match import Rules
from jobs.review_benchmark.matching.ratio import ratio
from jobs.review_benchmark.review import TruthPaper


class Known(Protocol):
    """Papers by PMID, as a paper database has them."""

    def by_pmid(self, pmid: str) -> int | None:
        """Id of the paper with a PMID, in normal form."""
        ...

    def paper(self, number: int) -> Paper | None:
        """A paper by its id."""
        ...


def other_titles(
    papers: Iterable[TruthPaper], database: Known, rules: Rules
) -> Iterator[Flag]:
    """Papers whose PMID the database knows by a title that does not match."""
    for paper in papers:
        number = database.by_pmid(paper.pmid) if paper.pmid else None
        known = None if number is None else database.paper(number)
        if known is None or not known.title or not paper.title:
            continue
        alike = ratio(
            rules.normal.title(paper.title),
            rules.normal.title(known.title),
            autojunk=rules.autojunk,
        )
        if alike < rules.title_cutoff:
            yield Flag(
                code="pmid_other_title",
                where=paper.name,
                detail=f"{paper.pmid} is {known.title!r}",
            )
