"""What `prepare property-extraction lint` finds, in made-up files and in real ones."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from jobs.property_extraction.lint import ADVICE, LintKind
from tests.commands import Done, command
from tests.csv_files import rows, write_csv
from tests.jobs.property_extraction.real_predictions import GEMINI, RealPredictions

TRUTH = ("refno", "label", "property_value", "property_unit")
RUBRIC = ("property_name", "rubric", "SI")
UNITS = ("property_unit", "SI", "conversion_factor")

VALUES = (
    ("P1", "Tc", "5", "K"),
    ("P1", "Tc", "about 5 to 7 or so", "K"),
    ("P1", "Tc", "5", ""),
    ("P1", "Tc", "5", "furlongs-ish"),
    ("P1", "#NAME?", "5", "K"),
    ("P1", "prototype, '=odd'", "A15", "K"),
    ("P1", "prototype, '=odd'", "> 5", ""),
    ("P1", "nobody knows", "x", ""),
)
KINDS = (
    ("Tc", "0.1% SI", "K"),
    ("prototype, '=odd'", "categorical", ""),
    ("lattice constant a", "space_group", "m"),
    ("susceptibility", "0.1% SI", "furlongs-ish"),
)
FACTORS = (
    ("kOe", "T", "0.1"),
    ("meV", "J", "1.6e-22"),
    ("K", "m", "1"),
    ("furlongs-ish", "m", "201"),
)


def lint(*words: object) -> Done:
    return command("prepare", "property-extraction", "lint", *words)


@pytest.fixture
def files(tmp_path: Path) -> tuple[object, ...]:
    return (
        *("--truth", write_csv(tmp_path / "truth.csv", TRUTH, VALUES)),
        *("--rubric", write_csv(tmp_path / "rubric.csv", RUBRIC, KINDS)),
        *("--unit-table", write_csv(tmp_path / "units.csv", UNITS, FACTORS)),
    )


def found(done: Done) -> list[tuple[str, int, str]]:
    assert done.code == 0, done.err
    issues = json.loads(done.out)["issues"]
    return [(each["source"], each["row"], each["problem"]) for each in issues]


def test_every_odd_row_is_named_with_its_problem(files: tuple[object, ...]) -> None:
    assert found(lint(*files, "--json")) == [
        ("truth", 3, "no_number"),
        ("truth", 4, "no_unit"),
        ("truth", 6, "spreadsheet_error"),
        ("truth", 6, "not_in_rubric"),
        ("truth", 6, "unit_on_text"),
        ("truth", 7, "unit_on_text"),
        ("truth", 9, "not_in_rubric"),
        ("rubric", 4, "si_unfit"),
        ("unit_table", 3, "factor"),
        ("unit_table", 4, "factor"),
    ]
    # without the table nothing tells what this unit is
    unknown = [
        (source, row)
        for source, row, problem in found(lint(*files[:4], "--json"))
        if problem == "unknown_unit"
    ]
    assert unknown == [("truth", 5), ("rubric", 5)]


def test_a_rubric_that_slipped_by_a_row_is_seen(tmp_path: Path) -> None:
    """As where a lattice constant is compared as a space group."""
    words = ("lattice constant a", "space group", "Tc")
    kinds = (("0.1% SI", "m"), ("space group", ""), ("0.1% SI", "K"))
    right = [(name, *kind) for name, kind in zip(words, kinds, strict=True)]
    path = write_csv(tmp_path / "right.csv", RUBRIC, right)
    assert found(lint("--rubric", path, "--json")) == []
    units = [unit for _, unit in kinds]
    slipped = [
        (name, kind, unit)
        for name, (kind, _), unit in zip(
            words, kinds, (units[-1], *units[:-1]), strict=True
        )
    ]
    path = write_csv(tmp_path / "slipped.csv", RUBRIC, slipped)
    done = lint("--rubric", path, "--json")
    assert found(done) == [("rubric", 3, "si_unfit")]
    (issue,) = json.loads(done.out)["issues"]
    assert (issue["property_name"], issue["told"]) == (
        "space group",
        "space group in m",
    )


def test_how_many_rows_could_have_each_problem_is_told(
    files: tuple[object, ...],
) -> None:
    told = json.loads(lint(*files, "--json").out)
    tallies = {
        (own["source"], own["problem"]): (own["n"], own["of"])
        for own in told["problems"]
    }
    assert tallies["truth", "no_unit"] == (1, 4)
    assert tallies["truth", "unit_on_text"] == (2, 4)
    assert tallies["unit_table", "factor"] == (2, 4)
    assert told["rows"] == {"truth": 8, "rubric": 4, "unit_table": 4}
    assert told["share"] == 1 - 8 / 16


def test_without_a_rubric_nothing_is_said_that_follows_of_one(
    files: tuple[object, ...],
) -> None:
    done = lint(*files[:2], "--json")
    assert found(done) == [("truth", 6, "spreadsheet_error")]
    assert lint(*files[:2], "--fail-under", "0.9").code == 6
    assert lint(*files[:2], "--fail-under", "0.8").code == 0


def test_the_file_holds_every_row_whatever_its_name(
    files: tuple[object, ...], tmp_path: Path
) -> None:
    out = tmp_path / "lint.csv"
    done = lint(*files, "--out", out)
    assert done.code == 0, done.err
    written = rows(out)
    assert list(written[0]) == ["source", "row", "problem", "property_name", "told"]
    assert len(written) == 10
    assert all(len(line) <= 80 for line in done.out.splitlines())
    for problem in {row["problem"] for row in written}:
        assert f"{problem}: {ADVICE[LintKind(problem)]}" in done.out


def test_nothing_to_look_at_is_refused_in_one_sentence(tmp_path: Path) -> None:
    done = lint("--papers", tmp_path)
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "--truth FILE, --rubric FILE or --unit-table FILE" in done.err
    done = lint("--truth", tmp_path / "none.csv")
    assert (done.code, done.err.count("\n")) == (1, 1)


def test_the_sample_has_something_to_find() -> None:
    problems = {problem for _, _, problem in found(lint("--json"))}
    assert {"spreadsheet_error", "no_unit", "no_number", "factor"} <= problems


@pytest.mark.realdata
def test_real_inputs_are_as_odd_as_is_known(real: RealPredictions) -> None:
    table = real.folder / "scoring_assets/si_conversion_factors.csv"
    words = ("--truth", real.truth, "--rubric", real.rubric, "--unit-table", table)
    told = json.loads(lint(*words, "--json").out)
    tallies = {
        (own["source"], own["problem"]): (own["n"], own["of"])
        for own in told["problems"]
    }
    assert told["rows"] == {"truth": 126, "rubric": 99, "unit_table": 162}
    assert tallies["truth", "spreadsheet_error"] == (2, 126)
    assert tallies["truth", "not_in_rubric"] == (2, 126)
    assert tallies["truth", "no_unit"] == (13, 78)
    assert tallies["truth", "unit_on_text"] == (13, 48)
    assert tallies["rubric", "si_unfit"] == (0, 20)
    assert tallies["rubric", "unknown_unit"] == (0, 79)
    missing = {
        each["property_name"]
        for each in told["issues"]
        if each["problem"] == "not_in_rubric"
    }
    assert missing == {"#NAME?"}
    wrong = {each["property_name"] for each in told["issues"] if "not" in each["told"]}
    assert {"meV", "m.ohm.cm", "mW/cm.K"} <= wrong


@pytest.mark.realdata
def test_a_scoring_has_the_odd_rows_among_its_files(real: RealPredictions) -> None:
    words = ("--truth", real.truth, "--rubric", real.rubric, "--json")
    known = json.loads(lint(*words).out)["issues"]
    written = rows(real.run(GEMINI) / "scores/1/lint.csv")
    assert written == [
        {name: str(cell) for name, cell in each.items()} for each in known
    ]
