"""`siftlog prepare review-benchmark coverage`: what of the truth the database lacks."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from jobs.inputs.rows import InputFindings
from jobs.review_benchmark.database.reading import Database
from jobs.review_benchmark.inputs.load import chosen
from jobs.review_benchmark.inputs.truth import read_truth
from jobs.review_benchmark.measuring.coverage import Counts, Covered, counts, covered
from jobs.review_benchmark.settings import Settings
from jobs.text import TextColumn, one_line, plural, text_table
from runner.errors import UsageError
from runner.scorecard import Finding

COLUMNS = (
    *("review", "ref_id", "pmid", "doi", "title"),
    *("method", "ratio", "paper_id", "paper_title"),
)
"""Of the CSV; a paper without a method is absent."""

SHOWN = 10
"""Absent papers that the text names; JSON and CSV have all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """The result, for people and for programs."""

    content_hash: str
    n_papers: int  #: in the database
    papers: tuple[Covered, ...]  #: by review
    findings: tuple[Finding, ...]

    @property
    def total(self) -> Counts:
        """Over all reviews."""
        return counts(self.papers)

    @property
    def reviews(self) -> dict[str, Counts]:
        """By review."""
        by_review = groupby(self.papers, key=lambda each: each.review)
        return {review: counts(tuple(papers)) for review, papers in by_review}

    @property
    def share(self) -> float | None:
        """Truth papers that are present, of all."""
        return self.total.share

    @property
    def lines(self) -> Sequence[str]:
        """A CSV of the truth papers."""
        written = io.StringIO()
        rows = csv.DictWriter(written, COLUMNS, lineterminator="\n")
        rows.writeheader()
        rows.writerows(_row(each) for each in self.papers)
        return written.getvalue().removesuffix("\n").split("\n")

    @property
    def json(self) -> dict[str, object]:
        """Every count and every paper."""
        return {
            "database": {"papers": self.n_papers, "content_hash": self.content_hash},
            "total": _counts(self.total),
            "reviews": {review: _counts(n) for review, n in self.reviews.items()},
            "papers": [_row(each) for each in self.papers],
        }

    @property
    def text(self) -> str:
        """A table of reviews, and the papers that are absent."""
        return "\n".join(_lines(self))


def coverage(settings: Settings) -> Coverage:
    """Look up the truth papers that the settings name.

    Raises:
        UsageError: they name no truth or no database.
        DatasetError: one of them is not to be read, or has no review that is named.
    """
    if settings.truth is None or settings.database is None:
        made = "--database FILE, which siftlog prepare review-benchmark import makes"
        missing = "--truth DIR" if settings.truth is None else made
        raise UsageError(f"Coverage needs {missing}.")
    noticed = InputFindings()
    reviews = chosen(read_truth(settings.truth, noticed), settings)
    with closing(Database(settings.database)) as database:
        return Coverage(
            content_hash=database.content_hash,
            n_papers=len(database),
            papers=covered(
                reviews,
                database,
                keys=settings.keys,
                cutoff=settings.title_cutoff,
                autojunk=settings.autojunk,
            ),
            findings=noticed.findings(),
        )


def _counts(n: Counts) -> dict[str, Any]:
    by = {"pmid": n.pmid, "doi": n.doi, "title": n.title}
    return {"truth": n.truth, "found": n.found, "share": n.share, **by}


def _row(each: Covered) -> dict[str, Any]:
    truth, present = each.truth, each.present
    return {
        "review": each.review,
        "ref_id": truth.ref_id,
        "pmid": truth.pmid,
        "doi": truth.doi,
        "title": truth.title,
        "method": present and present.method,
        "ratio": present and present.ratio,
        "paper_id": present and present.paper.id,
        "paper_title": present and present.paper.title,
    }


def _lines(found: Coverage) -> Iterator[str]:
    rows = [*found.reviews.items(), ("all", found.total)]
    yield from text_table(
        [
            TextColumn(
                title="review", cells=[name for name, _ in rows], has_words=True
            ),
            TextColumn(title="truth", cells=[f"{n.truth:,}" for _, n in rows]),
            TextColumn(title="found", cells=[f"{n.found:,}" for _, n in rows]),
            TextColumn(title="share", cells=[_percent(n.share) for _, n in rows]),
            TextColumn(title="by pmid", cells=[f"{n.pmid:,}" for _, n in rows]),
            TextColumn(title="doi", cells=[f"{n.doi:,}" for _, n in rows]),
            TextColumn(title="title", cells=[f"{n.title:,}" for _, n in rows]),
        ],
        indent="",
    )
    absent = [each for each in found.papers if each.present is None]
    if absent:
        yield f"not among {plural(found.n_papers, 'paper')} of the database:"
    for each in absent[:SHOWN]:
        yield f"  {each.review}  {one_line(each.truth.name)}"
    if len(absent) > SHOWN:
        yield f"  and {len(absent) - SHOWN:,} more (--out FILE.csv lists all)"
    for finding in found.findings:
        yield f"{finding.severity}: {finding.where}: {finding.message}"


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{share:.1%}"
