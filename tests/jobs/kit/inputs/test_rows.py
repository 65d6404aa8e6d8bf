"""What a cell is taken for: numbers, labels, lists, and what is neither.

`--map OLD=NEW`: which column holds which field, and what is said where none does.
"""

from __future__ import annotations

import math
from typing import Annotated, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, create_model

from jobs.kit.inputs import cells as types
from jobs.kit.inputs.cells import integer_of, number_of, quote, text_of
from jobs.kit.inputs.column_map import (
    MAX_NAMES,
    column_map,
    describe_columns,
    keys_of,
    missing_column,
    name_list,
    nearest,
    pairs_within,
    rename_keys,
)
from jobs.kit.inputs.rows import RowModel, RowSource, validated_value
from runner.errors import DatasetError, UsageError

SOURCE = RowSource(file="f.csv")


def value_of(kind: Any, cell: Any) -> Any:
    """What a row model makes of a cell in a column of that type."""
    model = create_model("Row", __base__=RowModel, x=(kind, ...))
    return model.at(SOURCE, 7, {"x": cell}).model_dump()["x"]


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


@pytest.mark.parametrize(
    "cell", ["nan", "NaN", "-inf", "0,5", "1_0", "", True, {}, 10**400]
)
def test_what_is_no_number_is_refused(cell: object) -> None:
    with pytest.raises(ValueError, match="a number is expected"):
        number_of(cell)


@pytest.mark.parametrize("cell", ["inf", "Inf", "+infinity"])
def test_a_threshold_may_be_infinite(cell: str) -> None:
    assert value_of(types.Number, cell) == math.inf


def test_a_number_may_stand_for_an_id_but_nothing_else_may() -> None:
    assert text_of(12) == "12"
    cells: tuple[object, ...] = (1.5, True, [], {})
    for cell in cells:
        with pytest.raises(ValueError, match="put the text in quotes"):
            text_of(cell)


@pytest.mark.parametrize("cell", ["0", "1", 0, 1, "1.0"])
def test_a_label_is_0_or_1(cell: object) -> None:
    assert value_of(types.Label, cell) in {0, 1}


@pytest.mark.parametrize(
    ("kind", "cell", "said"),
    [
        (types.Label, "2", "x is '2' (0 or 1 is expected)"),
        (types.Label, "yes", "x is 'yes' (0 or 1 is expected)"),
        (types.Label, None, "x is missing (fill it in or remove the row)"),
        (types.Count, "-1", "x is -1 (a whole number from 0 is expected)"),
        (types.Count, "1.5", "x is '1.5' (a whole number is expected)"),
        (types.Probability, "1.01", "x is '1.01' (a probability from 0 to 1"),
        (types.Probability, "inf", "x is 'inf' (a probability from 0 to 1"),
        (types.Probability, "nan", "x is 'nan' (a number is expected)"),
        (types.Filled, "", "x is missing"),
        (types.Texts, {}, "x is an object (a list of texts is expected)"),
        (types.Texts, [None], "x holds an entry that is null (put the text in"),
        (types.Numbers, ["a"], "x holds a value that is 'a' (a number is expected)"),
        (types.Numbers, 3, "x is a number (a list is expected)"),
    ],
)
def test_a_complaint_names_file_line_column_and_the_way_out(
    kind: Any, cell: object, said: str
) -> None:
    with pytest.raises(DatasetError) as caught:
        value_of(kind, cell)
    assert str(caught.value).startswith(f"f.csv line 7: {said}")


def test_a_complaint_about_a_value_in_objects_names_its_way() -> None:
    studies = TypeAdapter(dict[str, list[dict[str, types.Count]]])
    value = {"studies": [{"n": "3"}, {"n": "many"}]}
    with pytest.raises(DatasetError, match=r"^a\.json: studies\[1\]: n is 'many' \("):
        validated_value(studies, value, "a.json")
    del value["studies"][1]
    assert validated_value(studies, value, "a.json") == {"studies": [{"n": 3}]}


