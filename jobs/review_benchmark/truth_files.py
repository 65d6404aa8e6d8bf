"""Reads and writes published reviews: a folder of `cochrane_{id}.json`.

Input files are written by hand and by many programs: a text may be missing, null or
blank, an identifier a text or a number. PMIDs are kept as written. A review that is
written reads back to the same value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args

import msgspec

from jobs.kit.inputs.cells import kind_of
from jobs.kit.inputs.files import read_json
from jobs.kit.inputs.rows import InputFindings
from jobs.review_benchmark.data import (
    PICO,
    Certainty,
    Direction,
    QuestionParts,
    Review,
    TruthPaper,
    word_of,
)
from jobs.review_benchmark.matching import pmid_of
from runner.errors import DatasetError
from runner.scorecard import Artifact

_Word = TypeVar("_Word", bound=str)


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonFields:
    """An object of an input file."""

    where: str  #: file and place, as an error names them
    values: Mapping[str, Any]

    def error(self, message: str) -> DatasetError:
        """A complaint about this object; *message* ends with the cure."""
        return DatasetError(f"{self.where}: {message}.")

    def text(self, name: str) -> str:
        """A text without outer blanks; empty where it is missing or null."""
        value = self.values.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.error(f"{name} is {kind_of(value)} (a text is expected)")
        return value.strip()

    def identifier(self, name: str) -> str:
        """A text or a whole number, as text; empty where it is missing or null."""
        value = self.values.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float | str | None):
            raise self.error(f"{name} is {kind_of(value)} (put the id in quotes)")
        return "" if value is None else str(value).strip()

    def year(self, name: str) -> int | None:
        """A whole number, also as `1999.0` or "1999"; None where it is not given."""
        value = self.values.get(name)
        if value is None or value == "":
            return None
        try:
            number = float(value) if not isinstance(value, bool) else None
        except (TypeError, ValueError, OverflowError):
            number = None
        if number is None or not number.is_integer():
            raise self.error(f"{name} is {value!r} (a year such as 1999 is expected)")
        return int(number)

    def word(self, name: str, allowed: tuple[_Word, ...]) -> _Word | None:
        """One of some words; None where it is missing, null or blank."""
        text = self.text(name)
        word = word_of(text, allowed)
        if text and word is None:
            raise self.error(f"{name} is {text!r} (use one of {', '.join(allowed)})")
        return word

    def number(self, name: str) -> float | None:
        """A number; None where it is missing or null."""
        value = self.values.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float | None):
            raise self.error(f"{name} is {kind_of(value)} (a number is expected)")
        try:
            return None if value is None else float(value)
        except OverflowError as error:
            raise self.error(f"{name} is too large (correct it)") from error

    def texts(self, name: str) -> tuple[str, ...]:
        """A list of texts without the blank ones; empty where it is missing or null."""
        value = self.values.get(name)
        if value is None:
            return ()
        if not isinstance(value, list):
            raise self.error(f"{name} is {kind_of(value)} (a list is expected)")
        for index, entry in enumerate(value):
            if not isinstance(entry, str):
                raise self.error(
                    f"{name}[{index}] is {kind_of(entry)} (a text is expected)"
                )
        return tuple(text.strip() for text in value if text.strip())

    def object(self, name: str) -> JsonFields | None:
        """An object inside this one; None where it is missing or null."""
        value = self.values.get(name)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.error(f"{name} is {kind_of(value)} (an object is expected)")
        return JsonFields(where=f"{self.where}: {name}", values=value)

    def objects(self, name: str) -> tuple[JsonFields, ...]:
        """The objects in a list; empty where it is missing or null."""
        value = self.values.get(name)
        if value is None:
            return ()
        if not isinstance(value, list):
            raise self.error(f"{name} is {kind_of(value)} (a list is expected)")
        objects = []
        for index, entry in enumerate(value):
            if not isinstance(entry, dict):
                raise self.error(
                    f"{name}[{index}] is {kind_of(entry)} (an object is expected)"
                )
            objects.append(
                JsonFields(where=f"{self.where}: {name}[{index}]", values=entry)
            )
        return tuple(objects)

    def without(self, names: Sequence[str]) -> dict[str, Any]:
        """The fields of other names."""
        excluded = set(names)
        return {
            name: value for name, value in self.values.items() if name not in excluded
        }


def note_bad_pmid(pmid: str, where: str, findings: InputFindings) -> None:
    """Note a PMID in which no number can be read, so that it will match nothing.

    Args:
        pmid: as written; empty where none is given.
        where: the file.
        findings: learns of it.
    """
    if pmid and not pmid_of(pmid):
        findings.add(
            "no_pmid",
            "warn",
            where,
            "PMIDs hold no PubMed number (an id of PubMed Central is none); papers are "
            "matched without them.",
            example=pmid,
        )


PATTERN = "cochrane_*.json"
TEMPLATE = "CD000000"
"""The id of a file that is there to be filled in."""

_NEEDED = ("cochrane_id", "title", "research_question", "included_studies")
_REVIEW = (
    *_NEEDED,
    "pico",
    "inclusion_criteria",
    "exclusion_criteria",
    "authors_conclusion",
    "conclusion_direction",
    "conclusion_certainty",
    "source_url",
    "notes",
    "date_range",
)
_STUDY = ("pmid", "doi", "title", "authors", "year", "cochrane_ref_id", "notes")


def read_truth(folder: Path, findings: InputFindings) -> tuple[Review, ...]:
    """The reviews of a folder, or of one file, ascending by id as text.

    Templates are left out and noted.

    Raises:
        DatasetError: there is none, two have one id, or a file is off.
    """
    reviews: dict[str, tuple[Review, Path]] = {}
    for path in _files(folder):
        fields = _fields(path)
        # before it is read: what is to be filled in may be missing
        if fields.text("cochrane_id") == TEMPLATE:
            findings.add(
                "template_skipped",
                "warn",
                path.name,
                "The file is a template, by its id, and was left out.",
                example=TEMPLATE,
            )
            continue
        review = _review_from(fields)
        if review.id in reviews:
            raise DatasetError(
                f"{path.name}: cochrane_id {review.id} stands in "
                f"{reviews[review.id][1].name} too (remove or correct one)."
            )
        for study in review.studies:
            note_bad_pmid(study.pmid, path.name, findings)
        reviews[review.id] = (review, path)
    if not reviews:
        raise DatasetError(
            f"{folder}: there is no review but templates (add a cochrane_<id>.json)."
        )
    return tuple(reviews[key][0] for key in sorted(reviews))


def read_review(path: Path) -> Review:
    """The review in a file.

    Raises:
        DatasetError: it is not to be read, or lacks or mistakes a field.
    """
    return _review_from(_fields(path))


def _fields(path: Path) -> JsonFields:
    value = read_json(path)
    if not isinstance(value, dict):
        raise DatasetError(f"{path.name}: not an object (one review is expected).")
    return JsonFields(where=path.name, values=value)


def _review_from(fields: JsonFields) -> Review:
    _require(fields)
    return Review(
        id=fields.text("cochrane_id"),
        title=fields.text("title"),
        question=fields.text("research_question"),
        studies=tuple(_study(study) for study in fields.objects("included_studies")),
        pico=_pico(fields.object("pico")),
        inclusion=fields.texts("inclusion_criteria"),
        exclusion=fields.texts("exclusion_criteria"),
        conclusion=fields.text("authors_conclusion"),
        direction=fields.word("conclusion_direction", get_args(Direction)),
        certainty=fields.word("conclusion_certainty", get_args(Certainty)),
        source_url=fields.text("source_url"),
        notes=fields.text("notes"),
        date_range=_years(fields),
        further=fields.without(_REVIEW),
    )


def _files(folder: Path) -> Sequence[Path]:
    if folder.is_file():
        return (folder,)
    if not folder.is_dir():
        raise DatasetError(
            f"{folder}: no such folder (name one of cochrane_<id>.json with --truth)."
        )
    paths = sorted(folder.glob(PATTERN))
    if not paths:
        raise DatasetError(
            f"{folder}: there is no {PATTERN} in it (name another folder with --truth)."
        )
    return paths


def _require(fields: JsonFields) -> None:
    """Complain of all that is missing at once."""
    missing = [
        name
        for name in _NEEDED
        if (value := fields.values.get(name)) is None
        or value == []
        or (isinstance(value, str) and not value.strip())
    ]
    if missing:
        raise fields.error(f"missing or empty: {', '.join(missing)}")


def _study(fields: JsonFields) -> TruthPaper:
    paper = TruthPaper(
        pmid=fields.identifier("pmid"),
        doi=fields.text("doi"),
        title=fields.text("title"),
        authors=fields.texts("authors"),
        year=fields.year("year"),
        ref_id=fields.text("cochrane_ref_id"),
        notes=fields.text("notes"),
        further=fields.without(_STUDY),
    )
    if not (paper.pmid or paper.doi or paper.title):
        raise DatasetError(f"{fields.where} has no pmid, doi or title.")
    return paper


def _pico(fields: JsonFields | None) -> QuestionParts | None:
    return (
        None
        if fields is None
        else QuestionParts(**{name: fields.text(name) for name in PICO})
    )


def _years(fields: JsonFields) -> tuple[int, int] | None:
    value = fields.values.get("date_range")
    if value is None:
        return None
    if (
        not isinstance(value, list)
        or len(value) != 2  # noqa: PLR2004 - from and to
        or not all(
            isinstance(year, int) and not isinstance(year, bool) for year in value
        )
        or value[0] > value[1]
    ):
        raise fields.error(
            f"date_range is {value!r} (two years, from and to, are expected)"
        )
    return value[0], value[1]


def review_to_json(review: Review) -> dict[str, Any]:
    """The object of a `cochrane_{id}.json`; what is not given is left out or null."""
    effect = {
        "conclusion_direction": review.direction,
        "conclusion_certainty": review.certainty,
    }
    return {
        "cochrane_id": review.id,
        "title": review.title,
        "research_question": review.question,
        "pico": None if review.pico is None else asdict(review.pico),
        "inclusion_criteria": list(review.inclusion),
        "exclusion_criteria": list(review.exclusion),
        "date_range": None if review.date_range is None else list(review.date_range),
        "authors_conclusion": review.conclusion or None,
        **{name: word for name, word in effect.items() if word is not None},
        "source_url": review.source_url or None,
        "notes": review.notes or None,
        "included_studies": [study_fields(paper) for paper in review.studies],
        **review.further,
    }


def study_fields(paper: TruthPaper) -> dict[str, Any]:
    """The fields of one entry of `included_studies`; what is not given is left out."""
    fields = {
        "cochrane_ref_id": paper.ref_id,
        "pmid": paper.pmid,
        "doi": paper.doi,
        "title": paper.title,
        "authors": list(paper.authors),
        "year": paper.year,
        "notes": paper.notes,
    }
    return {name: value for name, value in fields.items() if value} | {**paper.further}


def json_file(name: str, value: Mapping[str, Any]) -> Artifact:
    """The file; its keys stay in their order."""
    content = msgspec.json.format(msgspec.json.encode(value), indent=1)
    return Artifact(name=name, text=content.decode() + "\n")
