"""Whether a record is a paper that the database has: pure, in the order of certainty.

By PMID; else by DOI, unless both have different PMIDs; else, for a record with neither,
by title and year. The first value of a field stands, blanks are filled, and every title
is kept: had a merge dropped the second title, truth papers of that title would be lost.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, Protocol, TypeAlias

from jobs.review_benchmark.database.paper import Entry, Paper
from jobs.review_benchmark.matching.normal import Normal, pmid_of

NORMAL = Normal()
"""The database holds identifiers and titles in the default normal form."""

By: TypeAlias = Literal["pmid", "doi", "title"]


class Known(Protocol):
    """The papers so far."""

    def by_pmid(self, pmid: str) -> Paper | None:
        """The paper with a PMID."""
        ...

    def by_doi(self, doi: str) -> Paper | None:
        """The paper with a DOI."""
        ...

    def by_title(self, title: str, year: int | None) -> Paper | None:
        """The first paper with a title and a year; a missing one equals none."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """Where a record goes."""

    before: Paper | None  #: the paper that it is merged into; None: a new one
    after: Paper  #: what the paper is then; its id is 0 where it is new
    title: str  #: normal form of the record's own title
    by: By | None = None  #: how the two were found to be one
    is_conflict: bool = False  #: its DOI belongs to another paper, and was left out


def merged(entry: Entry, known: Known) -> Merged:
    """Where a record goes."""
    made = _paper(entry)
    title = NORMAL.title(entry.title)
    owner = known.by_doi(made.doi) if made.doi else None
    found, by = _found(made, title, owner, known)
    is_conflict = owner is not None and owner != found
    if is_conflict:
        made = replace(made, doi="")
    return Merged(
        before=found,
        after=made if found is None else _filled(found, made),
        title=title,
        by=by,
        is_conflict=is_conflict,
    )


def _found(
    made: Paper, title: str, owner: Paper | None, known: Known
) -> tuple[Paper | None, By | None]:
    same = known.by_pmid(made.pmid) if made.pmid else None
    if same is not None:
        return same, "pmid"
    if owner is not None and not (made.pmid and owner.pmid):
        return owner, "doi"
    if title and not (made.pmid or made.doi):
        same = known.by_title(title, made.year)
        return same, None if same is None else "title"
    return None, None


def _paper(entry: Entry) -> Paper:
    return Paper(
        id=0,
        pmid=pmid_of(entry.pmid),
        doi=NORMAL.doi(entry.doi),
        title=entry.title.strip(),
        abstract=entry.abstract.strip(),
        authors="; ".join(entry.authors),
        journal=entry.journal.strip(),
        year=entry.year,
    )


def _filled(old: Paper, new: Paper) -> Paper:
    """The old paper, its blanks filled from the new one."""
    return Paper(
        id=old.id,
        pmid=old.pmid or new.pmid,
        doi=old.doi or new.doi,
        title=old.title or new.title,
        abstract=old.abstract or new.abstract,
        authors=old.authors or new.authors,
        journal=old.journal or new.journal,
        year=new.year if old.year is None else old.year,
    )
