"""tests.jobs.property_extraction.values.test_units"""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.property_extraction.values.unit_reader import (
    UnitDisagreement,
    UnitReader,
    UnitTableRow,
    unit_disagreements,
)
from jobs.property_extraction.values.units import (
    BLANK,
    DIALECT_UNITS,
    MOST_FACTORS,
    PhysicalUnit,
    convert,
)

READER = UnitReader()

SAME = [
    ("A", "Å"),
    ("A˚", "angstrom"),
    ("A\u030a", "\u212b"),
    ("k", "K"),
    ("mj/mole.K2", "mJ/(K² mol)"),
    ("mJ/mol.K2", "mJ mol^-1 K^-2"),
    ("W/m.K", "W/(m·K)"),
    ("W/m.K", "W/m/K"),
    ("cm-2", "cm⁻²"),
    ("cc", "cm3"),
    ("n/cm3", "/cm3"),
    ("1/GPa", "(GPa)^(-1)"),
    ("% per 1 GPa", "%/GPa"),
    ("mOhm.cm", "m.ohm.cm"),
    ("mohmcm", "mΩ cm"),
    ("uohmcm", "μΩcm"),
    ("µΩ·cm", "μ\u2126 cm at 100 K"),
    ("E+19 /cm3", "10^19 cm-3"),
    ("e-3 cm3/C", "10⁻³ cm³/C"),
    ("E-9m3/C", "mm3/C"),
    ("Oe", "gauss"),
    ("kGs", "kOe"),
    ("muB", "μB"),  # not the microbyte
    ("℃", "°C"),
    ("mm/h", "mm/hour"),
    ("P", "poise"),
    ("Mg/m3", "g/cm3"),
    ("sccm", "sccm"),
]

CONVERTED = [
    ("μΩ cm", "m.ohm.cm", 1e-3, 0.0),
    ("kOe", "T", 0.1, 0.0),
    ("KOe/K", "T/K", 0.1, 0.0),
    ("kG", "mT", 100.0, 0.0),
    ("meV", "J", 1.602176634e-22, 0.0),
    ("10^-5 cm^3/C", "m3/C", 1e-11, 0.0),
    ("%", "ppm", 1e4, 0.0),
    ("kbar", "GPa", 0.1, 0.0),
    ("mW/cm.K", "W/m.K", 0.1, 0.0),
    ("kA/cm2", "A/cm2", 1e3, 0.0),
    ("°C", "K", 1.0, 273.15),
    ("K", "°C", 1.0, -273.15),
    ("°F", "K", 5 / 9, 45967 / 180),
    ("degF", "°C", 5 / 9, -160 / 9),
]

UNKNOWN = [
    "9**9**9",
    "cm**2",
    "__import__('os')",
    "°C/m",
    "10^3 °C",
    "°C2",
    "K^0.5",
    "m^13",
    "m^-13",
    "m^" + "9" * 5000,
    "K/",
    "/",
    "10^5",
    "dB",
    "uB/Eu",  # an element, not exadaltons
    "at.%",  # not atmospheres
    "a.u.",  # neither years nor daltons
    "me",  # an electron's mass, not a thousandth of its charge
    "emu/mol Nd",
    "Others",
    "nm (thickness)",
    "m-ohmcm",
    ".".join(["m"] * (MOST_FACTORS + 1)),
    "QK^12/qK^12",  # more than a float holds
    "m." * 5000,
    "a" * 10000,
    "cm-2" * 2500,
]


@pytest.mark.parametrize(("source", "target"), SAME)
def test_two_spellings_are_one_unit(source: str, target: str) -> None:
    for one, other in ((source, target), (target, source)):
        assert convert(READER.read(one), READER.read(other)).status == "same"


@pytest.mark.parametrize(("source", "target", "factor", "offset"), CONVERTED)
def test_a_unit_is_told_in_another(
    source: str, target: str, factor: float, offset: float
) -> None:
    found = convert(READER.read(source), READER.read(target))
    assert found.status == "converted"
    assert (found.factor, found.offset) == pytest.approx((factor, offset), rel=1e-15)


@pytest.mark.parametrize("text", UNKNOWN)
def test_what_the_grammar_does_not_know_is_no_unit(text: str) -> None:
    read = READER.read(text)
    assert read.unit is None
    assert not read.blank
    found = convert(read, READER.read("K"))
    assert (found.status, found(3.0)) == ("unknown", 3.0)


