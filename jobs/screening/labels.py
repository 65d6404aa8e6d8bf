"""Reads the criteria of a review, and labels by record.

Criteria are free text, or an object of fields. In a text, a line such as `Inclusion:`
or `# Exclusion criteria` begins a part, and each further line is one criterion; the
text before the first part is the question. Labels are decisions of people. They are
gold labels: scoring reads them, prompts never do.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Final

from msgspec import structs
from pydantic import PlainValidator

from jobs.kit.inputs.cells import InputCell, Text, quote, text_of, trimmed
from jobs.kit.inputs.column_map import near_words
from jobs.kit.inputs.files import (
    csv_columns,
    objects_in,
    read_json,
    read_table,
    read_text,
)
from jobs.kit.inputs.rows import InputFindings, RowModel, RowSource
from jobs.screening.data import (
    KINDS,
    UNLABELLED,
    Criteria,
    RecordKind,
    ScreeningRecord,
    record_key,
)
from jobs.screening.input_tables import PICO, CriteriaColumns, OptionalId
from jobs.screening.library import IDS_OF_TABLES, record_id
from jobs.screening.reason_codes import code_of
from runner.errors import DatasetError

_PARTS: Final[Mapping[str, str]] = {
    "question": "question",
    "research question": "question",
    "review question": "question",
    "title": "question",
    "inclusion": "inclusion",
    "inclusion criteria": "inclusion",
    "include": "inclusion",
    "exclusion": "exclusion",
    "exclusion criteria": "exclusion",
    "exclude": "exclusion",
    **{name: name for name in PICO},
    "comparator": "comparison",
    "outcomes": "outcome",
    "participants": "population",
}
"""Parts of a text of criteria, by their headings."""

_PART = re.compile(r"#+\s*([^:]+?):?|([A-Za-z][A-Za-z ]{1,60}):\s*(.*)")
_BULLET = re.compile(r"(?:[-*+\u2022]|\d+[.)])\s+")


def read_criteria_file(path: Path) -> Criteria:
    """Read the criteria of one review: .txt, .md, .toml, .json or .jsonl.

    Raises:
        DatasetError: the file cannot be read, or has no criteria; names the error.
    """
    match path.suffix.lower():
        case ".toml":
            criteria = _of_fields(path, _toml(path))
        case ".json":
            criteria = _of_fields(path, read_json(path))
        case ".jsonl":
            rows = [fields for _, fields in objects_in(path)]
            if len(rows) != 1:
                raise DatasetError(
                    f"{path.name}: {len(rows)} reviews, where a library has one (keep "
                    "the line of that review)."
                )
            criteria = _of_fields(path, rows[0])
        case _:
            criteria = _of_text(read_text(path))
    if criteria.is_empty:
        raise DatasetError(
            f"{path.name}: it states no criteria (write what to include, one criterion "
            "a line)."
        )
    return criteria


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise DatasetError(f"{path.name}: not valid TOML: {error}.") from error


def _of_fields(path: Path, fields: object) -> Criteria:
    if not isinstance(fields, dict):
        raise DatasetError(
            f"{path.name}: not an object with question, inclusion and exclusion (write "
            "them as its keys)."
        )
    known = {"question", "pico", "inclusion", "exclusion", "criteria", "review_pmid"}
    for name in fields:
        if name not in known:
            near = near_words(name, sorted(known))
            hint = f"nearest: {near}" if near else f"one of {', '.join(sorted(known))}"
            raise DatasetError(f"{path.name}: there is no field {name} ({hint}).")
    row = {name: value for name, value in fields.items() if name != "review_pmid"}
    return CriteriaColumns.at(RowSource(file=path.name), 1, row).criteria


def _of_text(text: str) -> Criteria:
    """Parse the parts of a text; other parts become criteria with a heading."""
    part = "question"
    pieces: dict[str, list[str]] = {}
    for raw in text.splitlines():
        line = raw.strip()
        begins = _PART.fullmatch(line)
        heading = "" if begins is None else begins[1] or begins[2]
        # "Design: randomised trials" is a criterion, not a part
        if begins and (heading.lower() in _PARTS or not begins[3]):
            part = _PARTS.get(heading.lower(), heading)
            line = begins[3] or ""
        line = _BULLET.sub("", line, count=1)
        if line:
            pieces.setdefault(part, []).append(line)
    parts = {"question", "inclusion", "exclusion", *PICO}
    return Criteria(
        question=" ".join(pieces.get("question", ())),
        pico={name: "; ".join(pieces[name]) for name in PICO if name in pieces},
        inclusion=tuple(pieces.get("inclusion", ())),
        exclusion=tuple(pieces.get("exclusion", ())),
        headings={
            name: "; ".join(lines)
            for name, lines in pieces.items()
            if name not in parts
        },
    )


_INCLUDED: Final = frozenset({"1", "1.0", "include", "included", "yes", "true"})
_EXCLUDED: Final = frozenset({"0", "0.0", "exclude", "excluded", "no", "false"})


def _decided(cell: InputCell) -> int | None:
    """Parse 1 for included, 0 for excluded, None for no label.

    `UNLABELLED` removes a record's label from the set, so that a file can be the
    complete truth.
    """
    word = trimmed(str(cell) if isinstance(cell, bool | float) else cell).lower()
    if not word:
        return None
    if word == "unlabelled":
        return UNLABELLED
    if word not in _INCLUDED | _EXCLUDED:
        raise ValueError(
            f"is {quote(cell)} (1 or 0, or include or exclude, is expected)"
        )
    return int(word in _INCLUDED)


class _LabelRow(RowModel):
    id: Annotated[str, PlainValidator(lambda cell: record_id(text_of(cell)))]
    label: Annotated[int | None, PlainValidator(_decided)] = None
    review_pmid: OptionalId = ""
    reason: Text = ""
    reason_code: Text = ""
    kind: Text = ""

    @property
    def negative(self) -> RecordKind:
        """The kind of an excluded record, by default `true-excluded`."""
        for kind in NEGATIVES:
            if kind == (self.kind or "true-excluded"):
                return kind
        raise self.error(
            f"kind {quote(self.kind)} contradicts the label (one of "
            f"{', '.join(NEGATIVES)} is expected)"
        )


def _with_label(record: ScreeningRecord, row: _LabelRow) -> ScreeningRecord:
    """Return a record with the label of a row."""
    if row.label == UNLABELLED:
        return structs.replace(record, kind="unlabelled", reason="", reason_code="")
    if row.label:
        return structs.replace(record, kind="included")
    return structs.replace(
        record,
        kind=row.negative,
        reason=row.reason or record.reason,
        reason_code=row.reason_code
        or (code_of(row.reason) if row.reason else record.reason_code),
    )


NEGATIVES: Final = tuple(k for k in KINDS if k not in {"included", "unlabelled"})

_SPELLINGS: Final[Mapping[str, Sequence[str]]] = {
    "id": (*IDS_OF_TABLES, "doi"),
    "label": ("label", "label_included", "included", "decision"),
}
"""Column names in files of labels, in lower case; the first counts."""


def labelled(
    path: Path, records: Sequence[ScreeningRecord], findings: InputFindings
) -> dict[str, ScreeningRecord]:
    """Return the records that a file labels, by key, with their new labels.

    An included record is a positive; an excluded one is an exclusion by the review
    itself. A blank label changes nothing.

    Args:
        path: CSV with an id and a label, and optionally the review's id, a reason with
            its code, and the kind of an excluded record.
        records: all records.
        findings: receives unused columns.

    Raises:
        DatasetError: a label is invalid, belongs to no record, or contradicts another;
            names file, row and column.
    """
    by_lower = {column.lower(): column for column in reversed(csv_columns(path))}
    renamed = {
        column: name
        for name, spellings in _SPELLINGS.items()
        for column in [next((by_lower[s] for s in spellings if s in by_lower), name)]
    }
    by_key = {record.key: record for record in records}
    reviews = list(dict.fromkeys(record.review for record in records))
    decided_records: dict[str, ScreeningRecord] = {}
    rows = read_table(
        path,
        _LabelRow,
        findings=findings,
        needed=("label",),
        renamed=renamed,
        unit="row",
        cure="name it in the header",
    )
    for row in rows:
        if row.label is None:
            continue
        if not row.review_pmid and len(reviews) > 1:
            raise row.error(
                "review_pmid is missing (add it: the records are of several reviews)"
            )
        key = record_key(row.review_pmid or reviews[0], row.id)
        record = by_key.get(key)
        if record is None:
            near = near_words(row.id, (record.paper for record in records))
            hint = f"; nearest: {near}" if near else ""
            raise row.error(f"id {row.id} is no record{hint} (correct or remove it)")
        decided = _with_label(record, row)
        if decided_records.setdefault(key, decided).label != decided.label:
            raise row.error(
                f"label contradicts an earlier row about {row.id} (correct one)"
            )
    return decided_records
