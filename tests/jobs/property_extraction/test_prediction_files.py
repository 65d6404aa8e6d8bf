"""Predictions made elsewhere, through the command: what is read, kept and refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.property_extraction.prediction_files import prediction_files, read_predictions
from jobs.property_extraction.rows import ImportedRow, parse_rows, text_of_rows
from runner.errors import DatasetError
from runner.messages import ParseFailure, Reply
from runner.table_files import as_meant, harmless
from tests.commands import Done, command
from tests.csv_files import rows, write_csv

COLUMNS = ("refno", "property_name", "value_string", "units")
TRUTH = ("refno", "label", "property_value", "unit")
ODD = (
    "-slope in Hc2 vs T",
    "=1+1",
    "+x",
    "@y",
    "*shape",
    "#NAME?",
    "'quoted'",
    "'=twice",
    'said "so", and\nso on',
    "J//ab-plane",
    "../../up",
    "H ⊥ab-plane",
    "İ",
    "nul",
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)


def told(done: Done, sentence: str) -> None:
    assert done.code in {1, 2}
    assert sentence in done.err
    assert done.err.startswith("siftlog: ")
    assert done.err.count("\n") == 1


def imported(folder: Path, *words: object, run: str = "r") -> Done:
    return command(
        *(
            "import",
            "property-extraction",
            "--no-report",
            "--runs-dir",
            folder / "runs",
        ),
        *("--run-id", run, "--truth", folder / "truth.csv", *words),
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_csv(tmp_path / "truth.csv", TRUTH, [("P1", "Tc", "5", "K")])
    return tmp_path


def test_fields_go_by_several_names_and_others_are_kept(tmp_path: Path) -> None:
    path = write_csv(
        tmp_path / "preds.csv",
        (
            *("refno", "property_name", "value_string", "value_number", "units"),
            *("material_or_system", "conditions.field", "conditions.temperature"),
            *("location.evidence", "id", "note"),
        ),
        [
            ("P1", "Tc", "", "5.2", "K", "Nb", "1 T", "", "it is 5.2 K", "a", "x"),
            ("P1", "Tc", "None", "7", "", "", "1 T", "2 K", "", "", ""),
        ],
    )
    first, second = read_predictions(path)
    assert (first.value, first.unit, first.material) == ("5.2", "K", "Nb")
    assert (first.condition, first.quote) == ("field=1 T", "it is 5.2 K")
    assert first.extra == {"id": "a", "note": "x"}
    assert (second.value, second.condition) == ("None", "field=1 T; temperature=2 K")
    assert [first.line, second.line] == [2, 3]


PUBLISHED = (
    *("refno", "property_name", "property_value", "property_unit"),
    *("gpt-x-pred-value", "gpt-x-pred-unit", "note"),
)


def published(folder: Path) -> Path:
    """Truth and prediction in one file, as published tables have them."""
    lines = [(f"P{n}", "Tc", f"{n}", "K", f"{n + n % 2}", "K", "x") for n in range(9)]
    write_csv(folder / "truth.csv", TRUTH, [line[:4] for line in lines])
    return write_csv(folder / "both.csv", PUBLISHED, lines)


def test_truth_is_not_taken_for_the_prediction(tmp_path: Path) -> None:
    path = published(tmp_path)
    done = imported(tmp_path, "--preds", path, "--model", "m")
    told(done, "both.csv: property_value, gpt-x-pred-value could each be value_string")
    assert "--map gpt-x-pred-value=value_string" in done.err
    words = ("--preds", path, "--model", "m", "--map", "gpt-x-pred-value=value_string")
    told(imported(tmp_path, *words), "property_unit, gpt-x-pred-unit could each be un")
    done = imported(tmp_path, *words, "--map", "gpt-x-pred-unit=units")
    assert done.code == 0, done.err
    assert (
        "both.csv: refno from refno, name from property_name, value from "
        "gpt-x-pred-value, unit from gpt-x-pred-unit; not used: property_value, "
        "property_unit, note." in done.err
    )
    card = json.loads((tmp_path / "runs/r/scores/1/scorecard.json").read_text())
    metrics = card["models"]["m"]["metrics"]
    assert metrics["precision"]["value"] == pytest.approx(5 / 9)


def test_a_perfect_score_and_a_foreign_rubric_are_findings(tmp_path: Path) -> None:
    path = published(tmp_path)
    rubric = write_csv(
        tmp_path / "rubric.csv", ("property_name", "rubric"), [("tc (K)", "exact")]
    )
    words = ("--preds", path, "--model", "m", "--rubric", rubric)
    mapped = ("--map", "property_value=value_string", "--map", "property_unit=units")
    assert imported(tmp_path, *words, *mapped).code == 0
    card = json.loads((tmp_path / "runs/r/scores/1/scorecard.json").read_text())
    found = {own["code"]: own for own in card["findings"]}
    assert found["all_correct"]["n"] == 9
    assert "9 of 9 values equal the truth" in found["all_correct"]["message"]
    assert found["rubric_names_none"]["example"] == "Tc; nearest in the rubric: tc (K)"


@pytest.mark.parametrize("form", ["semicolons", "jsonl", "list"])
def test_predictions_may_have_semicolons_or_be_json(tmp_path: Path, form: str) -> None:
    row = {"paper": "P1", "property_name": "Tc", "value_string": "5,2", "units": "K"}
    more = {**row, "location": {"evidence": "it is 5,2 K"}, "value_number": 5.20}
    path = tmp_path / "preds.csv"
    if form == "semicolons":
        path.write_text(f"{';'.join(row)}\n{';'.join(row.values())}\n", "utf-8")
    else:
        text = json.dumps(more) if form == "jsonl" else json.dumps([more], indent=2)
        path.write_text(text, "utf-8")
    (found,) = read_predictions(path)
    assert (found.refno, found.name, found.value) == ("P1", "Tc", "5,2")
    assert found.quote == ("" if form == "semicolons" else "it is 5,2 K")


def test_files_of_a_folder_come_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("b.csv", "a.csv", "notes.txt"):
        (tmp_path / name).touch()
    assert [path.name for path in prediction_files([tmp_path])] == ["a.csv", "b.csv"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(DatasetError, match=r"no \*\.csv file"):
        list(prediction_files([tmp_path / "a.csv", tmp_path / "empty"]))


@given(st.lists(st.tuples(TEXTS, TEXTS, TEXTS), max_size=4))
def test_rows_come_out_of_the_log_as_they_went_in(
    fields: list[tuple[str, str, str]],
) -> None:
    given_rows = [
        ImportedRow(row=number, name=name, value=value, quote=quote)
        for number, (name, value, quote) in enumerate(fields, start=2)
    ]
    found = parse_rows("P1", Reply(text=text_of_rows(given_rows)))
    assert not isinstance(found, ParseFailure)
    assert [(row.name, row.value, row.quote) for row in found] == fields
    assert {row.refno for row in found} <= {"P1"}


@pytest.mark.parametrize("text", [None, "", "[]", '{"rows": [{"row": 1}]}', "{"])
def test_an_answer_of_another_form_is_none(text: str | None) -> None:
    assert isinstance(parse_rows("P1", Reply(text=text)), ParseFailure)


@pytest.mark.parametrize(
    ("columns", "lines", "sentence"),
    [
        (("refno", "value"), [("P1", "5")], "column 'property_name' is missing"),
        (("refno", "property_name"), [("P1", "Tc")], "column 'value_string'"),
        (COLUMNS, [("", "Tc", "5", "K")], "preds.csv row 2: refno is blank"),
        (
            COLUMNS,
            [("P1", "Tc", "5", "K"), ("P1", " ", "5", "K")],
            "preds.csv row 3: property_name is blank",
        ),
        (COLUMNS, [("P1", "Tc", "5")], "row 2: 3 fields where the header has 4"),
        (COLUMNS, [], "hold no prediction"),
        (
            (*COLUMNS, "replicate"),
            [("P1", "Tc", "5", "K", "0")],
            "row 2: replicate is '0'",
        ),
        ((*COLUMNS, "model"), [("P1", "Tc", "5", "K", "")], "row 2: no model is named"),
    ],
)
def test_a_file_that_is_off_is_told_in_a_sentence_and_nothing_is_written(
    folder: Path,
    columns: tuple[str, ...],
    lines: list[tuple[str, ...]],
    sentence: str,
) -> None:
    path = write_csv(folder / "preds.csv", columns, lines)
    words = () if "model" in columns else ("--model", "m")
    told(imported(folder, "--preds", path, *words), sentence)
    assert not (folder / "runs" / "r").exists()


@pytest.mark.parametrize(
    ("setting", "text", "sentence"),
    [
        ("truth", "refno,label,value\n,Tc,5\n", "truth.csv row 2: refno is blank"),
        ("rubric", "property_name,rubric\na,5%\n", "rubric.csv row 2: rubric is '5%'"),
        ("clusters", "[]", "clusters.csv: a list"),
        ("space-groups", '{"P1": 0}', "space-groups.csv: P1 is 0"),
        ("unit-table", "property_unit\nK\n", "unit-table.csv: column 'SI' is missing"),
        ("aliases", '{"a": "b", "b": "a"}', "aliases.csv"),
    ],
)
def test_an_input_that_is_off_is_told_and_nothing_is_written(
    folder: Path, setting: str, text: str, sentence: str
) -> None:
    path = write_csv(folder / "preds.csv", COLUMNS, [("P1", "Tc", "5", "K")])
    off = folder / f"{setting}.csv"
    off.write_text(text, encoding="utf-8")
    words = ("--model", "m", f"--{setting}", off)
    told(imported(folder, "--preds", path, *words), sentence)
    assert not (folder / "runs" / "r").exists()


def test_a_format_that_no_file_has_is_refused(folder: Path) -> None:
    path = write_csv(folder / "preds.csv", COLUMNS, [("P1", "Tc", "5", "K")])
    done = imported(folder, "--preds", path, "--model", "m", "--format", "xml")
    told(done, "no format 'xml'; choose one of predictions, verdicts")


def test_files_that_cannot_be_read_can_be_left_out(folder: Path) -> None:
    preds = folder / "preds"
    write_csv(preds / "a.csv", COLUMNS, [("P1", "Tc", "5", "K")])
    write_csv(preds / "b.csv", ("nothing",), [("x",)])
    told(imported(folder, "--preds", preds, "--model", "m"), "b.csv: column")
    done = imported(folder, "--preds", preds, "--model", "m", "--skip-bad")
    # the run says that something failed, and what
    assert (done.code, "1 imported task had failed" in done.err) == (3, True)
    tasks = command("tasks", folder / "runs/r", "--filter", "state:failed", "--json")
    (failed,) = map(json.loads, tasks.out.splitlines())
    assert (failed["key"], failed["error"]) == ("b.csv", "unreadable_file")
    (paper,) = rows(folder / "runs/r/scores/1/papers.csv")
    assert (paper["refno"], paper["tp"]) == ("P1", "1")


def test_any_name_is_scored_and_none_names_a_file(folder: Path) -> None:
    cells = [harmless(name) if name.startswith("'") else name for name in ODD]
    write_csv(folder / "truth.csv", TRUTH, [("P1", cell, "5", "K") for cell in cells])
    path = write_csv(
        folder / "preds.csv",
        COLUMNS,
        [("P1", cell, str(number % 2 + 4), "K") for number, cell in enumerate(cells)],
    )
    before = {each for each in folder.rglob("*") if each.is_file()}
    done = imported(folder, "--preds", path, "--model", "../m/..")
    assert done.code == 0, done.err
    made = folder / "runs/r/scores/1"
    matches = rows(made / "score_pr_matches.csv")
    assert {as_meant(row["property_name"]) for row in matches} == {*ODD}
    formulas = ("=", "+", "-", "@")
    assert not [row for row in matches if row["property_name"].startswith(formulas)]
    summary = {
        as_meant(row["property_name"]): row["tp"]
        for row in rows(made / "score_pr_summary.csv")
    }
    assert summary == {name: str(at % 2) for at, name in enumerate(ODD)}
    draft = json.loads((made / "property_aliases.json").read_text("utf-8"))
    assert not draft
    review = rows(made / "alias_candidates_review.csv")
    assert {as_meant(row["pred_name"]) for row in review} == {*ODD[::2]}
    after = {each for each in folder.rglob("*") if each.is_file()} - before
    assert all(each.is_relative_to(folder / "runs" / "r") for each in after)
    assert not [each for each in after for name in ODD if each.stem in {name, "up"}]


def test_what_a_scoring_wrote_is_read_back_as_it_was_meant(folder: Path) -> None:
    """The rows of a scoring are predictions and truth again, with every odd name."""
    path = write_csv(
        folder / "preds.csv",
        COLUMNS,
        [("P1", harmless(name), harmless(name), "") for name in ODD],
    )
    assert imported(folder, "--preds", path, "--model", "m").code == 0
    written = folder / "runs/r/scores/1/score_pr_rows.csv"
    own = [row for row in rows(written) if row["status"] == "FP"]
    again = write_csv(
        folder / "again.csv",
        ("refno", "property_name", "value_string"),
        [(row["refno"], row["raw_pred_name"], row["pred_value"]) for row in own],
    )
    found = list(read_predictions(again))
    assert sorted((each.name, each.value) for each in found) == sorted(
        (name, name) for name in ODD
    )


def test_each_model_of_a_file_has_a_folder_of_its_own(folder: Path) -> None:
    models = ("a/b", "../up", "a--b")
    path = write_csv(
        folder / "preds.csv",
        (*COLUMNS, "model"),
        [("P1", "Tc", str(5 + at), "K", model) for at, model in enumerate(models)],
    )
    done = imported(folder, "--preds", path)
    assert done.code == 0, done.err
    made = folder / "runs/r/scores/1"
    compared = {row["model"]: row["tp"] for row in rows(made / "comparison.csv")}
    assert compared == {"a/b": "1", "../up": "0", "a--b": "0"}
    summaries = [*folder.rglob("score_pr_summary.csv")]
    assert len(summaries) == len({path.parent.name for path in summaries}) == 3
    assert {path.parent.parent for path in summaries} == {made}
