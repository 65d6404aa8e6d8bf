"""The table of answers: replicates merged, disagreements, files, gold values."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from jobs.ask.inputs import load
from jobs.ask.job import job
from jobs.ask.score import score
from jobs.ask.settings import AskSettings
from jobs.kit.fields.parsing import AnswerQuote, FieldAnswer
from jobs.kit.fields.results import merged_answer, value_text
from jobs.kit.fields.spec import FieldSpec
from jobs.kit.grounding import GroundingLevel
from jobs.kit.testing import MemoryAnswers, artifact_texts, table_rows
from runner.errors import DatasetError
from runner.job import Task
from runner.scorecard import Scorecard
from tests.commands import siftlog
from tests.replacing import replace

RECIPE = """
items = "papers.csv"
text = "text"
[fields.enrolled]
ask = "How many were enrolled?"
type = "integer"
quote = true
[fields.design]
ask = "Which design?"
type = "one-of"
options = ["trial", "cohort"]
[fields.events]
ask = "Which events?"
type = "list"
"""

PAPERS = """id,title,text
a,First,We enrolled 12 men in a trial. Events were rash and fever.
b,Second,We enrolled 30 women in a cohort. =1+1 is no event.
"""

QUOTES = {
    "a": "We enrolled 12 men in a trial.",
    "b": "We enrolled 30 women in a cohort.",
}

Write = Callable[[Task], str | None]


def reply(enrolled: object, design: object, events: object, quote: str = "") -> str:
    given = {"quote": quote, "value": enrolled} if quote else enrolled
    return json.dumps({"enrolled": given, "design": design, "events": events})


def right(task: Task) -> str:
    values = {"a": (12, "trial", ["rash", "fever"]), "b": (30, "cohort", [])}
    return reply(*values[task.key], QUOTES[task.key])


def card(
    folder: Path,
    write: Write,
    gold: str | Path = "",
    *,
    models: tuple[str, ...] = ("m",),
    replicates: int = 1,
    recipe: str = RECIPE,
    **settings: Any,
) -> Scorecard:
    (folder / "papers.csv").write_text(PAPERS)
    (folder / "r.toml").write_text(recipe)
    if isinstance(gold, Path):
        settings["gold"] = gold
    elif gold:
        (folder / "gold.csv").write_text(gold)
        settings["gold"] = folder / "gold.csv"
    dataset = load(AskSettings(recipe=folder / "r.toml", boot_b=50, **settings))
    answers = MemoryAnswers.of_run(job, dataset, write, models, replicates)
    return score(dataset, answers)


def metrics(scored: Scorecard, model: str = "m") -> dict[str, float | None]:
    return {metric.path: metric.value for metric in scored.models[model]}


def test_without_gold_there_are_counts_and_no_accuracy(tmp_path: Path) -> None:
    scored = card(tmp_path, right)
    values = metrics(scored)
    assert values["all.answered"] == 5 / 6
    assert values["all.not_reported"] == 1 / 6
    assert values["all.grounded"] == 1
    assert not any("accuracy" in path for path in values)
    assert scored.headline == "all.grounded"
    assert any("--gold FILE" in finding.message for finding in scored.findings)


def test_a_row_has_value_quote_place_and_state(tmp_path: Path) -> None:
    first, second = table_rows(card(tmp_path, right), "answers")
    assert first["id"] == "a"
    assert first["enrolled"] == 12
    assert first["enrolled_quote"] == QUOTES["a"]
    assert first["enrolled_grounded"] is True
    assert first["events"] == "rash; fever"
    assert second["events"] is None
    assert second["events_unparsed"] is None


def test_the_columns_follow_from_the_recipe_alone(tmp_path: Path) -> None:
    answered = table_rows(card(tmp_path, right), "answers")
    failed = table_rows(card(tmp_path, lambda _: None), "answers")
    assert list(answered[0]) == list(failed[0])
    assert failed[0]["enrolled_unparsed"] == failed[0]["error"] == "ServerError"


def test_an_invented_quote_is_marked_and_counted(tmp_path: Path) -> None:
    scored = card(tmp_path, lambda _: reply(7, "trial", [], "Nobody wrote this at all"))
    assert metrics(scored)["field.enrolled.grounded"] == 0
    assert "ungrounded" in {finding.code for finding in scored.findings}
    assert table_rows(scored, "answers")[0]["enrolled_grounded"] is False
    assert '"ungrounded"' in artifact_texts(scored)["answers.html"].split("\n", 3)[3]


def test_models_that_differ_are_listed(tmp_path: Path) -> None:
    def write(task: Task) -> str:
        return (
            right(task) if task.model == "m" else reply(13, "trial", ["Fever", "rash"])
        )

    rows = table_rows(card(tmp_path, write, models=("m", "n")), "disagreements")
    listed = [(row["id"], row["field"], row["model"], row["value"]) for row in rows]
    assert listed[:2] == [("a", "enrolled", "m", "12"), ("a", "enrolled", "n", "13")]
    # neither order nor case makes two lists differ
    assert not [row for row in rows if row["id"] == "a" and row["field"] == "events"]


def test_replicates_are_merged_and_their_agreement_is_kept(tmp_path: Path) -> None:
    def write(task: Task) -> str:
        enrolled = (12, 12, 99)[task.replicate - 1]
        return reply(enrolled, "trial", ["rash"][: task.replicate])

    scored = card(tmp_path, write, replicates=3)
    row = table_rows(scored, "answers")[0]
    assert (row["enrolled"], row["enrolled_agreement"]) == (12, 2 / 3)
    between = {row["between"] for row in table_rows(scored, "disagreements")}
    assert between == {"replicates"}


INTEGER = FieldSpec(ask="n?", type="integer")
LIST = FieldSpec(ask="n?", type="list")


def quoted(value: object, level: GroundingLevel) -> FieldAnswer:
    return FieldAnswer(value=value, quotes=(AnswerQuote(text="q", level=level),))


@pytest.mark.parametrize(
    ("spec", "values", "merged"),
    [
        (INTEGER, [1, 2, 9, 4], 2),
        (INTEGER, [1, None, None], None),
        (INTEGER, [1, None], 1),
        (FieldSpec(ask="?"), ["A", "b", "a"], "A"),
        (FieldSpec(ask="?"), [None, "b", None], None),
        (LIST, [("a", "b"), ("B", "c"), ("b",)], ("b",)),
        (LIST, [("a",), ("b",)], None),
    ],
)
def test_the_rules_of_merging(
    spec: FieldSpec, values: list[object], merged: object
) -> None:
    answers = [FieldAnswer(value=value) for value in values]
    assert merged_answer(answers, spec).value == merged


def test_a_grounded_quote_is_preferred() -> None:
    absent, exact = GroundingLevel.ABSENT, GroundingLevel.EXACT
    merged = merged_answer([quoted(3, absent), quoted(3, exact)], INTEGER)
    assert merged.is_grounded


def test_text_of_a_value() -> None:
    assert value_text(900.0) == "900"
    assert value_text(("a;b", "c")) == '["a;b", "c"]'


# Gold values


GOLD = "id,enrolled,design,events\na,12,cohort,fever; nausea\nb,30,,not reported\n"


def test_gold_gives_accuracy_by_field_and_over_all(tmp_path: Path) -> None:
    scored = card(tmp_path, right, GOLD)
    values = metrics(scored)
    assert values["field.enrolled.accuracy"] == 1
    assert values["field.design.accuracy"] == 0
    assert values["field.events.accuracy"] == 0.5
    assert values["field.events.precision"] == values["field.events.recall"] == 0.5
    assert values["micro.accuracy"] == 3 / 5
    assert values["macro.accuracy"] == 0.5
    assert values["field.enrolled.accuracy~most_frequent"] == 0.5
    assert scored.worth_explaining == "a"
    assert table_rows(scored, "confusion") == [
        {"model": "m", "field": "design", "gold": "cohort", "answer": "trial", "n": 1}
    ]
    row = table_rows(scored, "answers")[1]
    assert (row["design_gold"], row["design_right"]) == (None, None)
    assert (row["events_gold"], row["events_right"]) == ("not reported", True)


def test_an_unread_answer_is_wrong_even_where_gold_is_not_reported(
    tmp_path: Path,
) -> None:
    gold = "id,enrolled\na,not reported\n"
    scored = card(tmp_path, lambda _: reply("many", "trial", []), gold)
    assert metrics(scored)["field.enrolled.accuracy"] == 0


def test_both_sides_of_a_comparison_have_the_same_items(tmp_path: Path) -> None:
    scored = card(tmp_path, right, GOLD, models=("m", "n"))
    one, other = (scored.comparable[m]["micro.accuracy"]() for m in ("m", "n"))
    assert list(one.items) == list(other.items)
    assert set(one.clusters) == {"a", "b"}


@pytest.mark.parametrize(
    ("gold", "sentence"),
    [
        (
            "id,enrolled\na,many\n",
            "gold.csv row 2: enrolled is 'many' (a whole number is expected).",
        ),
        (
            "id,design\na,trail\n",
            "gold.csv row 2: design is 'trail' (one of trial, cohort is expected).",
        ),
        (
            "id,enrolled\na,1\nc,2\n",
            (
                "gold.csv row 3: no item has the id 'c' (correct the id or remove the "
                "row)."
            ),
        ),
        (
            "id,enrolled\na,1\na,2\n",
            "gold.csv row 3: id 'a' also occurs in row 2 (remove one).",
        ),
        (
            "paper,enrolled\na,1\n",
            "gold.csv: no column id (name the column of the items' ids 'id').",
        ),
        (
            "id,number\na,1\n",
            (
                "gold.csv: no column has the name of a field (name at least one of "
                "enrolled, design, events)."
            ),
        ),
    ],
)
def test_bad_gold_is_one_sentence(tmp_path: Path, gold: str, sentence: str) -> None:
    with pytest.raises(DatasetError) as error:
        card(tmp_path, right, gold)
    assert str(error.value) == sentence


def test_gold_of_items_beyond_the_limit_is_left_out(tmp_path: Path) -> None:
    values = metrics(card(tmp_path, right, GOLD, limit=1))
    assert values["micro.accuracy"] == 1 / 3


def test_gold_may_be_a_column_of_the_items(tmp_path: Path) -> None:
    recipe = RECIPE.replace("quote = true", 'quote = true\ngold = "title"')
    with pytest.raises(
        DatasetError, match=r"papers.csv row 2: title is 'First' \(a wh"
    ):
        card(tmp_path, right, recipe=recipe)


# Files of a run


def test_a_run_writes_every_form_of_the_table(tmp_path: Path) -> None:
    (tmp_path / "papers.csv").write_text(PAPERS)
    (tmp_path / "r.toml").write_text(RECIPE)
    (tmp_path / "gold.csv").write_text(GOLD)
    done = siftlog("run", "ask", "--recipe", "r.toml", "--run-id", "r", cwd=tmp_path)
    folder = tmp_path / "runs" / "r" / "scores" / "1"
    names = {path.name for path in folder.iterdir()}
    assert {f"answers.{form}" for form in ("csv", "jsonl", "xlsx", "html")} <= names
    listed = [line for line in done.stdout.splitlines() if line.startswith("  ")]
    assert max(map(len, listed)) <= 80
    with (folder / "answers.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == ["a", "b"]
    later = siftlog("score", "r", "--gold", "gold.csv", cwd=tmp_path)
    assert "micro.accuracy" in later.stdout
    page = siftlog("explain", "r", "b", cwd=tmp_path).stdout
    assert "How many were enrolled?" in page
    assert (
        "summary    truth: not known; baseline/lexical: 3 of 3 fields answered" in page
    )
    assert "[[We enrolled 30 women in a cohort.]]" in page
    unknown = siftlog("explain", "r", "zz", cwd=tmp_path, check=False)
    assert unknown.stderr == (
        "siftlog: There is no item 'zz'; name an item by its id.\n"
    )


def test_a_partial_run_is_scored_without_its_open_items(tmp_path: Path) -> None:
    (tmp_path / "papers.csv").write_text(PAPERS)
    (tmp_path / "r.toml").write_text(RECIPE)
    dataset = load(AskSettings(recipe=tmp_path / "r.toml", boot_b=0))
    whole = MemoryAnswers.of_run(job, dataset, right)
    held = (whole.held[0], (replace(whole.held[1][0], reply=None, is_open=True),))
    scored = score(dataset, replace(whole, held=held))
    assert metrics(scored, "model")["all.asked"] == 3
    second = table_rows(scored, "answers")[1]
    assert (second["enrolled"], second["error"]) == (None, None)


def test_gold_may_be_json_lines(tmp_path: Path) -> None:
    (tmp_path / "gold.jsonl").write_text(
        '{"id": "a", "enrolled": 12, "events": ["fever", "rash"]}\n'
        '{"id": "b", "enrolled": null, "events": "not reported"}\n'
    )
    values = metrics(card(tmp_path, right, gold=tmp_path / "gold.jsonl"))
    assert values["micro.accuracy"] == 1
    assert values["field.events.f1"] == 1
