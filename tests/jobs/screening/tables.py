"""A small world as the files that `prepare` reads: three reviews, two of them related.

A includes 01 to 3, B includes 3 to 5 and shares 3 with A, C stands alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from jobs.screening.corpus import TABLE_FILES
from tests.csv_files import write_csv

TEXT = ("pmid", "title", "abstract", "year")
EDGES = (
    *(("A", "01"), ("A", "1"), ("A", "3")),
    *(("B", "3"), ("B", "4"), ("B", "5")),
    *(("C", "6"), ("C", "7")),
)
PAPERS = ("01", "1", "3", "4", "5", "6", "7")

OPTIONS = ("--min-included", 2, "--keep-without-negatives")


def text(pmid: str, abstract: str | None = None) -> tuple[str, str, str, str]:
    """A row of a table of texts."""
    said = f"abstract of {pmid}" if abstract is None else abstract
    return pmid, f"Paper {pmid}", said, "1999.0"


def tables(
    folder: Path,
    *,
    reviews: Iterable[object] | None = None,
    edges: Iterable[object] = EDGES,
    papers: Iterable[object] | None = None,
    columns: Mapping[str, tuple[str, ...]] | None = None,
) -> Path:
    """The three tables in a folder; *columns*: headers, by setting."""
    header = {
        "reviews": TEXT,
        "references": ("citing_pmid", "ref_pmid"),
        "papers": TEXT,
        **(columns or {}),
    }
    lines = {
        "reviews": [text(name, "") for name in "ABC"] if reviews is None else reviews,
        "references": edges,
        "papers": map(text, PAPERS) if papers is None else papers,
    }
    for name, file in TABLE_FILES.items():
        write_csv(folder / file, header[name], lines[name])
    return folder
