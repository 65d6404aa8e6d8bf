"""What is wrong with an extraction: any of it makes a person look."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Code: TypeAlias = Literal[
    "not_grounded",
    "doi_removed",
    "pmid_removed",
    "year_removed",
    "id_removed",
    "no_title",
    "unread",
    "study_count",
    "pmid_other_title",
    "section_not_found",
    "no_answer",
    "unusable",
    "missing",
]

MEANINGS: Final[Mapping[Code, str]] = {
    "not_grounded": "does not stand in the text and was dropped",
    "doi_removed": "DOI that is not in its reference was removed",
    "pmid_removed": "PMID that is not in its reference was removed",
    "year_removed": "year that is not in its reference was removed",
    "id_removed": "study's name that is not in its reference was removed",
    "no_title": "reference without title or identifier was dropped",
    "unread": "entry of the list that no answer gives",
    "study_count": "number of studies differs from the abstract's",
    "pmid_other_title": "PMID has another title in the paper database",
    "section_not_found": "section was found neither by heading nor by the model",
    "no_answer": "question has no readable answer",
    "unusable": "entries of an answer that are no objects",
    "missing": "field that a truth file needs is empty",
}
"""What each code says, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One thing that a person should look at."""

    code: Code
    where: str  #: field, reference or section
    detail: str = ""  #: the value that was meant, or both
