"""How each property's values are compared: one property a row of a CSV file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from jobs.inputs.rows import InputFindings
from jobs.property_extraction.inputs.columns import open_table
from jobs.property_extraction.rubric import Kind, Property, Rubric
from runner.errors import DatasetError
from runner.score.render import as_meant

NAME = ("label", "property_name")
BROKEN = frozenset({"", "#N/A", "#NAME?", "#REF!", "#VALUE!"})
"""Rubric words of rows that a spreadsheet left without one."""

CONDITION = "condition_name"
"""Rows that name a condition describe no property."""

WORDS: Mapping[str, Kind] = {
    "0.1% si": Kind.SI,
    "categorical": Kind.CATEGORICAL,
    "pymatgen": Kind.PYMATGEN,
    "space group": Kind.SPACE_GROUP,
    "space_group": Kind.SPACE_GROUP,
    "exact": Kind.EXACT,
    "exact_match": Kind.EXACT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RubricFile:
    """The rubric, and what of its file is none."""

    rubric: Rubric
    dropped: int = 0  #: rows without a name, or without a word
    conditions: int = 0  #: rows about conditions


def read_rubric(
    path: Path, noticed: InputFindings, *, is_unknown_exact: bool = False
) -> RubricFile:
    """Read a rubric.

    Args:
        path: the file.
        noticed: learns of names that occur twice.
        is_unknown_exact: read a word that is none as `exact`.

    Raises:
        DatasetError: a column is missing, a word is none, or there is no property.
    """
    table = open_table(path)
    header = table.header
    name, word = header.need(NAME), header.need(("rubric",))
    si, condition = header.first(("SI",)), header.first((CONDITION,))
    definition = header.first(("definition", "description"))
    found: dict[str, Property] = {}
    dropped = conditions = 0
    for cells in table.rows:
        if cells.at(condition):
            conditions += 1
            continue
        own, said = as_meant(cells.at(name)), cells.at(word)
        if not own or said in BROKEN:
            dropped += 1
            continue
        kind = WORDS.get(said.lower())
        if kind is None:
            if not is_unknown_exact:
                raise cells.error(
                    f"rubric is {said!r} (one of {', '.join(WORDS)} is expected; "
                    "--unknown-rubric exact reads others so)"
                )
            kind = Kind.EXACT
        if own in found:
            noticed.add(
                "rubric_twice",
                "warn",
                path.name,
                "Names have several rows; the last one holds.",
                example=own,
            )
            del found[own]
        unit = cells.at(si)
        found[own] = Property(
            name=own,
            kind=kind,
            si="" if unit in BROKEN else unit,
            definition=as_meant(cells.at(definition)),
            source_row=cells.number,
        )
    if not found:
        raise DatasetError(f"{path.name}: no row has a name and a rubric (add rows).")
    return RubricFile(
        rubric=Rubric(properties=found), dropped=dropped, conditions=conditions
    )