def test_a_word_is_one_of_those_that_are_allowed() -> None:
    kind = Annotated[str, types.one_of(("NEG", "POS"))]
    assert value_of(kind, "NEG") == "NEG"
    with pytest.raises(DatasetError, match=r"x is 'neg' \(one of NEG, POS is expected"):
        value_of(kind, "neg")


def test_lists_are_joined_in_csv_and_lists_in_json() -> None:
    assert value_of(types.Texts, "a|b|c") == ("a", "b", "c")
    assert value_of(types.Texts, ["a", 7]) == ("a", "7")
    assert not value_of(types.Texts, None)
    assert not value_of(types.Numbers, None)
    assert value_of(types.Numbers, [1, 0.5]) == (1.0, 0.5)


def test_long_cells_are_cut_where_they_are_quoted() -> None:
    assert len(quote("x" * 100)) == 40


FIELDS = ("pmid", "title", "prob_*")
COLUMNS = ("PubMed ID", "heading", "p", "title")


def test_a_pair_is_read_in_the_order_that_makes_sense() -> None:
    assert column_map(("PubMed ID=pmid",), FIELDS, COLUMNS) == {"PubMed ID": "pmid"}
    assert column_map(("pmid=PubMed ID",), FIELDS, COLUMNS) == {"PubMed ID": "pmid"}
    assert column_map((" p = prob_x ",), FIELDS, COLUMNS) == {"p": "prob_x"}
    # both sides are columns and fields: the name in the file comes first
    both = column_map(("title=pmid",), FIELDS, ("title", "pmid"))
    assert both == {"title": "pmid"}


@pytest.mark.parametrize(
    ("pair", "said"),
    [
        ("heading", r"write OLD=NEW, .* --map PubMed=pmid"),
        ("=pmid", "write OLD=NEW"),
        (
            "headng=title",
            r"no file has a column headng \(found: .*; nearest: heading\)",
        ),
        ("heading=titel", r"there is no field titel \(fields: .*; nearest: title\)"),
        ("nothing=nowhere", r"there is no field nowhere \(fields: pmid, title, prob_"),
    ],
)
def test_a_pair_that_fits_nothing_is_answered_with_the_nearest(
    pair: str, said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        column_map((pair,), FIELDS, COLUMNS)


def test_one_column_cannot_be_two_fields() -> None:
    with pytest.raises(UsageError, match="heading is mapped to title already"):
        column_map(("heading=title", "heading=pmid"), FIELDS, COLUMNS)


def test_pairs_of_other_files_are_left_aside() -> None:
    pairs = ("heading=title", "abs=pmid", "pmid=PubMed ID")
    assert pairs_within(pairs, FIELDS, COLUMNS) == ["heading=title", "pmid=PubMed ID"]


def test_nearest_names_ignore_case_and_punctuation() -> None:
    assert nearest("paper_pmid", ["PMID", "Paper PMID", "year"]) == [
        "Paper PMID",
        "PMID",
    ]
    assert nearest("auroc", ["auprc", "AUROC (test)", "k"])[0] == "AUROC (test)"
    assert nearest("x", ["---", ""]) == []


def test_long_and_hostile_names_stay_short() -> None:
    names = ["a" * 3000, "b\x1b[2J", *map(str, range(90))]
    said = str(missing_column("f.csv", "refno", names, takes_map=True))
    assert len(said) < 600
    assert "\x1b" not in said
    assert f"and {len(names) - MAX_NAMES} more" in said
    assert said.endswith("or pass --map COLUMN=refno.")
    assert "--map" not in str(missing_column("f.csv", "refno", names))
    assert name_list([]) == "none"
    assert describe_columns(["Titel"], ["title"]) == "found: Titel; Titel may be title"


def test_keys_are_renamed_at_every_depth() -> None:
    value = {"a": [{"b": 1}, {"a": {"b": 2}}]}
    assert list(keys_of(value)) == ["a", "b"]
    assert rename_keys(value, {"b": "c"}) == {"a": [{"c": 1}, {"a": {"c": 2}}]}
    assert rename_keys(value, {}) is value
