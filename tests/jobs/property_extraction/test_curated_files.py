"""Truth, rubric and tables as people write them; what is off is told in a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jobs.kit.inputs.rows import InputFindings
from jobs.property_extraction.curated_files import (
    RubricFile,
    TruthFile,
    read_clusters,
    read_rubric,
    read_space_groups,
    read_truth,
    read_unit_table,
)
from jobs.property_extraction.input_table import NA
from jobs.property_extraction.values.comparison import ComparisonKind
from runner.errors import DatasetError


def written(folder: Path, text: str, name: str = "file.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8", newline="")
    return path


def truth(folder: Path, text: str, na: str = "empty") -> TruthFile:
    return read_truth(written(folder, text), InputFindings(), NA[na])


def rubric(folder: Path, text: str, *, is_unknown_exact: bool = False) -> RubricFile:
    path = written(folder, text)
    return read_rubric(path, InputFindings(), is_unknown_exact=is_unknown_exact)


@pytest.mark.parametrize(
    "header",
    [
        "refno,label,property_value,property_unit",
        "paper,property_name,value_string,unit",
        "paper_id,property_name,my value,units",
        "\ufeffrefno,label,property_value,unit",
        "refno,label,value_number,the_value,unit",
    ],
)
def test_columns_go_by_several_names(tmp_path: Path, header: str) -> None:
    gap = "," if "value_number" in header else ""
    (row,) = truth(tmp_path, f"{header}\nP1,Tc,{gap}5,K\n").rows
    assert (row.refno, row.name, row.value, row.unit) == ("P1", "Tc", "5", "K")
    assert row.source_row == 2


def test_a_value_in_the_column_of_numbers_alone_is_blank(tmp_path: Path) -> None:
    text = "refno,label,value_string,value_number\nP1,Tc,,5\nP1,Tc,6,6\n"
    found = truth(tmp_path, text)
    assert [row.value for row in found.rows] == ["6"]
    assert found.blank == 1


def test_only_an_empty_cell_is_missing_unless_pandas_is_asked(tmp_path: Path) -> None:
    words = ("None", "NA", "N/A", "nan", "  ", "0")
    text = "refno,label,value\n" + "".join(f"P1,Tc,{word}\n" for word in words)
    found = truth(tmp_path, text)
    assert [row.value for row in found.rows] == ["None", "NA", "N/A", "nan", "0"]
    assert found.blank == 1
    found = truth(tmp_path, text, na="pandas")
    assert [row.value for row in found.rows] == ["0"]
    assert found.blank == 5


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("refno,label\nP1,Tc\n", "column 'property_value' is missing"),
        ("label,value\nTc,1\n", "column 'refno' is missing"),
        ("refno,label,value\n,Tc,1\n", "row 2: refno is blank"),
        ("refno,label,value\nP1,Tc,1\nP1, ,1\n", "row 3: label is blank"),
        ("refno,label,value\nP1,Tc\n", "row 2: 2 fields where the header has 3"),
        ("refno,label,value,value\nP1,Tc,1,1\n", "column 'value' occurs twice"),
        ("refno,label,value\n", "it has no rows"),
        ("", "the file is empty"),
    ],
)
def test_a_truth_that_is_off_is_told_in_one_sentence(
    tmp_path: Path, text: str, sentence: str
) -> None:
    with pytest.raises(DatasetError) as error:
        truth(tmp_path, text)
    told = str(error.value)
    assert told.startswith("file.csv")
    assert sentence in told
    assert told.count("\n") == 0


def test_a_label_goes_before_a_property_name_and_that_is_said_once(
    tmp_path: Path,
) -> None:
    noticed = InputFindings()
    text = "refno,property_name,label,value\nP1,tc,Tc,1\nP2,tc,Tc,2\n"
    found = read_truth(written(tmp_path, text), noticed)
    assert {row.name for row in found.rows} == {"Tc"}
    (finding,) = noticed.findings()
    assert (finding.code, finding.n) == ("two_name_columns", 1)


def test_words_of_a_rubric_are_read_whatever_their_case(tmp_path: Path) -> None:
    words = {
        " 0.1% si ": ComparisonKind.SI,
        "Categorical": ComparisonKind.CATEGORICAL,
        "PYMATGEN": ComparisonKind.PYMATGEN,
        "space group": ComparisonKind.SPACE_GROUP,
        "Space_Group": ComparisonKind.SPACE_GROUP,
        "exact": ComparisonKind.EXACT,
        "exact_match": ComparisonKind.EXACT,
    }
    lines = "".join(f"p{at},{word}\n" for at, word in enumerate(words))
    found = rubric(tmp_path, f"property_name,rubric\n{lines}").rubric
    assert [own.kind for own in found.properties.values()] == [*words.values()]
    assert found.kind("any other") is ComparisonKind.EXACT


def test_rubric_rows_that_are_none_are_counted(tmp_path: Path) -> None:
    text = (
        "property_name,rubric,condition_name\n"
        "a,exact,\n,exact,\nb,,\nc,#N/A,\nd,#NAME?,\ne,#REF!,\nf,#VALUE!,\n"
        "g,exact,temperature\n"
    )
    found = rubric(tmp_path, text)
    assert [*found.rubric.properties] == ["a"]
    assert (found.dropped, found.conditions) == (6, 1)


def test_of_a_repeated_name_the_last_row_holds_and_that_is_told(
    tmp_path: Path,
) -> None:
    noticed = InputFindings()
    text = "property_name,rubric\na,exact\nb,exact\na,categorical\n"
    found = read_rubric(written(tmp_path, text), noticed).rubric
    assert found.kind("a") is ComparisonKind.CATEGORICAL
    (finding,) = noticed.findings()
    assert (finding.code, finding.severity, finding.example) == (
        *("rubric_twice", "warn"),
        "a",
    )


def test_an_unknown_word_is_refused_unless_it_is_to_be_exact(tmp_path: Path) -> None:
    text = "property_name,rubric\na,5% SI\n"
    with pytest.raises(DatasetError, match=r"row 2: rubric is '5% SI'") as error:
        rubric(tmp_path, text)
    assert "--unknown-rubric exact" in str(error.value)
    found = rubric(tmp_path, text, is_unknown_exact=True).rubric
    assert found.kind("a") is ComparisonKind.EXACT


@pytest.mark.parametrize(
    ("read", "held"),
    [
        (read_clusters, ["a list"]),
        (read_clusters, {"p": "no object"}),
        (read_clusters, {"p": {"text": 1}}),
        (read_space_groups, ["a list"]),
        (read_space_groups, {"P1": 0}),
        (read_space_groups, {"P1": 231}),
        (read_space_groups, {"P1": True}),
        (read_space_groups, {"P1": "1"}),
    ],
)
def test_a_table_of_another_form_is_refused(
    tmp_path: Path, read: object, held: object
) -> None:
    path = written(tmp_path, json.dumps(held), "table.json")
    assert callable(read)
    with pytest.raises(DatasetError, match=r"^table\.json: .* expected"):
        read(path)
    path.write_text("{", encoding="utf-8")
    with pytest.raises(DatasetError, match=r"table\.json"):
        read(path)


def test_a_table_of_units_leaves_out_rows_without_a_unit_or_factor(
    tmp_path: Path,
) -> None:
    text = "property_unit,SI,conversion_factor\n,#N/A,\nkOe,T,0.1\nx,m,\n"
    (row,) = read_unit_table(written(tmp_path, text))
    assert (row.name, row.si, row.factor, row.source_row) == ("kOe", "T", 0.1, 3)


@pytest.mark.parametrize("factor", ["0", "-1", "inf", "nan", "1e400", "ten", "1_0"])
def test_a_factor_is_a_number_above_nothing(tmp_path: Path, factor: str) -> None:
    text = f"property_unit,SI,conversion_factor\nkOe,T,{factor}\n"
    with pytest.raises(DatasetError, match=r"file\.csv row 2: conversion_factor"):
        read_unit_table(written(tmp_path, text))
