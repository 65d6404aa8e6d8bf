"""Measures which truth papers a database has, independently of models.

No agent can find a paper that is missing. `siftlog prepare review-benchmark coverage`
prints the result. Each truth paper is looked up by PMID, then DOI, then title, with the
rule `whole-list` on the papers in the order of their ids.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from jobs.kit.inputs.rows import InputFindings
from jobs.kit.metrics.columns import ratio
from jobs.kit.tables import Columns, TableOf, count, group, number, text
from jobs.kit.text_format import fixed, plural
from jobs.review_benchmark.data import AgentRecord, Review, TruthPaper
from jobs.review_benchmark.database.papers import NORMAL, DatabasePaper
from jobs.review_benchmark.database.reader import PaperDatabase
from jobs.review_benchmark.inputs import ReviewDataset, chosen
from jobs.review_benchmark.lookup import (
    JUNK_FROM,
    MARGIN,
    DatabaseLookup,
    DatabasePool,
    NearestTitle,
    TitleBlock,
    look_up,
    nearest_titles,
)
from jobs.review_benchmark.matching import (
    METHODS,
    LookupKeys,
    MatchingRules,
    Method,
    find_records,
    lookup_keys,
    whole_list,
)
from jobs.review_benchmark.settings import ReviewBenchmarkSettings
from jobs.review_benchmark.truth_files import read_truth
from runner.errors import UsageError
from runner.scorecard import Finding
from runner.table_files import csv_lines
from store.document import NONE, Block, Numbers, TableBlock, Words, as_text


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperInDatabase:
    """A truth paper that the database has."""

    paper: DatabasePaper
    method: Method
    ratio: float  #: of the titles; 1.0 for identifiers


@dataclass(frozen=True, slots=True, kw_only=True)
class PaperCoverage:
    """A truth paper and its match in the database."""

    review: str
    truth: TruthPaper
    present: PaperInDatabase | None


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageCounts:
    """Numbers of truth papers that a database has."""

    truth: int
    pmid: int
    doi: int
    title: int

    @property
    def found(self) -> int:
        """Number of truth papers present, by any key."""
        return self.pmid + self.doi + self.title

    @property
    def share(self) -> float | None:
        """Share of truth papers present; None if there are none."""
        return ratio(self.found, self.truth)


def count_coverage(papers: Sequence[PaperCoverage]) -> CoverageCounts:
    """Count papers by the key that found them."""
    methods = [paper.present.method for paper in papers if paper.present is not None]
    by = {key: methods.count(method) for key, method in METHODS.items()}
    return CoverageCounts(truth=len(papers), **by)


def measure_coverage(
    reviews: Sequence[Review],
    database: PaperDatabase,
    *,
    keys: Collection[str],
    cutoff: float,
    autojunk: bool,
) -> tuple[PaperCoverage, ...]:
    """Look up the truth papers of reviews, in the order of reviews and of their files.

    Args:
        reviews: with the papers.
        database: the papers to search.
        keys: those of `METHODS` that count.
        cutoff: least ratio of titles, inclusive.
        autojunk: as for `matching.ratio.ratio`.
    """
    papers = [(review.id, truth) for review in reviews for truth in review.studies]
    truth_keys = [_only(lookup_keys(truth, NORMAL), keys) for _, truth in papers]
    lookups = look_up(truth_keys, database, cutoff=cutoff, autojunk=autojunk)
    covered = []
    for (review, truth), paper_keys, lookup in zip(
        papers, truth_keys, lookups, strict=True
    ):
        records = find_records(paper_keys, DatabasePool(order={}, lookup=lookup))
        hit = next(iter(whole_list(records)), None)
        # without an agent, a paper's index is its id
        paper = None if hit is None else database.paper(hit.index)
        present = (
            None
            if hit is None or paper is None
            else PaperInDatabase(paper=paper, method=hit.method, ratio=hit.confidence)
        )
        covered.append(PaperCoverage(review=review, truth=truth, present=present))
    return tuple(covered)


def _only(paper_keys: LookupKeys, keys: Collection[str]) -> LookupKeys:
    """Clear all keys but some."""
    return replace(paper_keys, **{key: "" for key in METHODS if key not in keys})


_PRESENT: tuple[Columns[PaperInDatabase], ...] = (
    text("method", lambda present: present.method),
    number("ratio", lambda present: present.ratio),
    count("paper_id", lambda present: present.paper.id),
    text("paper_title", lambda present: present.paper.title),
)
COVERAGE = TableOf[PaperCoverage](
    name="coverage",
    columns=(
        text("review", lambda row: row.review),
        text("ref_id", lambda row: row.truth.ref_id),
        text("pmid", lambda row: row.truth.pmid),
        text("doi", lambda row: row.truth.doi),
        text("title", lambda row: row.truth.title),
        group(_PRESENT, lambda row: row.present),
    ),
)
"""A paper without a method is absent."""

MOST_ABSENT = 10
"""Number of absent papers named in the text; JSON and CSV have all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoverageReport:
    """Coverage as text, JSON and CSV."""

    content_hash: str
    n_papers: int  #: in the database
    papers: tuple[PaperCoverage, ...]  #: by review
    findings: tuple[Finding, ...]

    @property
    def total(self) -> CoverageCounts:
        """Counts over all reviews."""
        return count_coverage(self.papers)

    @property
    def reviews(self) -> dict[str, CoverageCounts]:
        """Counts by review."""
        by_review = groupby(self.papers, key=lambda paper: paper.review)
        return {review: count_coverage(tuple(papers)) for review, papers in by_review}

    @property
    def share(self) -> float | None:
        """Share of truth papers that are present."""
        return self.total.share

    @property
    def lines(self) -> Sequence[str]:
        """CSV of the truth papers."""
        return csv_lines(COVERAGE.lines(self.papers)).removesuffix("\n").split("\n")

    @property
    def json(self) -> dict[str, object]:
        """Every count and every paper."""
        return {
            "database": {"papers": self.n_papers, "content_hash": self.content_hash},
            "total": _counts(self.total),
            "reviews": {review: _counts(n) for review, n in self.reviews.items()},
            "papers": [*map(COVERAGE.fields, self.papers)],
        }

    @property
    def text(self) -> str:
        """Table of reviews, and the papers that are absent."""
        return as_text(_blocks(self))


