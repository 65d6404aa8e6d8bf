"""Reads and writes published reviews: a folder of `cochrane_{id}.json`, or JSONL.

Input files are written by hand and by many programs: a text may be missing, null or
blank, an identifier a text or a number. PMIDs keep their notation. A written review
reads back to the same value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, Any

import msgspec
from pydantic import TypeAdapter

from jobs.kit.inputs.files import entries_in, read_json
from jobs.kit.inputs.rows import InputFindings, validated_value
from jobs.review_benchmark.data import Review, TruthPaper, keeping_unknown
from jobs.review_benchmark.matching import pmid_of
from runner.errors import DatasetError
from runner.scorecard import Artifact


def note_bad_pmid(pmid: str, where: str, findings: InputFindings) -> None:
    """Add a finding for a PMID without a number, which will match nothing.

    Args:
        pmid: as written; empty if none is given.
        where: the file.
        findings: collects the finding.
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
"""Id in a template, a file for users to fill in."""

_NEEDED = ("cochrane_id", "title", "research_question", "included_studies")
_REVIEW: TypeAdapter[Review] = TypeAdapter(Annotated[Review, keeping_unknown(Review)])


def read_truth(folder: Path, findings: InputFindings) -> tuple[Review, ...]:
    """Return the reviews of a folder, or of one file, ascending by id as text.

    A file holds one review, a `.jsonl` one per line. Templates are left out and noted.

    Raises:
        DatasetError: there is none, two have one id, or a file is invalid.
    """
    reviews: dict[str, tuple[Review, str]] = {}
    for where, fields in _objects(folder):
        # before parsing: fields of a template may be missing
        if str(fields.get("cochrane_id")).strip() == TEMPLATE:
            findings.add(
                "template_skipped",
                "warn",
                where,
                "The file is a template, by its id, and was left out.",
                example=TEMPLATE,
            )
            continue
        review = _review_from(fields, where)
        if review.id in reviews:
            raise DatasetError(
                f"{where}: cochrane_id {review.id} is also in "
                f"{reviews[review.id][1]} (remove or correct one)."
            )
        for study in review.studies:
            note_bad_pmid(study.pmid, where, findings)
        reviews[review.id] = (review, where)
    if not reviews:
        raise DatasetError(
            f"{folder}: there is no review but templates (add a cochrane_<id>.json)."
        )
    return tuple(reviews[key][0] for key in sorted(reviews))


def _objects(folder: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the object of each review, with its location."""
    for path in _files(folder):
        if path.suffix == ".jsonl":
            for entry in entries_in(path):
                yield f"{path.name} line {entry.line}", dict(entry.fields)
        else:
            yield path.name, _fields(path)


TYPED_ID = "Q1"
"""Id of a question that is given as text."""

_ANSWERS = (
    *("included_studies", "authors_conclusion"),
    *("conclusion_direction", "conclusion_certainty"),
)
"""Fields of a published review that answer its question."""


def typed_question(
    question: str, inclusion: Sequence[str], exclusion: Sequence[str]
) -> Review:
    """Return the question that is given as text, as a review without studies."""
    return Review(
        id=TYPED_ID,
        title="",
        question=question.strip(),
        studies=(),
        inclusion=tuple(inclusion),
        exclusion=tuple(exclusion),
    )


def read_questions(path: Path) -> tuple[Review, ...]:
    """Return the questions of a folder, or of one file, ascending by id as text.

    Their answers, such as the studies of a published review, are not read.

    Raises:
        DatasetError: there is none, two have one id, or a file is invalid.
    """
    reviews: dict[str, tuple[Review, str]] = {}
    for file in _files(path, "*.json", "--questions"):
        question_fields = {k: v for k, v in _fields(file).items() if k not in _ANSWERS}
        fields = {"title": "", **question_fields}
        _refuse_missing(fields, ("cochrane_id", "research_question"), file.name)
        if str(fields["cochrane_id"]).strip() == TEMPLATE:
            continue
        review = validated_value(_REVIEW, {**fields, "included_studies": []}, file.name)
        if review.id in reviews:
            raise DatasetError(
                f"{file.name}: cochrane_id {review.id} is also in "
                f"{reviews[review.id][1]} (remove or correct one)."
            )
        reviews[review.id] = (review, file.name)
    if not reviews:
        raise DatasetError(f"{path}: there is no question but templates (add one).")
    return tuple(reviews[key][0] for key in sorted(reviews))


def with_answers(
    questions: Sequence[Review], published: Sequence[Review], where: Path
) -> tuple[Review, ...]:
    """Return the questions with the answers of published reviews of the same id.

    Raises:
        DatasetError: there is none.
    """
    answers = {review.id: review for review in published}
    answered = tuple(
        replace(
            question,
            studies=answers[question.id].studies,
            conclusion=answers[question.id].conclusion,
            direction=answers[question.id].direction,
            certainty=answers[question.id].certainty,
        )
        for question in questions
        if question.id in answers
    )
    if not answered:
        raise DatasetError(
            f"{where}: no cochrane_id is that of a question, such as "
            f"{questions[0].id} (give the truth of a question its id)."
        )
    return answered


def _refuse_missing(
    fields: Mapping[str, Any], needed: Sequence[str], file: str
) -> None:
    missing = [
        name
        for name in needed
        if (value := fields.get(name)) is None
        or value == []
        or (isinstance(value, str) and not value.strip())
    ]
    if missing:
        raise DatasetError(f"{file}: missing or empty: {', '.join(missing)}.")


def _fields(path: Path) -> dict[str, Any]:
    value = read_json(path)
    if not isinstance(value, dict):
        raise DatasetError(f"{path.name}: not an object (one review is expected).")
    return value


def _review_from(fields: dict[str, Any], file: str) -> Review:
    _refuse_missing(fields, _NEEDED, file)
    review = validated_value(_REVIEW, fields, file)
    for index, study in enumerate(review.studies):
        if not (study.pmid or study.doi or study.title):
            raise DatasetError(
                f"{file}: included_studies[{index}] has no pmid, doi or title."
            )
    return review


def _files(
    folder: Path, pattern: str = PATTERN, flag: str = "--truth"
) -> Sequence[Path]:
    if folder.is_file():
        return (folder,)
    if not folder.is_dir():
        raise DatasetError(
            f"{folder}: no such folder (name one of cochrane_<id>.json with {flag})."
        )
    paths = sorted(folder.glob(pattern))
    if not paths:
        raise DatasetError(
            f"{folder}: there is no {pattern} in it (name another folder with {flag})."
        )
    return paths


def review_to_json(review: Review) -> dict[str, Any]:
    """Return the object of a `cochrane_{id}.json`; some missing values are null."""
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
    """Return the fields of an entry of `included_studies`, without missing values."""
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
    """Return a JSON file; its keys retain their order."""
    content = msgspec.json.format(msgspec.json.encode(value), indent=1)
    return Artifact(name=name, text=content.decode() + "\n")
