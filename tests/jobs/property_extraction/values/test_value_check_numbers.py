"""How the values and units of real files read."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest

from jobs.property_extraction.curated_files import read_unit_table
from jobs.property_extraction.values.comparison import ComparisonKind
from jobs.property_extraction.values.unit_reader import unit_disagreements
from tests.jobs.property_extraction.values.stated_values import Value, comparer

pytestmark = pytest.mark.realdata

GEMINI, FREE = "preds_gemini-2.5-flash.csv", "preds_Ru7B3_free_names.csv"


@pytest.fixture
def files(realdata: Path) -> Path:
    return realdata / "sci_llm"


def cells(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8-sig", newline="") as lines:
        return list(csv.DictReader(lines))


def quantities(files: Path) -> set[str]:
    """Names of properties whose values are numbers with a unit."""
    rubric = cells(files / "scoring_assets" / "rubric.csv")
    return {
        row["property_name"] for row in rubric if row["rubric"] == ComparisonKind.SI
    }


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ("scientific", {"value": 61, "not_a_number": 14, "range": 2, "bound": 1}),
        ("strict", {"value": 53, "not_a_number": 25}),
    ],
)
def test_predicted_quantities_read_as_counted(
    files: Path, numbers: str, expected: dict[str, int]
) -> None:
    by, names = comparer(numbers=numbers), quantities(files)
    rows = [row for row in cells(files / GEMINI) if row["property_name"] in names]
    assert Counter(by.number(row["value_string"]).status for row in rows) == expected


def test_values_under_free_names_read_as_counted(files: Path) -> None:
    by = comparer()
    found = Counter(by.number(r["value_string"]).status for r in cells(files / FREE))
    assert found == {"value": 79, "not_a_number": 58, "range": 9}


def test_all_units_of_the_truth_are_understood(files: Path) -> None:
    by, names = comparer(), quantities(files)
    rows = cells(files / "gt.csv")
    assert not [
        cell
        for row in rows
        for cell in (by.unit(row["property_unit"]),)
        if cell.unit is None and not cell.blank
    ]
    told = [by.unit(row["property_unit"]) for row in rows if row["label"] in names]
    assert (len(told), sum(cell.blank for cell in told)) == (78, 13)


def test_units_of_predictions_that_are_not_understood(files: Path) -> None:
    by = comparer()
    unknown = {
        row["units"]
        for name in (GEMINI, FREE, "preds_chatextract.csv")
        for row in cells(files / name)
        for cell in (by.unit(row["units"]),)
        if cell.unit is None and not cell.blank
    }
    assert unknown == {
        *("% purity", "'C", "3", "J/Km", "Others"),
        *("kg f/cm2", "nm (thickness)", "r.p.m.", "sccm"),
    }


def test_names_meet_by_their_values_alone(files: Path) -> None:
    names = quantities(files)
    truths = [
        row
        for row in cells(files / "gt.csv")
        if row["refno"] == "Paper_1" and row["label"] in names
    ]
    rows = cells(files / FREE)
    # both lattice constants have their right name, and are found
    found = {"lattice constant a", "lattice constant c"}
    hits = comparer().value_hits(
        [Value(row["value_string"], row["units"]) for row in rows],
        [Value(row["property_value"], row["property_unit"]) for row in truths],
    )
    pairs = {
        (rows[hit.prediction]["property_name"], truths[hit.truth]["label"])
        for hit in hits
    }
    assert len({pair for pair in pairs if pair[1] not in found}) == 27


def test_factors_of_a_table_in_circulation_disagree(files: Path) -> None:
    table = read_unit_table(files / "scoring_assets" / "si_conversion_factors.csv")
    found = {each.row.name: each.factor for each in unit_disagreements(table)}
    assert len(table) == 162
    assert {name: factor for name, factor in found.items() if factor is not None} == {
        "meV": 1.602176634e-22,
        "MeV": 1.602176634e-13,
        "m.ohm.cm": 1e-5,
        "mW/cm.K": 0.1,
        "(dL/L)/GPa": 1e-10,
    }
    assert {"cm-1", "uV/K-1", "microV/P", "K/GP"} <= found.keys()
