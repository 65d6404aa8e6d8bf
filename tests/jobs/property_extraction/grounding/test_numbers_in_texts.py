"""Whether a number stands in a text, however it is printed."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.property_extraction.grounding import is_among, numbers_in
from jobs.property_extraction.values.numbers import read_number


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (2.8, "Tc = 2.8 K"),
        (2.8, "2.80(5) K"),
        (214.0, "a Debye temperature of 214(3) K"),
        (-1.15, "a slope of \u22121.15 T/K"),
        (1.15, "a slope of \u22121.15 T/K"),
        (300.0, "from 4\u2013300 K"),
        (300.0, "from 4 to 300K"),
        (1234.5, "1,234.5 or 1 234.5 of them"),
        (11.26078, "a = 11.260 78(1) \u00c5"),
        (2.6e-9, "2.6 \u00d7 10\u207b\u2079 m"),
        (2.6e-9, "2.6 x 10^{-9} m"),
        (2.6e-9, "2.6(1) \u00d7 10\u22129 m"),
        (2.6e-9, "2.6e-9 m"),
        (1e5, "of 10^5 A"),
        (17.2, "fields of Hc2(0) \u2243 17.2 kOe"),
        (0.5, "less than .5 K"),
    ],
)
def test_a_number_stands_where_its_digits_are_printed(value: float, text: str) -> None:
    assert is_among(value, numbers_in(text))


@pytest.mark.parametrize(
    ("value", "text"),
    [(2.8, "2.81 K"), (2.8, "12.8 K"), (1.0, "no number"), (-2.8, "2.8"), (2.8, "")],
)
def test_other_numbers_do_not(value: float, text: str) -> None:
    assert not is_among(value, numbers_in(text))


def test_the_slack_is_a_billionth() -> None:
    assert is_among(1.0, (1.0 + 9e-10,))
    assert not is_among(1.0, (1.0 + 2e-9,))


PRINTED = "0123456789.,()eE+- x\u00d710^{}\u00b1\u2212\u207b\u2075"


@given(st.text(alphabet=PRINTED, max_size=40))
def test_a_text_that_is_a_number_holds_it(text: str) -> None:
    held = numbers_in(text)
    assert list(held) == sorted(held)
    value = read_number(text, "scientific").value
    if value is not None:
        assert is_among(value, held) or is_among(-value, held)


@pytest.mark.realdata
def test_every_number_of_the_free_names_stands_in_its_quote(realdata: Path) -> None:
    path = realdata / "sci_llm/preds_Ru7B3_free_names.csv"
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    values = [read_number(row["value_string"], "scientific").value for row in rows]
    held = [
        is_among(value, numbers_in(row["evidence"]))
        for row, value in zip(rows, values, strict=True)
        if value is not None
    ]
    assert (len(rows), sum("..." in row["evidence"] for row in rows)) == (146, 29)
    assert (sum(held), len(held)) == (79, 79)