@pytest.mark.parametrize(
    ("source", "target"), [("K", "T"), ("%", "%/GPa"), ("Oe", "Oe/K"), ("A", "K")]
)
def test_units_of_other_dimensions_are_incompatible(source: str, target: str) -> None:
    found = convert(READER.read(source), READER.read(target))
    assert found.status == "incompatible"


@pytest.mark.parametrize("text", [*sorted(BLANK), "  ", "−"])
def test_a_blank_on_either_side_is_a_missing_unit(text: str) -> None:
    blank, kelvin = READER.read(text), READER.read("K")
    assert convert(blank, kelvin).status == "missing"
    assert convert(kelvin, blank).status == "missing"


def test_letters_of_materials_are_no_ampere_and_no_boltzmann_constant() -> None:
    units = {name: READER.read(name).unit for name in ("A", "k", "cm-2", "m.ohm.cm")}
    assert units == {
        "A": PhysicalUnit(Fraction(1, 10**10), (("[length]", Fraction(1)),)),
        "k": PhysicalUnit(Fraction(1), (("[temperature]", Fraction(1)),)),
        "cm-2": PhysicalUnit(Fraction(10**4), (("[length]", Fraction(-2)),)),
        "m.ohm.cm": READER.read("mohmcm").unit,
    }


@given(st.one_of(st.text(), st.text("kKmΩcAOe°C%/.·^-+0123456789 ()at", max_size=20)))
def test_any_cell_is_read_without_fail_and_converts_to_itself(text: str) -> None:
    read = READER.read(text)
    found = convert(read, read)
    assert found.status == ("missing" if read.blank else "same")


simple_units = st.lists(
    st.tuples(st.sampled_from(sorted(DIALECT_UNITS)), st.integers(-3, 3)),
    min_size=1,
    max_size=4,
).map(lambda factors: " ".join(f"{name}^{power}" for name, power in factors))


@given(simple_units, simple_units)
def test_there_and_back_again_is_the_same_number(one: str, other: str) -> None:
    there = convert(READER.read(one), READER.read(other))
    back = convert(READER.read(other), READER.read(one))
    assert there.status == back.status
    assert back(there(7.25)) == pytest.approx(7.25, rel=1e-14)


TABLE = (
    UnitTableRow(name="meV", si="J", factor=1.6e-22, source_row=2),
    UnitTableRow(name="eV", si="J", factor=1.602e-19, source_row=3),
    UnitTableRow(name="m.ohm.cm", si="ohm.m", factor=0.01, source_row=4),
    UnitTableRow(name="mW/cm.K", si="W/m.K", factor=10.0, source_row=5),
    UnitTableRow(name="GPa", si="Pa", factor=1e9, source_row=6),
    UnitTableRow(name="cm-1", si="J", factor=1.99e-23, source_row=7),
    UnitTableRow(name="emu/mol-Ce", si="emu/mol", factor=1.0, source_row=8),
    UnitTableRow(name="memu/mol", si="emu/mol", factor=0.001, source_row=9),
    UnitTableRow(name="mic.ohm.m", si="ohm.m", factor=1e-6, source_row=10),
)


def test_a_table_is_held_against_what_is_known_of_its_units() -> None:
    found = {each.row.name: each.factor for each in unit_disagreements(TABLE)}
    assert found == {
        "meV": 1.602176634e-22,
        "m.ohm.cm": 1e-5,
        "mW/cm.K": 0.1,
        "cm-1": None,
    }


def test_a_disagreement_names_its_row() -> None:
    assert next(unit_disagreements(TABLE)) == UnitDisagreement(
        row=TABLE[0], factor=1.602176634e-22
    )


def test_a_table_serves_only_what_nobody_else_can_read() -> None:
    reader = UnitReader(TABLE)
    assert convert(reader.read("meV"), reader.read("J")).factor == 1.602176634e-22
    assert convert(reader.read("mic.ohm.m"), reader.read("ohm.m")).factor == 1e-6
    assert READER.read("mic.ohm.m").unit is None


def test_units_that_only_a_table_knows_convert_among_themselves() -> None:
    reader = UnitReader(TABLE)
    cells = [reader.read(text) for text in ("memu/mol", "emu/mol-Ce", "emu/mol")]
    milli, cerium, whole = cells
    assert convert(milli, cerium).factor == 1e-3
    assert convert(cerium, whole).status == "same"
    assert convert(whole, reader.read("K")).status == "incompatible"
