"""Reads citation edges, and the exclusions that they do not contradict.

It is separate from the other tables because it needs numpy, and a run of a prepared set
reads neither.
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
    """Citation edges, each once, as indices into two sorted lists of ids."""

    reviews: Ids  #: that cite any paper, ascending as text
    papers: Ids  #: that are cited, ascending as text
    review: Indices  #: (E,) index into reviews, ascending
    paper: Indices  #: (E,) index into papers, ascending within a review
    rows: int  #: rows with both ids, duplicates counted

    def has(self, review: str, paper: str) -> bool:
        """Return whether a review cites a paper."""
        row, column = index_in(self.reviews, review), index_in(self.papers, paper)
        if row is None or column is None:
            return False
        begin, end = np.searchsorted(self.review, (row, row + 1))
        cited = self.paper[begin:end]
        at = int(np.searchsorted(cited, column))
        return at < len(cited) and int(cited[at]) == column


class CitationRow(RowModel):
    """An edge from a review to a paper it cites; the cited paper may be missing."""

    citing_pmid: Id
    ref_pmid: OptionalId


def read_citations(
    path: Path, findings: InputFindings, renamed: Mapping[str, str]
) -> Citations:
    """Read the edges of a table `citing_pmid`, `ref_pmid`.

    Args:
        path: the table.
        findings: receives rows without a cited paper.
        renamed: columns of the file by the names used here.

    Raises:
        DatasetError: the table is invalid, or a row has no citing id.
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
    """Collects edges in any order; each id is stored once."""

    def __init__(self) -> None:
        self._reviews: dict[str, int] = {}
        self._papers: dict[str, int] = {}
        self._review, self._paper = array("q"), array("q")

    def add(self, review: str, paper: str) -> None:
        """Add one row of the table."""
        self._review.append(self._reviews.setdefault(review, len(self._reviews)))
        self._paper.append(self._papers.setdefault(paper, len(self._papers)))

    def citations(self) -> Citations:
        """Return each edge once, in order of the ids."""
        reviews, review = _sorted_indices(self._reviews, self._review)
        papers, paper = _sorted_indices(self._papers, self._paper)
        # one number per edge, so that one call sorts and removes duplicates
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
    """Return the ids in order of text, and the indices remapped to that order."""
    ids = list(seen)
    order = sorted(range(len(ids)), key=ids.__getitem__)
    rank = np.empty(len(ids), dtype=np.int64)
    rank[order] = np.arange(len(ids))
    return tuple(ids[at] for at in order), rank[np.frombuffer(indices, dtype=np.int64)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Exclusions:
    """A list of exclusions, with the texts in it."""

    exclusions: tuple[Exclusion, ...]  #: one per review and paper, ascending
    texts: Mapping[str, ArticleText]  #: by paper


def read_exclusions(
    path: Path,
    citations: Citations,
    findings: InputFindings,
    renamed: Mapping[str, str],
) -> Exclusions:
    """Read the exclusions of a table `review_pmid`, `pmid`, `status`, `reason`, ...

    Args:
        path: the table.
        citations: edges; cited papers stay included.
        findings: receives papers both included and excluded, and repetitions.
        renamed: columns of the file by the names used here.

    Raises:
        DatasetError: the table is invalid; names file and row.
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
