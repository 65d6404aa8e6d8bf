"""The file of what reviews ask for: one object a line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from jobs.inputs.files import read_jsonl
from jobs.inputs.rows import InputFindings, InputRow, kind_of
from jobs.screening.corpus import Criteria, Ids
from jobs.screening.inputs.ids import read_id

PICO = ("population", "intervention", "comparison", "outcome")
_OPTIONAL = ("question", "pico", "inclusion", "exclusion", "criteria")


def read_criteria(path: Path, noticed: InputFindings) -> dict[str, Criteria]:
    """Criteria by review.

    Raises:
        DatasetError: a line is off, or names a review for the second time.
    """
    found: dict[str, Criteria] = {}
    for row in read_jsonl(path, ("review_pmid",), _OPTIONAL, noticed=noticed):
        review = read_id(row, "review_pmid")
        if review in found:
            raise row.error(f"review_pmid {review} occurs a second time (remove one)")
        found[review] = criteria_in(row)
    return found


def criteria_in(row: InputRow) -> Criteria:
    """What a line says that a review asks for."""
    return Criteria(
        question=row.optional_text("question").strip(),
        pico=_texts(row, "pico", PICO),
        inclusion=_listed(row, "inclusion"),
        exclusion=_listed(row, "exclusion"),
        headings=_texts(row, "criteria"),
    )


def _texts(
    row: InputRow, name: str, allowed: tuple[str, ...] = ()
) -> Mapping[str, str]:
    """An object of texts, () where it is missing; only *allowed* keys, if any are."""
    cell = row.fields.get(name)
    if cell is None:
        return {}
    if not isinstance(cell, dict):
        raise row.error(f"{name} is {kind_of(cell)} (an object of texts is expected)")
    given = {key: value for key, value in cell.items() if value is not None}
    for key, value in given.items():
        if not isinstance(value, str):
            raise row.error(f"{name}.{key} is {kind_of(value)} (a text is expected)")
        if allowed and key not in allowed:
            raise row.error(
                f"{name} has a key {key!r} (one of {', '.join(allowed)} is expected)"
            )
    return {key: value.strip() for key, value in given.items() if value.strip()}


def _listed(row: InputRow, name: str) -> Ids:
    cell = row.fields.get(name)
    # a lone text is one criterion, whatever signs it holds
    texts = (cell,) if isinstance(cell, str) else row.texts(name)
    return tuple(text.strip() for text in texts if text.strip())
