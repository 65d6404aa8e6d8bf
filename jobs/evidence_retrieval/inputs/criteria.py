"""Reads the criteria, and orders those that no file lists."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from jobs.evidence_retrieval.dataset import Criterion
from jobs.inputs.files import read_csv, read_json
from jobs.inputs.rows import InputFindings, InputRow
from runner.errors import DatasetError

ALIASES = {"id": "criterion_id", "description": "text"}
"""Other names of the fields; a file uses one of each."""

_DIGITS = re.compile(r"([0-9]+)")


def natural_order(ids: Iterable[str]) -> tuple[str, ...]:
    """Distinct ids with their numbers in numeric order.

    >>> natural_order(["A.10", "A.2", "A.1", "A.2"])
    ('A.1', 'A.2', 'A.10')
    """
    return tuple(sorted(set(ids), key=_natural))


def read_criteria(
    path: Path, noticed: InputFindings, *, allow_ragged: bool = False
) -> tuple[Criterion, ...]:
    """The criteria in file order, which is the order of display.

    Raises:
        DatasetError: a criterion has no text, occurs twice or has an id with "/", or
            there is none.
    """
    if ".json" in path.suffixes:
        rows = _json_rows(path)
    else:
        rows = read_csv(
            path,
            ("criterion_id", "text"),
            ("name",),
            noticed=noticed,
            allow_ragged=allow_ragged,
            aliases=ALIASES,
        )
    criteria: dict[str, Criterion] = {}
    for row in rows:
        criterion = Criterion(
            id=row.text("criterion_id"),
            text=row.text("text"),
            name=row.optional_text("name"),
        )
        if "/" in criterion.id:
            raise row.error(
                f'criterion_id {criterion.id} holds "/", which parts post and '
                "criterion in the key of a query (rename it)"
            )
        if not criterion.text.strip():
            raise row.error(f"criterion {criterion.id} has no text (write what it is)")
        if criterion.id in criteria:
            raise row.error(f"criterion {criterion.id} occurs twice (remove one)")
        criteria[criterion.id] = criterion
    if not criteria:
        raise DatasetError(f"{path.name}: no criterion in it (at least one is needed).")
    return tuple(criteria.values())


def _json_rows(path: Path) -> Iterator[InputRow]:
    """The entries of `{"criteria": [...]}`, numbered from 1 as lines are."""
    value = read_json(path)
    entries: Any = value.get("criteria") if isinstance(value, dict) else None
    if not isinstance(entries, list):
        raise DatasetError(
            f'{path.name}: no list of criteria (an object {{"criteria": [...]}} is '
            "expected)."
        )
    for number, entry in enumerate(entries, start=1):
        if not isinstance(entry, dict):
            raise DatasetError(
                f"{path.name} criterion {number}: not an object with id and text "
                "(write both)."
            )
        fields = {ALIASES.get(str(key), str(key)): entry[key] for key in entry}
        yield InputRow(file=path.name, line=number, fields=fields, unit="criterion")


def _natural(id_: str) -> tuple[tuple[str, int], ...]:
    """Texts and numbers by turns; the id itself decides between 1 and 01."""
    parts = _DIGITS.split(id_)
    pairs = zip(parts[::2], (*map(int, parts[1::2]), -1), strict=True)
    return (*pairs, (id_, 0))
