"""Reads the tables of `prepare` and `explain`, one reader for each kind of table.

There are tables of texts (`pmid`, `title`, `abstract`, `year`), of references (who
cites whom), of known exclusions, and a JSONL file of each review's criteria. Ids are
texts without the blanks around them.
"""

from __future__ import annotations

import re
import unicodedata
from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jobs.kit.inputs.files import read_csv, read_jsonl
from jobs.kit.inputs.rows import InputFindings, InputRow, kind_of, quote
from jobs.screening.data import (
    REASON_CODES,
    ArticleText,
    Citations,
    Criteria,
    Exclusion,
    Ids,
    Indices,
    Status,
)

SEPARATOR = ":"
"""Between review and paper in the key of a task; no id may hold it."""

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Categories that no id may hold: who reads two ids must see whether they are one, and
control characters also part what is hashed for the draw, and the lines of files."""


def id_of(text: str) -> str:
    """An id without the blanks around it; "" where nothing is left.

    Raises:
        ValueError: it holds what no id may hold; the message says what, and the cure.
    """
    id_text = text.strip()
    if SEPARATOR in id_text:
        raise ValueError(
            f"is {quote(id_text)}, and a colon parts review and paper in the keys of "
            "tasks (rename the id)"
        )
    # nearly all ids are printable, and known to be so at once
    if not id_text.isprintable() and any(map(_is_unseen, id_text)):
        raise ValueError(
            f"is {quote(id_text)}, with an invisible character (remove it)"
        )
    return id_text


def read_id(row: InputRow, name: str) -> str:
    """An id that must be there.

    Raises:
        DatasetError: the cell is empty or blank, or holds what no id may hold.
    """
    id_text = optional_id(row, name)
    if not id_text:
        raise row.error(f"column {name!r} is empty (fill it in or remove the row)")
    return id_text


def optional_id(row: InputRow, name: str) -> str:
    """An id, "" where the cell is empty or blank.

    Raises:
        DatasetError: it holds what no id may hold.
    """
    try:
        return id_of(row.optional_text(name))
    except ValueError as error:
        raise row.error(f"{name} {error}") from error


def _is_unseen(character: str) -> bool:
    return unicodedata.category(character) in _UNSEEN


TEXT_COLUMNS = ("title", "abstract", "year")
_YEAR = re.compile(r"([0-9]{1,4})(\.0*)?")


def read_texts(
    path: Path, findings: InputFindings, renamed: Mapping[str, str]
) -> dict[str, ArticleText]:
    """The texts of a table by id; of several rows the first with an abstract counts.

    Args:
        path: the table.
        findings: learns of repeated ids.
        renamed: columns of the file by the names used here.

    Raises:
        DatasetError: the table is off; names file and row.
    """
    texts: dict[str, ArticleText] = {}
    for row in read_csv(
        path,
        ("pmid",),
        TEXT_COLUMNS,
        findings=findings,
        renamed=renamed,
        unit="row",
    ):
        pmid, text = read_id(row, "pmid"), text_in(row)
        seen = texts.get(pmid)
        if seen is not None:
            findings.add(
                "repeated_rows",
                "info",
                path.name,
                "Rows repeat an id; the first one with an abstract counts.",
                example=pmid,
            )
        if seen is None or (text.has_abstract and not seen.has_abstract):
            texts[pmid] = text
    return texts


def text_in(row: InputRow) -> ArticleText:
    """What a row says of a paper or review."""
    year = _YEAR.fullmatch(row.optional_text("year").strip())
    return ArticleText(
        title=row.optional_text("title").strip(),
        abstract=row.optional_text("abstract").strip(),
        year=int(year[1]) if year else None,
    )


PICO = ("population", "intervention", "comparison", "outcome")
_CRITERIA_FIELDS = ("question", "pico", "inclusion", "exclusion", "criteria")


def read_criteria(path: Path, findings: InputFindings) -> dict[str, Criteria]:
    """Criteria by review.

    Raises:
        DatasetError: a line is off, or names a review for the second time.
    """
    criteria: dict[str, Criteria] = {}
    for row in read_jsonl(path, ("review_pmid",), _CRITERIA_FIELDS, findings=findings):
        review = read_id(row, "review_pmid")
        if review in criteria:
            raise row.error(f"review_pmid {review} occurs a second time (remove one)")
        criteria[review] = criteria_in(row)
    return criteria


def criteria_in(row: InputRow) -> Criteria:
    """What a line says that a review asks for."""
    return Criteria(
        question=row.optional_text("question").strip(),
        pico=_object_of_texts(row, "pico", PICO),
        inclusion=_list_of_texts(row, "inclusion"),
        exclusion=_list_of_texts(row, "exclusion"),
        headings=_object_of_texts(row, "criteria"),
    )


def _object_of_texts(
    row: InputRow, name: str, allowed: tuple[str, ...] = ()
) -> Mapping[str, str]:
    """An object of texts, () where it is missing; only *allowed* keys, if any are."""
    cell = row.fields.get(name)
    if cell is None:
        return {}
    if not isinstance(cell, dict):
        raise row.error(f"{name} is {kind_of(cell)} (an object of texts is expected)")
    fields = {key: value for key, value in cell.items() if value is not None}
    for key, value in fields.items():
        if not isinstance(value, str):
            raise row.error(f"{name}.{key} is {kind_of(value)} (a text is expected)")
        if allowed and key not in allowed:
            raise row.error(
                f"{name} has a key {key!r} (one of {', '.join(allowed)} is expected)"
            )
    return {key: value.strip() for key, value in fields.items() if value.strip()}


def _list_of_texts(row: InputRow, name: str) -> Ids:
    cell = row.fields.get(name)
    # a lone text is one criterion, whatever signs it holds
    texts = (cell,) if isinstance(cell, str) else row.texts(name)
    return tuple(text.strip() for text in texts if text.strip())


CITATION_COLUMNS = ("citing_pmid", "ref_pmid")


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
    for row in read_csv(
        path,
        CITATION_COLUMNS,
        findings=findings,
        renamed=renamed,
        unit="row",
    ):
        review, paper = read_id(row, "citing_pmid"), optional_id(row, "ref_pmid")
        if paper:
            edges.add(review, paper)
        else:
            findings.add(
                "empty_references",
                "info",
                path.name,
                "Rows name no cited paper; they were left out.",
                example=f"row {row.line}",
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


STATUSES: Mapping[str, Status] = {
    "": "excluded",
    "excluded": "excluded",
    "awaiting": "awaiting",
    "awaiting assessment": "awaiting",
    "ongoing": "ongoing",
}
_EXCLUSION_NEEDED = ("review_pmid", "pmid")
_EXCLUSION_OPTIONAL = ("status", "reason", "reason_code", "study_id", *TEXT_COLUMNS)
EXCLUSION_COLUMNS = (*_EXCLUSION_NEEDED, *_EXCLUSION_OPTIONAL)


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
    rows = read_csv(
        path,
        _EXCLUSION_NEEDED,
        _EXCLUSION_OPTIONAL,
        findings=findings,
        renamed=renamed,
        unit="row",
    )
    for row in rows:
        exclusion = _exclusion(row)
        key = exclusion.review, exclusion.paper
        text = text_in(row)
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
                example=f"row {row.line}",
            )
        exclusions.setdefault(key, exclusion)
    return Exclusions(
        exclusions=tuple(exclusions[key] for key in sorted(exclusions)), texts=texts
    )


def _exclusion(row: InputRow) -> Exclusion:
    written = row.optional_text("status").strip()
    status = STATUSES.get(written.lower())
    if status is None:
        expected = ", ".join(filter(None, STATUSES))
        raise row.error(f"status is {written!r} (one of {expected} is expected)")
    code = row.optional_text("reason_code").strip()
    if code and code not in REASON_CODES:
        raise row.error(
            f"reason_code is {code!r} (one of {', '.join(REASON_CODES)} is expected)"
        )
    return Exclusion(
        review=read_id(row, "review_pmid"),
        paper=read_id(row, "pmid"),
        status=status,
        reason=row.optional_text("reason").strip(),
        reason_code=code,
        study=row.optional_text("study_id").strip(),
    )
