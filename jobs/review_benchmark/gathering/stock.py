"""What a database has of a review's studies, whichever model searches it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from jobs.review_benchmark.database.merging import NORMAL
from jobs.review_benchmark.database.reading import Database
from jobs.review_benchmark.dataset import Dataset
from jobs.review_benchmark.matching.lookup import Lookup, looked_up
from jobs.review_benchmark.matching.match import Rules, wanted
from jobs.review_benchmark.matching.nearest import Block, Near, nearest
from jobs.review_benchmark.matching.ratio import JUNK_FROM, MARGIN
from jobs.review_benchmark.matching.rules import Wanted
from jobs.review_benchmark.record import Record
from jobs.review_benchmark.review import Review
from runner.errors import DatasetError

LONGEST = 1 << 31
"""No title has so many characters."""

AT_ONCE = 8192
"""Titles that are held against all missing studies at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stock:
    """A review's studies in the database; one entry for each of them."""

    wanted: tuple[Wanted, ...]
    lookups: tuple[Lookup, ...]
    otherwise: tuple[Lookup, ...] | None
    """Under the other value of `autojunk`; None: it makes no difference."""
    nearest: Mapping[int, Near]  #: by study; of those that are not there
    _database: Database
    _records: dict[int, Record] = field(default_factory=dict, repr=False)

    def record(self, number: int) -> Record:
        """A paper of the database, read once."""
        known = self._records.get(number)
        if known is None:
            known = self._records[number] = self._read(number)
        return known

    def _read(self, number: int) -> Record:
        paper = self._database.paper(number)
        if paper is None:
            raise LookupError(f"The database has no paper {number}.")
        return Record(
            document=str(number),
            pmid=paper.pmid,
            doi=paper.doi,
            title=paper.title,
            year=paper.year,
            other_titles=tuple(
                title
                for title in self._database.titles_of(number)
                if title != NORMAL.title(paper.title)
            ),
        )


def stocks(dataset: Dataset, reviews: Sequence[Review]) -> Mapping[str, Stock]:
    """Look the studies of some reviews up, all of them in one go, by review."""
    rules, database = dataset.settings.rules, dataset.database
    if database is None:
        raise DatasetError("There is no paper database (name one with --database).")
    sought = [
        wanted(paper, rules.normal) for review in reviews for paper in review.studies
    ]
    found = looked_up(
        sought, database, cutoff=rules.title_cutoff, autojunk=rules.autojunk
    )
    other = _otherwise(sought, found, database, rules)
    near = _nearest(sought, found, database, rules)
    made, start = {}, 0
    for review in reviews:
        end = start + len(review.studies)
        own = slice(start, end)
        made[review.id] = Stock(
            wanted=tuple(sought[own]),
            lookups=tuple(found[own]),
            otherwise=None if other[own] == list(found[own]) else tuple(other[own]),
            nearest={
                place: each for place, each in enumerate(near[own]) if each is not None
            },
            _database=database,
        )
        start = end
    return made


def _otherwise(
    sought: Sequence[Wanted], found: Sequence[Lookup], database: Database, rules: Rules
) -> list[Lookup]:
    """The same under the other value of `autojunk`, of titles that it may concern."""
    longest = (2.0 - rules.title_cutoff) / rules.title_cutoff
    concerned = [
        at
        for at, each in enumerate(sought)
        # a title so much longer than this one is the longest that can be alike
        if len(each.title) * longest + MARGIN >= JUNK_FROM
    ]
    again = looked_up(
        [sought[at] for at in concerned],
        database,
        cutoff=rules.title_cutoff,
        autojunk=not rules.autojunk,
    )
    other = list(found)
    for at, each in zip(concerned, again, strict=True):
        other[at] = each
    return other


def _nearest(
    sought: Sequence[Wanted], found: Sequence[Lookup], database: Database, rules: Rules
) -> Sequence[Near | None]:
    missing = [at for at, own in enumerate(found) if own == Lookup()]
    likest = nearest(
        [sought[at].title for at in missing],
        _titles(database) if missing else (),
        autojunk=rules.autojunk,
    )
    near: list[Near | None] = [None] * len(sought)
    for at, each in zip(missing, likest, strict=True):
        near[at] = each
    return near


def _titles(database: Database) -> Iterator[Block]:
    """All titles of the database, with their papers, in blocks."""
    for rows in database.titles_within(0, LONGEST, AT_ONCE):
        yield [(str(number), title) for number, title in rows]
