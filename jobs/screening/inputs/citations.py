"""Who cites whom: the table of references as a graph of places."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from jobs.inputs.files import read_csv
from jobs.inputs.rows import InputFindings
from jobs.screening.corpus import Citations, Ids, Places
from jobs.screening.inputs.ids import optional_id, read_id

EDGE = ("citing_pmid", "ref_pmid")


def read_citations(
    path: Path, noticed: InputFindings, renamed: Mapping[str, str]
) -> Citations:
    """The edges of a table `citing_pmid`, `ref_pmid`.

    Args:
        path: the table.
        noticed: learns of rows without a cited paper.
        renamed: columns of the file by the names used here.

    Raises:
        DatasetError: the table is off, or a row does not say who cites.
    """
    edges = Edges()
    for row in read_csv(
        path,
        EDGE,
        noticed=noticed,
        renamed=renamed,
        unit="row",
    ):
        review, paper = read_id(row, "citing_pmid"), optional_id(row, "ref_pmid")
        if paper:
            edges.add(review, paper)
        else:
            noticed.add(
                "empty_references",
                "info",
                path.name,
                "Rows name no cited paper; they were left out.",
                example=f"row {row.line}",
            )
    return edges.citations()


class Edges:
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
        reviews, review = _ranked(self._reviews, self._review)
        papers, paper = _ranked(self._papers, self._paper)
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


def _ranked(seen: Iterable[str], places: array[int]) -> tuple[Ids, Places]:
    """Ids in order of text, and places among them instead of in order of sight."""
    ids = list(seen)
    order = sorted(range(len(ids)), key=ids.__getitem__)
    rank = np.empty(len(ids), dtype=np.int64)
    rank[order] = np.arange(len(ids))
    return tuple(ids[at] for at in order), rank[np.frombuffer(places, dtype=np.int64)]
