"""Reads a set's folder again: what a run screens, and what scoring goes by."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

from jobs.inputs.files import read_csv, read_json, read_jsonl
from jobs.inputs.rows import InputFindings, InputRow
from jobs.screening.corpus import Criteria, Text
from jobs.screening.inputs.criteria import criteria_in
from jobs.screening.inputs.ids import read_id
from jobs.screening.inputs.texts import COLUMNS, text_in
from jobs.screening.prepared.columns import RECORDS
from jobs.screening.validation_set import KINDS, Kind, Record, SetReview, ValidationSet
from runner.errors import DatasetError
from runner.job import InputFile
from runner.workload import input_hashes

_CRITERIA = ("question", "pico", "inclusion", "exclusion", "criteria")
FILES = ("validation_set.csv", "reviews.jsonl", "papers.jsonl", "summary.json")
"""The files of a set that a run needs."""
MANIFEST = "manifest.json"
"""The file by which the others are known to be whole."""


def read_set(folder: Path) -> ValidationSet:
    """The set in a folder that `prepare` has written.

    Raises:
        DatasetError: the folder is no set, or one of its files is off, or not what
            `prepare` wrote; names file and row.
    """
    for name in FILES:
        if not (folder / name).is_file():
            raise DatasetError(
                f"{folder} has no {name}: name a folder that siftlog prepare screening "
                "has written."
            )
    noticed = InputFindings()
    papers = _texts(folder / "papers.jsonl", "pmid", noticed)
    reviews = _reviews(folder / "reviews.jsonl", noticed)
    records = _records(folder / "validation_set.csv", noticed)
    for record in records:
        for what, name, known in (
            ("review", record.review, reviews),
            ("paper", record.paper, papers),
        ):
            if name not in known:
                raise DatasetError(
                    f"validation_set.csv: the {what} {name} has no text in "
                    f"{what}s.jsonl (build the set again)."
                )
    summary = read_json(folder / "summary.json")
    _check(folder)
    return ValidationSet(
        reviews=tuple(reviews[name] for name in sorted(reviews)),
        records=tuple(records),
        papers=papers,
        pools=_part(summary, "set", "pools"),
        near_misses={
            name: value
            for name, value in _part(summary, "near_misses").items()
            if not isinstance(value, dict)
        },
        candidates=_part(summary, "near_misses", "histogram"),
        contamination=_part(summary, "contamination"),
        drift=_part(summary, "topic_drift", "macro"),
        findings=noticed.findings(),
    )


def _check(folder: Path) -> None:
    """Refuse files that are readable, but not those that the manifest speaks of.

    A folder without a manifest is somebody's own, and taken as it stands.
    """
    manifest = folder / MANIFEST
    if not manifest.is_file():
        return
    written = _part(read_json(manifest), "files")
    named = [InputFile(setting=name, path=folder / name) for name in FILES]
    for found in input_hashes(named):
        if written.get(found.setting) != found.sha256:
            raise DatasetError(
                f"{found.path} is not the file that siftlog prepare screening wrote "
                "there (build the set again)."
            )


def _records(path: Path, noticed: InputFindings) -> list[Record]:
    records = []
    seen: set[str] = set()
    for row in read_csv(path, RECORDS, noticed=noticed, unit="row"):
        record = Record(
            review=read_id(row, "review_pmid"),
            paper=read_id(row, "paper_pmid"),
            kind=cast("Kind", row.one_of("kind", KINDS)),
            also_near_miss=bool(row.label("also_near_miss")),
            reason=row.optional_text("reason"),
            reason_code=row.optional_text("reason_code"),
            n_links=row.count("n_links"),
            n_shared=row.count("n_shared"),
            similarity=row.number("similarity") if row.has("similarity") else None,
        )
        if record.label != row.label("label"):
            raise row.error(f"label contradicts the kind {record.kind} (correct one)")
        if record.key in seen:
            raise row.error(f"{record.key} occurs a second time (remove one)")
        seen.add(record.key)
        records.append(record)
    return records


def _reviews(path: Path, noticed: InputFindings) -> dict[str, SetReview]:
    reviews = {}
    for row in read_jsonl(
        path, ("review_pmid",), (*COLUMNS, *_CRITERIA), noticed=noticed
    ):
        review = read_id(row, "review_pmid")
        reviews[review] = SetReview(
            id=review, text=text_in(row), criteria=_criteria(row)
        )
    return reviews


def _criteria(row: InputRow) -> Criteria | None:
    return criteria_in(row) if "question" in row.fields else None


def _texts(path: Path, key: str, noticed: InputFindings) -> dict[str, Text]:
    rows = read_jsonl(path, (key,), COLUMNS, noticed=noticed)
    return {read_id(row, key): text_in(row) for row in rows}


def _part(summary: Any, *names: str) -> Mapping[str, Any]:  # noqa: ANN401 - JSON
    """A part of the summary; nothing where it is not there."""
    for name in names:
        summary = summary.get(name) if isinstance(summary, dict) else None
    return summary if isinstance(summary, dict) else {}
