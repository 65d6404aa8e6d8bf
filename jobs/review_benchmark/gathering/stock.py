"""What a database has of a review's studies, whichever model searches it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from jobs.review_benchmark.database.reading import Database
from jobs.review_benchmark.dataset import Dataset
from jobs.review_benchmark.matching.lookup import BLOCK, Lookup, looked_up
from jobs.review_benchmark.matching.match import wanted
from jobs.review_benchmark.matching.nearest import Block, Near, nearest
from jobs.review_benchmark.matching.rules import Wanted
from jobs.review_benchmark.record import Record
from jobs.review_benchmark.review import Review

LONGEST = 1 << 31
"""No title has so many characters."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stock:
    """A review's studies in the database; one entry for each of them."""

    wanted: tuple[Wanted, ...]
    lookups: tuple[Lookup, ...]
    otherwise: tuple[Lookup, ...] | None
    """Under the other value of `autojunk`; None: it makes no difference."""
    nearest: Mapping[int, Near]  #: by study; of those that are not there
    _database: Database | None
    _records: dict[int, Record] = field(default_factory=dict, repr=False)

    def record(self, number: int) -> Record:
        """A paper of the database."""
        known = self._records.get(number)
        if known is None:
            known = self._records[number] = self._read(number)
        return known

    def _read(self, number: int) -> Record:
        paper = None if self._database is None else self._database.paper(number)
        if paper is None:
            raise LookupError(f"The database has no paper {number}.")
        return Record(
            document=str(number),
            pmid=paper.pmid,
            doi=paper.doi,
            title=paper.title,
            year=paper.year,
        )


def stock(dataset: Dataset, review: Review) -> Stock:
    """Look a review's studies up."""
    rules, database = dataset.rules, dataset.database
    sought = tuple(wanted(paper, rules.normal) for paper in review.studies)
    if database is None:
        nothing = tuple(Lookup() for _ in sought)
        return Stock(
            wanted=sought, lookups=nothing, otherwise=None, nearest={}, _database=None
        )
    found, other = (
        looked_up(sought, database, cutoff=rules.title_cutoff, autojunk=autojunk)
        for autojunk in (rules.autojunk, not rules.autojunk)
    )
    return Stock(
        wanted=sought,
        lookups=found,
        otherwise=None if other == found else other,
        nearest=_nearest(dataset, database, sought, found),
        _database=database,
    )


def _nearest(
    dataset: Dataset,
    database: Database,
    sought: tuple[Wanted, ...],
    lookups: tuple[Lookup, ...],
) -> Mapping[int, Near]:
    missing = [at for at, own in enumerate(lookups) if own == Lookup()]
    found = nearest(
        [sought[at].title for at in missing],
        _titles(database) if missing else (),
        autojunk=dataset.settings.autojunk,
    )
    return {
        at: near for at, near in zip(missing, found, strict=True) if near is not None
    }


def _titles(database: Database) -> Iterator[Block]:
    """All titles of the database, with their papers, in blocks."""
    rows = database.titles_within(0, LONGEST)
    for start in range(0, len(rows), BLOCK):
        yield [(str(number), title) for number, title in rows[start : start + BLOCK]]
