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


@dataclass(frozen=True, slots=True, kw_only=True)
class Sought:
    """A record in normal form: what is looked for, and what it would be as a paper."""

    paper: Paper  #: its id is 0
    title: str  #: normal form
    source_id: str  #: of the record in its file

    @property
    def has_ids(self) -> bool:
        """Whether it has a PMID or a DOI; such a record is not known by its title."""
        return bool(self.paper.pmid or self.paper.doi)


def sought(entry: Entry) -> Sought:
    """A record in normal form."""
    return Sought(
        paper=Paper(
            id=0,
            pmid=pmid_of(entry.pmid),
            doi=NORMAL.doi(entry.doi),
            title=entry.title.strip(),
            abstract=entry.abstract.strip(),
            authors="; ".join(entry.authors),
            journal=entry.journal.strip(),
            year=entry.year,
        ),
        title=NORMAL.title(entry.title),
        source_id=entry.source_id,
    )


class Known(Protocol):
    """The papers so far."""

    def by_pmid(self, pmid: str) -> Paper | None:
        """The paper with a PMID."""
        ...

    def by_doi(self, doi: str) -> Paper | None:
        """The paper with a DOI."""
        ...

    def by_title(self, record: Sought) -> Paper | None:
        """The first paper with a record's title and year; a missing one equals none.

        Before all others comes the paper that this very record is known to be of: its
        year and the titles of others may have changed since.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """Where a record goes."""

    before: Paper | None  #: the paper that it is merged into; None: a new one
    after: Paper  #: what the paper is then; its id is 0 where it is new
    by: By | None = None  #: how the two were found to be one
    is_conflict: bool = False  #: its DOI belongs to another paper, and was left out


def merged(record: Sought, known: Known) -> Merged:
    """Where a record goes."""
    made = record.paper
    owner = known.by_doi(made.doi) if made.doi else None
    found, by = _found(record, owner, known)
    is_conflict = owner is not None and owner != found
    if is_conflict:
        made = replace(made, doi="")
    return Merged(
        before=found,
        after=made if found is None else _filled(found, made),
        by=by,
        is_conflict=is_conflict,
    )


def _found(
    record: Sought, owner: Paper | None, known: Known
) -> tuple[Paper | None, By | None]:
    pmid = record.paper.pmid
    same = known.by_pmid(pmid) if pmid else None
    if same is not None:
        return same, "pmid"
    if owner is not None and not (pmid and owner.pmid):
        return owner, "doi"
    if record.title and not record.has_ids:
        same = known.by_title(record)
        return same, None if same is None else "title"
    return None, None


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
