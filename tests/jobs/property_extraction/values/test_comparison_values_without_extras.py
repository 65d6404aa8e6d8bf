"""What the libraries of the extra `materials` read is not known without them."""

from __future__ import annotations

import subprocess
import sys

import pytest

from jobs.property_extraction.values.categories import SpaceGroupReader
from jobs.property_extraction.values.comparison import ComparisonKind
from runner.errors import DatasetError
from tests.jobs.property_extraction.values.stated_values import (
    Value,
    comparer,
    matches,
    pairs,
)


@pytest.fixture
def absent(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes a library as if it were not installed: it is not found, nor imported."""
    monkeypatch.setitem(sys.modules, request.param, None)
    with pytest.raises(ModuleNotFoundError):
        __import__(request.param)


def without(library: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("absent", [library], indirect=True)


@without("pint")
@pytest.mark.usefixtures("absent")
def test_without_pint_the_dialect_still_converts() -> None:
    by = comparer()
    assert not by.has_pint
    one, other = Value("30", "μΩcm"), Value("0.03", "m.ohm.cm")
    assert (
        by.compare(ComparisonKind.SI, "resistivity", one, other).unit_status
        == "converted"
    )
    assert pairs(by, ComparisonKind.SI, [one], [other]) == [(0, 0)]


@without("pint")
@pytest.mark.usefixtures("absent")
def test_without_pint_the_names_that_it_reads_are_unknown() -> None:
    by, known = comparer(), Value("5", "meV")
    statuses = {
        unit: by.compare(ComparisonKind.SI, "gap", known, Value("5", unit)).unit_status
        for unit in ("meV", "eV", "K", "Oe", "")
    }
    assert statuses == {
        "meV": "same",
        "eV": "unknown",
        "K": "unknown",
        "Oe": "unknown",
        "": "missing",
    }
    assert pairs(by, ComparisonKind.SI, [known], [Value("5", "eV")]) == [(0, 0)]


def test_with_pint_the_same_units_are_told_apart() -> None:
    by, known = comparer(), Value("5", "meV")
    assert by.has_pint
    for unit, status in (("eV", "converted"), ("K", "incompatible")):
        found = by.compare(ComparisonKind.SI, "gap", known, Value("5", unit))
        assert (found.unit_status, found.match) == (status, False)


@without("gemmi")
@pytest.mark.usefixtures("absent")
def test_without_gemmi_the_short_symbols_are_known() -> None:
    groups = SpaceGroupReader()
    found = [groups.number(text) for text in ("P6₃mc", "R3̅m", "186", "P 1 21/c 1")]
    assert found == [186, 166, 186, None]


def test_with_gemmi_other_settings_are_known_too() -> None:
    assert SpaceGroupReader().number("P 1 21/c 1") == 14
    assert SpaceGroupReader().number("P21/n") == 14


@without("pymatgen")
@pytest.mark.usefixtures("absent")
def test_without_pymatgen_compositions_are_left_out() -> None:
    by, one = comparer(), Value("Ru7B3")
    assert [kind for kind in ComparisonKind if by.left_out(kind)] == [
        ComparisonKind.PYMATGEN
    ]
    found = by.compare(ComparisonKind.PYMATGEN, "formula", one, one)
    assert (found.reason, found.match) == ("left_out", False)
    assert not pairs(by, ComparisonKind.PYMATGEN, [one], [one])


@without("pymatgen")
@pytest.mark.usefixtures("absent")
def test_compositions_that_must_be_compared_need_pymatgen() -> None:
    with pytest.raises(DatasetError, match=r"install siftlog\[materials\]"):
        comparer(pymatgen="on")


def test_compositions_can_be_left_out_where_pymatgen_is_installed() -> None:
    assert comparer(pymatgen="leave_out").left_out(ComparisonKind.PYMATGEN)
    assert not comparer().left_out(ComparisonKind.PYMATGEN)
    assert matches(ComparisonKind.PYMATGEN, "Ru7B3", "B3Ru7", pymatgen="on")


LAZY = """
import sys
from jobs.property_extraction.job import job
from jobs.property_extraction.rows import Prediction, TruthRow
from jobs.property_extraction.values.comparer import Comparer

by = Comparer(job.Settings())
one = Prediction(refno="A", name="shape", value="film", unit="Oe")
other = TruthRow(refno="A", name="shape", value="Film", unit="T")
assert by.compare("categorical", "shape", one, other).match
print(sorted({"pint", "gemmi", "pymatgen"} & set(sys.modules)))
"""


def test_no_library_is_loaded_before_a_value_needs_it() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LAZY], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
