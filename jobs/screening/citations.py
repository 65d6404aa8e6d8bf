"""Reads citations, who cites whom, and the exclusions that they do not contradict.

Apart from the other tables, because it needs numpy, and a run of a prepared set reads
neither.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from jobs.kit.inputs.files import read_table
from jobs.kit.inputs.rows import InputFindings, RowModel
from jobs.screening.data import ArticleText, Exclusion, Ids, index_in
from jobs.screening.input_tables import ExclusionRow, Id, OptionalId

Indices: TypeAlias = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Citations:
    """Who cites whom: each edge once, as places in two sorted lists of ids."""

    reviews: Ids  #: that cite anything, ascending as text
    papers: Ids  #: that are cited, ascending as text
    review: Indices  #: (E,) place in reviews, ascending
    paper: Indices  #: (E,) place in papers, ascending within a review
    rows: int  #: rows with both ids, duplicates counted

    def has(self, review: str, paper: str) -> bool:
        """Whether a review cites a paper."""
        row, column = index_in(self.reviews, review), index_in(self.papers, paper)
        if row is None or column is None:
            return False
        begin, end = np.searchsorted(self.review, (row, row + 1))
        cited = self.paper[begin:end]
        at = int(np.searchsorted(cited, column))
        return at < len(cited) and int(cited[at]) == column


class CitationRow(RowModel):
    """Who cites whom; a row may name no cited paper."""

    citing_pmid: Id
    ref_pmid: OptionalId


def read_citations(
    path: Path, findings: InputFindings, renamed: Mapping[str, str]
) -> Citations:
    """The edges of a table `citing_pmid`, `ref_pmid`.

    Args:
        path: the table.
        findings: learns of rows without a cited paper.
        renamed: columns of the file by the names used here.

    Raises:
        DatasetError: the table is off, or a row does not say who cites.
    """
    edges = CitationCollector()
    rows = read_table(path, CitationRow, findings=findings, renamed=renamed, unit="row")
    for row in rows:
        if row.ref_pmid:
            edges.add(row.citing_pmid, row.ref_pmid)
        else:
            findings.add(
                "empty_references",
                "info",
                path.name,
                "Rows name no cited paper; they were left out.",
                example=row.place,
            )
    return edges.citations()


class CitationCollector:
    """Collects edges in any order; each id is held once."""

    def __init__(self) -> None:
        self._reviews: dict[str, int] = {}
        self._papers: dict[str, int] = {}
        self._review, self._paper = array("q"), array("q")

    def add(self, review: str, paper: str) -> None:
        """One row of the table."""
        self._review.append(self._reviews.setdefault(review, len(self._reviews)))
        self._paper.append(self._papers.setdefault(paper, len(self._papers)))

    def citations(self) -> Citations:
        """Each edge once, in order of the ids."""
        reviews, review = _sorted_indices(self._reviews, self._review)
        papers, paper = _sorted_indices(self._papers, self._paper)
        # one number an edge: sorted and made unique at once
        width = max(1, len(papers))
        edges = np.unique(review * width + paper)
        return Citations(
            reviews=reviews,
            papers=papers,
            review=edges // width,
            paper=edges % width,
            rows=len(self._review),
        )


def _sorted_indices(seen: Iterable[str], indices: array[int]) -> tuple[Ids, Indices]:
    """Ids in order of text, and places among them instead of in order of sight."""
    ids = list(seen)
    order = sorted(range(len(ids)), key=ids.__getitem__)
    rank = np.empty(len(ids), dtype=np.int64)
    rank[order] = np.arange(len(ids))
    return tuple(ids[at] for at in order), rank[np.frombuffer(indices, dtype=np.int64)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusions:
    """A list of exclusions, and the texts that came with it."""

    exclusions: tuple[Exclusion, ...]  #: one a review and paper, ascending
    texts: Mapping[str, ArticleText]  #: by paper


def read_exclusions(
    path: Path,
    citations: Citations,
    findings: InputFindings,
    renamed: Mapping[str, str],
) -> Exclusions:
    """The exclusions of a table `review_pmid`, `pmid`, `status`, `reason`, ...

    Args:
        path: the table.
        citations: what reviews cite: it stays included.
        findings: learns of papers both included and excluded, and of repetitions.
        renamed: columns of the file by the names used here.

    Raises:
        DatasetError: the table is off; names file and row.
    """
    exclusions: dict[tuple[str, str], Exclusion] = {}
    texts: dict[str, ArticleText] = {}
    rows = read_table(
        path, ExclusionRow, findings=findings, renamed=renamed, unit="row"
    )
    for row in rows:
        exclusion, text = row.exclusion, row.text
        key = exclusion.review, exclusion.paper
        if text.has_abstract and exclusion.paper not in texts:
            texts[exclusion.paper] = text
        if citations.has(*key):
            findings.add(
                "included_and_excluded",
                "warn",
                path.name,
                "A review both includes and excludes a paper; it stays included.",
                example=f"{exclusion.review} {exclusion.paper}",
            )
        if key in exclusions:
            findings.add(
                "repeated_exclusions",
                "info",
                path.name,
                "Rows repeat a review and a paper; the first one counts.",
                example=row.place,
            )
        exclusions.setdefault(key, exclusion)
    return Exclusions(
        exclusions=tuple(exclusions[key] for key in sorted(exclusions)), texts=texts
    )
