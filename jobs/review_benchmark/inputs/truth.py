"""Reads published reviews: a folder of `cochrane_{id}.json`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import get_args

from jobs.inputs.files import read_json
from jobs.inputs.rows import InputFindings
from jobs.review_benchmark.answered import Certainty, Direction
from jobs.review_benchmark.inputs.fields import Fields
from jobs.review_benchmark.inputs.pmids import notice_pmid
from jobs.review_benchmark.review import PICO, Pico, Review, TruthPaper
from runner.errors import DatasetError

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


def read_truth(folder: Path, noticed: InputFindings) -> tuple[Review, ...]:
    """The reviews of a folder, or of one file, ascending by id as text.

    Templates are left out and noted.

    Raises:
        DatasetError: there is none, two have one id, or a file is off.
    """
    found: dict[str, tuple[Review, Path]] = {}
    for path in _files(folder):
        fields = _fields(path)
        # before it is read: what is to be filled in may be missing
        if fields.text("cochrane_id") == TEMPLATE:
            noticed.add(
                "template_skipped",
                "warn",
                path.name,
                "The file is a template, by its id, and was left out.",
                example=TEMPLATE,
            )
            continue
        review = _review(fields)
        if review.id in found:
            raise DatasetError(
                f"{path.name}: cochrane_id {review.id} stands in "
                f"{found[review.id][1].name} too (remove or correct one)."
            )
        for study in review.studies:
            notice_pmid(study.pmid, path.name, noticed)
        found[review.id] = (review, path)
    if not found:
        raise DatasetError(
            f"{folder}: there is no review but templates (add a cochrane_<id>.json)."
        )
    return tuple(found[key][0] for key in sorted(found))


def read_review(path: Path) -> Review:
    """The review in a file.

    Raises:
        DatasetError: it is not to be read, or lacks or mistakes a field.
    """
    return _review(_fields(path))


def _fields(path: Path) -> Fields:
    value = read_json(path)
    if not isinstance(value, dict):
        raise DatasetError(f"{path.name}: not an object (one review is expected).")
    return Fields(where=path.name, values=value)


def _review(fields: Fields) -> Review:
    _require(fields)
    return Review(
        id=fields.text("cochrane_id"),
        title=fields.text("title"),
        question=fields.text("research_question"),
        studies=tuple(_study(each) for each in fields.objects("included_studies")),
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
    found = sorted(folder.glob(PATTERN))
    if not found:
        raise DatasetError(
            f"{folder}: there is no {PATTERN} in it (name another folder with --truth)."
        )
    return found


def _require(fields: Fields) -> None:
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


def _study(fields: Fields) -> TruthPaper:
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


def _pico(fields: Fields | None) -> Pico | None:
    return (
        None if fields is None else Pico(**{name: fields.text(name) for name in PICO})
    )


def _years(fields: Fields) -> tuple[int, int] | None:
    value = fields.values.get("date_range")
    if value is None:
        return None
    if (
        not isinstance(value, list)
        or len(value) != 2  # noqa: PLR2004 - from and to
        or not all(
            isinstance(each, int) and not isinstance(each, bool) for each in value
        )
        or value[0] > value[1]
    ):
        raise fields.error(
            f"date_range is {value!r} (two years, from and to, are expected)"
        )
    return value[0], value[1]