def coverage(settings: ReviewBenchmarkSettings) -> CoverageReport:
    """Look up the truth papers that the settings name.

    Raises:
        UsageError: the settings name no truth or no database.
        DatasetError: one of them cannot be read, or lacks a named review.
    """
    if settings.truth is None or settings.database is None:
        database_option = (
            "--database FILE, which siftlog prepare review-benchmark import makes"
        )
        missing = "--truth DIR" if settings.truth is None else database_option
        raise UsageError(f"Coverage needs {missing}.")
    findings = InputFindings()
    reviews = chosen(read_truth(settings.truth, findings), settings)
    with closing(PaperDatabase(settings.database)) as database:
        return CoverageReport(
            content_hash=database.content_hash,
            n_papers=len(database),
            papers=measure_coverage(
                reviews,
                database,
                keys=settings.keys,
                cutoff=settings.title_cutoff,
                autojunk=settings.autojunk,
            ),
            findings=findings.findings(),
        )


def _counts(n: CoverageCounts) -> dict[str, Any]:
    by = {"pmid": n.pmid, "doi": n.doi, "title": n.title}
    return {"truth": n.truth, "found": n.found, "share": n.share, **by}


def _blocks(report: CoverageReport) -> Iterator[Block]:
    numbers = ("truth", "found", "share", "by pmid", "doi", "title")
    rows = [
        (name, n.truth, n.found, fixed(n.share, ".1%", NONE), n.pmid, n.doi, n.title)
        for name, n in (*report.reviews.items(), ("all", report.total))
    ]
    yield TableBlock([Words("review"), *map(Numbers, numbers)], rows, indent=0)
    absent = [paper for paper in report.papers if paper.present is None]
    if absent:
        yield f"not among {plural(report.n_papers, 'paper')} of the database:"
    for paper in absent[:MOST_ABSENT]:
        yield f"  {paper.review}  {paper.truth.name}"
    if len(absent) > MOST_ABSENT:
        yield f"  and {len(absent) - MOST_ABSENT:,} more (--out FILE.csv lists all)"
    for finding in report.findings:
        yield f"{finding.severity}: {finding.where}: {finding.message}"


