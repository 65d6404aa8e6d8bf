"""Reads the tables of `prepare` and `explain`, one reader for each kind of table.

There are tables of texts (`pmid`, `title`, `abstract`, `year`), of references (citing
and cited id), of known exclusions, and a JSONL file of each review's criteria. Ids are
text, without surrounding blanks.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator

from jobs.kit.inputs.cells import (
    BLANK,
    InputCell,
    Trimmed,
    optional_text,
    quote,
    text_of,
    texts_of,
    trimmed,
    word_of,
)
from jobs.kit.inputs.files import read_objects, read_table
from jobs.kit.inputs.rows import InputFindings, RowModel
from jobs.screening.data import (
    REASON_CODES,
    ArticleText,
    Criteria,
    Exclusion,
    Ids,
    Status,
)

SEPARATOR = ":"
"""Separator of review and paper in the key of a task; ids must not have it."""

_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories that no id may have. Invisible characters would make two ids look
alike; control characters also separate the hashed parts of a draw, and lines of
files."""


def id_of(text: str) -> str:
    """Strip an id; "" if it is blank.

    Raises:
        ValueError: it has a forbidden character; the message has the cause and the
            remedy.
    """
    id_text = text.strip()
    if SEPARATOR in id_text:
        raise ValueError(
            f"is {quote(id_text)}, and a colon parts review and paper in the keys of "
            "tasks (rename the id)"
        )
    # nearly all ids are printable, and this test is fast
    if not id_text.isprintable() and any(map(_is_unseen, id_text)):
        raise ValueError(
            f"is {quote(id_text)}, with an invisible character (remove it)"
        )
    return id_text


def _id(cell: InputCell) -> str:
    id_text = id_of(text_of(cell))
    if not id_text:
        raise ValueError(BLANK)
    return id_text


Id = Annotated[str, PlainValidator(_id)]
OptionalId = Annotated[str, PlainValidator(lambda cell: id_of(optional_text(cell)))]


def _is_unseen(character: str) -> bool:
    return unicodedata.category(character) in _UNSEEN


_YEAR = re.compile(r"([0-9]{1,4})(\.0*)?")


def _year(cell: InputCell) -> int | None:
    year = _YEAR.fullmatch(trimmed(cell))
    return int(year[1]) if year else None


class TextRow(RowModel):
    """The columns with the text of a paper or review."""

    title: Trimmed = ""
    abstract: Trimmed = ""
    year: Annotated[int | None, PlainValidator(_year)] = None

    @property
    def text(self) -> ArticleText:
        """The text in the row."""
        return ArticleText(title=self.title, abstract=self.abstract, year=self.year)


class PaperRow(TextRow):
    """A paper or review and its text."""

    pmid: Id


def read_texts(
    path: Path, findings: InputFindings, renamed: Mapping[str, str]
) -> dict[str, ArticleText]:
    """Read the texts of a table by id; the first with an abstract counts.

    Args:
        path: the table.
        findings: receives repeated ids.
        renamed: columns of the file by the names used here.

    Raises:
        DatasetError: the table is invalid; names file and row.
    """
    texts: dict[str, ArticleText] = {}
    rows = read_table(path, PaperRow, findings=findings, renamed=renamed, unit="row")
    for row in rows:
        pmid, text = row.pmid, row.text
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


PICO = ("population", "intervention", "comparison", "outcome")


def _without_nulls(cell: InputCell) -> InputCell:
    if isinstance(cell, dict):
        return {key: text for key, text in cell.items() if text is not None}
    return cell


def _without_blanks(texts: dict[str, str]) -> dict[str, str]:
    return {key: text.strip() for key, text in texts.items() if text.strip()}


def _of_pico(texts: dict[str, str]) -> dict[str, str]:
    for key in texts:
        if key not in PICO:
            raise ValueError(
                f"has a key {key!r} (one of {', '.join(PICO)} is expected)"
            )
    return texts


_Texts = Annotated[dict[str, str], BeforeValidator(_without_nulls)]
_NotBlank = AfterValidator(_without_blanks)


def _criterion_list(cell: InputCell) -> Ids:
    # a single text is one criterion, even if it contains separators
    texts = (cell,) if isinstance(cell, str) else texts_of(cell)
    return tuple(text.strip() for text in texts if text.strip())


_Criterion = Annotated[Ids, PlainValidator(_criterion_list)]


class CriteriaColumns(RowModel):
    """The columns with the criteria of a review."""

    question: Trimmed = ""
    pico: Annotated[_Texts, AfterValidator(_of_pico), _NotBlank] = Field(
        default_factory=dict
    )
    inclusion: _Criterion = ()
    exclusion: _Criterion = ()
    headings: Annotated[_Texts, _NotBlank] = Field(
        default_factory=dict, validation_alias="criteria"
    )

    @property
    def criteria(self) -> Criteria:
        """The criteria of the review."""
        return Criteria(
            question=self.question,
            pico=self.pico,
            inclusion=self.inclusion,
            exclusion=self.exclusion,
            headings=self.headings,
        )


class _CriteriaRow(CriteriaColumns):
    review_pmid: Id


def read_criteria(path: Path, findings: InputFindings) -> dict[str, Criteria]:
    """Read the criteria by review.

    Raises:
        DatasetError: a line is invalid, or a review occurs twice.
    """
    criteria: dict[str, Criteria] = {}
    for row in read_objects(path, _CriteriaRow, findings=findings):
        if row.review_pmid in criteria:
            raise row.error(
                f"review_pmid {row.review_pmid} occurs a second time (remove one)"
            )
        criteria[row.review_pmid] = row.criteria
    return criteria


STATUSES: Mapping[str, Status] = {
    "": "excluded",
    "excluded": "excluded",
    "awaiting": "awaiting",
    "awaiting assessment": "awaiting",
    "ongoing": "ongoing",
}


def _status(cell: InputCell) -> Status:
    status = STATUSES.get(trimmed(cell).lower())
    if status is None:
        expected = ", ".join(filter(None, STATUSES))
        raise ValueError(f"is {trimmed(cell)!r} (one of {expected} is expected)")
    return status


def _reason_code(cell: InputCell) -> str:
    code = trimmed(cell)
    return code and word_of(code, REASON_CODES)


class ExclusionRow(TextRow):
    """A paper that a review has excluded or not decided."""

    review_pmid: Id
    pmid: Id
    status: Annotated[Status, PlainValidator(_status)] = "excluded"
    reason: Trimmed = ""
    reason_code: Annotated[str, PlainValidator(_reason_code)] = ""
    study_id: Trimmed = ""

    @property
    def exclusion(self) -> Exclusion:
        """The exclusion in the row."""
        return Exclusion(
            review=self.review_pmid,
            paper=self.pmid,
            status=self.status,
            reason=self.reason,
            reason_code=self.reason_code,
            study=self.study_id,
        )
