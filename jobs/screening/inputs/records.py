"""Labelled records: one table a review, whose id is the file's name.

Records with label 1 are what the review cites, those with 0 are true exclusions. The
same paper may stand in several files; its first text with an abstract counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from jobs.inputs.files import read_csv
from jobs.inputs.rows import InputFindings, InputRow
from jobs.screening.corpus import Citations, Exclusion, Text
from jobs.screening.inputs.citations import Edges
from jobs.screening.inputs.ids import id_of, read_id
from jobs.screening.inputs.texts import COLUMNS, text_in
from runner.errors import DatasetError

ALIASES = {"pubmedID": "pmid"}
LABELS = ("label_included", "label_abstract_screening")
RECORD = ("pmid", *COLUMNS, *LABELS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """What the files of labelled records say."""

    reviews: Mapping[str, Text]
    """By id, which where it is more than a number is all there is of a title."""
    papers: Mapping[str, Text]
    citations: Citations
    exclusions: tuple[Exclusion, ...]


def read_records(
    paths: Sequence[Path],
    positive: str,
    noticed: InputFindings,
    renamed: Mapping[str, str],
) -> Labelled:
    """The records of all files.

    Args:
        paths: one a review; their order is of no consequence.
        positive: the label that counts as included.
        noticed: learns of papers labelled both ways.
        renamed: columns of the files by the names used here.

    Raises:
        DatasetError: a file is off, or its name is no id or another's too; names file
            and row.
    """
    edges = Edges()
    papers: dict[str, Text] = {}
    excluded: list[Exclusion] = []
    reviews: dict[str, Text] = {}
    other = LABELS[1 - LABELS.index(positive)]
    for review, path in sorted((_review(path), path) for path in paths):
        if review in reviews:
            raise DatasetError(
                f"{path}: another file is called {review} too, and a file's name is "
                "the review's id (rename one)."
            )
        reviews[review] = Text(title="" if review.isdigit() else review)
        seen: dict[str, int] = {}
        rows = read_csv(
            path,
            ("pmid", positive),
            (other, *COLUMNS),
            noticed=noticed,
            aliases=ALIASES,
            renamed=renamed,
            unit="row",
        )
        for row in rows:
            paper, label = read_id(row, "pmid"), row.label(positive)
            _note_order(row, noticed)
            if seen.setdefault(paper, label) != label:
                noticed.add(
                    "included_and_excluded",
                    "warn",
                    path.name,
                    "A review both includes and excludes a paper; it stays included.",
                    example=f"row {row.line}",
                )
            seen[paper] = max(seen[paper], label)
            text = text_in(row)
            if paper not in papers or not papers[paper].has_abstract:
                papers[paper] = text
            if label:
                edges.add(review, paper)
        excluded += (
            Exclusion(review=review, paper=paper)
            for paper, label in seen.items()
            if not label
        )
    return Labelled(
        reviews=reviews,
        papers=papers,
        citations=edges.citations(),
        exclusions=tuple(sorted(excluded, key=lambda each: (each.review, each.paper))),
    )


def _review(path: Path) -> str:
    """The id of the review that a file is about."""
    name = path.name.removesuffix(".gz").removesuffix(".csv")
    try:
        review = id_of(name)
    except ValueError as error:
        raise DatasetError(
            f"--records: the name of a file, the review's id, {error}."
        ) from error
    if not review:
        raise DatasetError(
            f"{path}: the file's name is the review's id, and it is empty (rename it)."
        )
    return review


def _note_order(row: InputRow, noticed: InputFindings) -> None:
    """A record may be included in the end though its abstract was screened out."""
    labels = [row.label(name) for name in LABELS if row.has(name)]
    if labels == [1, 0]:
        noticed.add(
            "included_after_exclusion",
            "info",
            row.file,
            "Records are included in the end though their abstract was excluded.",
            example=f"row {row.line}",
        )