LONGEST = 1 << 31
"""Larger than the number of characters in any title."""

AT_ONCE = 8192
"""Number of titles compared with all missing studies together."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewStock:
    """A review's studies in the database, with one entry for each of them."""

    truth_keys: tuple[LookupKeys, ...]
    lookups: tuple[DatabaseLookup, ...]
    otherwise: tuple[DatabaseLookup, ...] | None
    """Lookups under the other value of `autojunk`; None: it makes no difference."""
    nearest: Mapping[int, NearestTitle]  #: by index of the study, for missing ones
    _database: PaperDatabase
    _records: dict[int, AgentRecord] = field(default_factory=dict, repr=False)

    def record(self, number: int) -> AgentRecord:
        """Return the record of a paper; it is read only once."""
        record = self._records.get(number)
        if record is None:
            record = self._records[number] = self._read(number)
        return record

    def _read(self, number: int) -> AgentRecord:
        paper = self._database.paper(number)
        if paper is None:
            raise LookupError(f"The database has no paper {number}.")
        return AgentRecord(
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


def review_stocks(
    dataset: ReviewDataset, reviews: Sequence[Review]
) -> Mapping[str, ReviewStock]:
    """Look up the studies of several reviews together; return them by review."""
    rules, database = dataset.settings.rules, dataset.papers
    truth_keys = [
        lookup_keys(paper, rules.normal)
        for review in reviews
        for paper in review.studies
    ]
    lookups = look_up(
        truth_keys, database, cutoff=rules.title_cutoff, autojunk=rules.autojunk
    )
    other = _otherwise(truth_keys, lookups, database, rules)
    near = _nearest(truth_keys, lookups, database, rules)
    stocks, start = {}, 0
    for review in reviews:
        end = start + len(review.studies)
        review_slice = slice(start, end)
        stocks[review.id] = ReviewStock(
            truth_keys=tuple(truth_keys[review_slice]),
            lookups=tuple(lookups[review_slice]),
            otherwise=None
            if other[review_slice] == list(lookups[review_slice])
            else tuple(other[review_slice]),
            nearest={
                index: nearest_title
                for index, nearest_title in enumerate(near[review_slice])
                if nearest_title is not None
            },
            _database=database,
        )
        start = end
    return stocks


def _otherwise(
    truth_keys: Sequence[LookupKeys],
    lookups: Sequence[DatabaseLookup],
    database: PaperDatabase,
    rules: MatchingRules,
) -> list[DatabaseLookup]:
    """Look up again with the other value of `autojunk` titles that it may affect."""
    longest = (2.0 - rules.title_cutoff) / rules.title_cutoff
    concerned = [
        at
        for at, keys in enumerate(truth_keys)
        # the longest title that can be alike is this much longer
        if len(keys.title) * longest + MARGIN >= JUNK_FROM
    ]
    again = look_up(
        [truth_keys[at] for at in concerned],
        database,
        cutoff=rules.title_cutoff,
        autojunk=not rules.autojunk,
    )
    other = list(lookups)
    for at, lookup in zip(concerned, again, strict=True):
        other[at] = lookup
    return other


def _nearest(
    truth_keys: Sequence[LookupKeys],
    lookups: Sequence[DatabaseLookup],
    database: PaperDatabase,
    rules: MatchingRules,
) -> Sequence[NearestTitle | None]:
    missing = [at for at, lookup in enumerate(lookups) if lookup == DatabaseLookup()]
    likest = nearest_titles(
        [truth_keys[at].title for at in missing],
        _titles(database) if missing else (),
        autojunk=rules.autojunk,
    )
    near: list[NearestTitle | None] = [None] * len(truth_keys)
    for at, nearest_title in zip(missing, likest, strict=True):
        near[at] = nearest_title
    return near


def _titles(database: PaperDatabase) -> Iterator[TitleBlock]:
    """Yield all titles of the database, with their papers, in blocks."""
    for rows in database.titles_within(0, LONGEST, AT_ONCE):
        yield [(str(number), title) for number, title in rows]
