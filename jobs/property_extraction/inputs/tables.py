"""Lookup tables of scoring: categories of texts, numbers of space groups, units."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TypeAlias

from jobs.inputs.files import read_json
from jobs.inputs.rows import kind_of, number_of
from jobs.property_extraction.inputs.columns import open_table
from jobs.property_extraction.values.unit_row import UnitRow
from runner.errors import DatasetError

Clusters: TypeAlias = Mapping[str, Mapping[str, str]]
"""By property: the category of each text."""

SpaceGroups: TypeAlias = Mapping[str, int]
"""By symbol: the number, from 1 to 230."""

GROUPS = 230


def read_clusters(path: Path) -> Clusters:
    """Categories by property and text.

    Raises:
        DatasetError: the file is no such object.
    """
    found = read_json(path)
    if not isinstance(found, dict):
        raise DatasetError(
            f"{path.name}: {kind_of(found)} (an object of properties is expected)."
        )
    for name, texts in found.items():
        if not isinstance(texts, dict) or not all(
            isinstance(category, str) for category in texts.values()
        ):
            raise DatasetError(
                f"{path.name}: {name} is {kind_of(texts)} (an object of texts, each "
                "with its category, is expected)."
            )
    return found


def read_space_groups(path: Path) -> SpaceGroups:
    """Numbers by symbol.

    Raises:
        DatasetError: the file is no such object, or a number is none of a space group.
    """
    found = read_json(path)
    if not isinstance(found, dict):
        raise DatasetError(
            f"{path.name}: {kind_of(found)} (an object of symbols is expected)."
        )
    for symbol, number in found.items():
        if type(number) is not int or not 1 <= number <= GROUPS:
            raise DatasetError(
                f"{path.name}: {symbol} is {number!r} (a number from 1 to {GROUPS} is "
                "expected)."
            )
    return found


def read_unit_table(path: Path) -> tuple[UnitRow, ...]:
    """Units with what they are in SI, in file order; rows without a unit are left out.

    Raises:
        DatasetError: a column is missing, or a factor is no number above 0.
    """
    table = open_table(path)
    header = table.header
    unit, si = header.need(("property_unit",)), header.need(("SI",))
    factor = header.need(("conversion_factor",))
    rows = []
    for cells in table.rows:
        if not cells.at(unit) or not cells.at(factor):
            continue
        try:
            number = number_of(cells.at(factor))
        except ValueError as error:
            raise cells.error(f"conversion_factor {error}") from error
        if not (math.isfinite(number) and number > 0):
            raise cells.error(
                f"conversion_factor is {cells.at(factor)} (a number above 0 is "
                "expected)"
            )
        rows.append(
            UnitRow(
                name=cells.at(unit),
                si=cells.at(si),
                factor=number,
                source_row=cells.number,
            )
        )
    return tuple(rows)
