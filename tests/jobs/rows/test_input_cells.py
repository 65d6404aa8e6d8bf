"""What a cell is taken for: numbers, labels, lists, and what is neither."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.inputs.rows import InputRow, integer_of, number_of, quote, text_of
from runner.errors import DatasetError


def row(cell: Any) -> InputRow:
    return InputRow(file="f.csv", line=7, fields={"x": cell})


@given(st.floats(allow_nan=False))
def test_numbers_are_read_round_trip(value: float) -> None:
    if value == -math.inf:
        return
    assert number_of(repr(value)) == value
    assert number_of(value) == value


@given(st.integers(-(10**30), 10**30))
def test_whole_numbers_of_any_size_are_read_exactly(value: int) -> None:
    assert integer_of(str(value)) == integer_of(value) == value


@pytest.mark.parametrize(
    ("cell", "value"), [("3.0", 3), ("3.", 3), (3.0, 3), ("+4", 4), ("-1", -1)]
)
def test_a_whole_number_may_have_a_point_as_tables_with_gaps_write_it(
    cell: object, value: int
) -> None:
    assert integer_of(cell) == value


@pytest.mark.parametrize("cell", ["3.5", "x", " 3", "1_0", "٣", "1e3", True, 2.5, []])
def test_what_is_no_whole_number_is_refused(cell: object) -> None:
    with pytest.raises(ValueError, match="a whole number is expected"):
        integer_of(cell)


@pytest.mark.parametrize("cell", ["nan", "NaN", "-inf", "0,5", "1_0", "", True, {}])
def test_what_is_no_number_is_refused(cell: object) -> None:
    with pytest.raises(ValueError, match="a number is expected"):
        number_of(cell)


@pytest.mark.parametrize("cell", ["inf", "Inf", "+infinity"])
def test_a_threshold_may_be_infinite(cell: str) -> None:
    assert row(cell).number("x") == math.inf


def test_a_number_may_stand_for_an_id_but_nothing_else_may() -> None:
    assert text_of(12) == "12"
    cells: tuple[object, ...] = (1.5, True, [], {})
    for cell in cells:
        with pytest.raises(ValueError, match="put the text in quotes"):
            text_of(cell)


@pytest.mark.parametrize("cell", ["0", "1", 0, 1, "1.0"])
def test_a_label_is_0_or_1(cell: object) -> None:
    assert row(cell).label("x") in {0, 1}


@pytest.mark.parametrize(
    ("ask", "cell", "said"),
    [
        (InputRow.label, "2", "x is '2' (0 or 1 is expected)"),
        (InputRow.label, "yes", "x is 'yes' (0 or 1 is expected)"),
        (InputRow.label, None, "x is missing (fill it in or remove the row)"),
        (InputRow.count, "-1", "x is -1 (a whole number from 0 is expected)"),
        (InputRow.count, "1.5", "x is '1.5' (a whole number is expected)"),
        (InputRow.probability, "1.01", "x is '1.01' (a probability from 0 to 1"),
        (InputRow.probability, "inf", "x is 'inf' (a probability from 0 to 1"),
        (InputRow.probability, "nan", "x is 'nan' (a number is expected)"),
        (InputRow.text, "", "x is missing"),
        (InputRow.texts, {}, "x is an object (a list of texts is expected)"),
        (InputRow.texts, [None], "x holds an entry that is null (put the text in"),
        (InputRow.numbers, ["a"], "x holds a value that is 'a' (a number is expected)"),
        (InputRow.numbers, 3, "x is a number (a list is expected)"),
    ],
)
def test_a_complaint_names_file_line_column_and_the_way_out(
    ask: Any, cell: object, said: str
) -> None:
    with pytest.raises(DatasetError) as caught:
        ask(row(cell), "x")
    assert str(caught.value).startswith(f"f.csv line 7: {said}")


def test_a_word_is_one_of_those_that_are_allowed() -> None:
    assert row("NEG").one_of("x", ("NEG", "POS")) == "NEG"
    with pytest.raises(DatasetError, match=r"x is 'neg' \(one of NEG, POS is expected"):
        row("neg").one_of("x", ("NEG", "POS"))


def test_lists_are_joined_in_csv_and_lists_in_json() -> None:
    assert row("a|b|c").texts("x") == ("a", "b", "c")
    assert row(["a", 7]).texts("x") == ("a", "7")
    assert not row(None).texts("x")
    assert not row(None).numbers("x")
    assert row([1, 0.5]).numbers("x") == (1.0, 0.5)


def test_long_cells_are_cut_where_they_are_quoted() -> None:
    assert len(quote("x" * 100)) == 40
