"""A paper of the database, and what one record of a file says of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """What a record of an imported file says of a paper, as it stands there."""

    source_id: str  #: of the record in its file; its number where it has none
    pmid: str = ""  #: empty: not given
    doi: str = ""
    title: str = ""
    abstract: str = ""
    authors: tuple[str, ...] = ()
    journal: str = ""
    year: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BadEntry:
    """A record that cannot be read."""

    number: int  #: of the record in its file, from 1
    reason: str  #: what is wrong and what to do, without an end


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """Papers that PubMed says to have deleted; they are counted and stay."""

    n: int


Found: TypeAlias = Entry | BadEntry | Deleted
"""What a file holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paper:
    """A paper as the database has it."""

    id: int
    pmid: str = ""  #: normal form; empty: none
    doi: str = ""
    title: str = ""
    abstract: str = ""
    authors: str = ""  #: parted by "; "
    journal: str = ""
    year: int | None = None

    @property
    def has_text(self) -> bool:
        """Whether there is anything to judge it by."""
        return bool(self.title.strip() or self.abstract.strip())

    @property
    def row(self) -> PaperRow:
        """The row of the table that holds it."""
        return (
            self.id,
            self.pmid or None,
            self.doi or None,
            self.title,
            self.abstract,
            self.authors,
            self.journal,
            self.year,
        )


PaperRow: TypeAlias = tuple[int, str | None, str | None, str, str, str, str, int | None]


def paper_of(row: PaperRow) -> Paper:
    """The paper in a row of the table."""
    number, pmid, doi, title, abstract, authors, journal, year = row
    return Paper(
        id=number,
        pmid=pmid or "",
        doi=doi or "",
        title=title,
        abstract=abstract,
        authors=authors,
        journal=journal,
        year=year,
    )
