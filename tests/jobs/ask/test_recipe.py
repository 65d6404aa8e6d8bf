"""Recipes: what they declare, and one sentence for each mistake in them."""

from __future__ import annotations

import tomllib
from contextlib import suppress
from pathlib import Path

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from jobs.ask.inputs import SAMPLE
from jobs.ask.recipe import read_recipe
from jobs.ask.settings import AskSettings, question_recipe, recipe_of
from jobs.kit.fields.conditions import Condition, ConditionError
from runner.errors import DatasetError, RunnerError

BASE = """items = "papers/"
[fields.enrolled]
ask = "How many?"
type = "integer"
quote = true
[fields.design]
ask = "Which design?"
type = "one-of"
options = ["RCT", "other"]
"""


@pytest.mark.parametrize(
    ("written", "sentence"),
    [
        (
            BASE.replace("quote", "qoute"),
            (
                "r.toml line 5: [fields.enrolled] has no key 'qoute' (did you mean "
                "'quote'?)."
            ),
        ),
        (
            BASE.replace('"integer"', '"intger"'),
            (
                "r.toml line 4: type = 'intger' in [fields.enrolled] is unknown "
                "(did you mean 'integer'?)."
            ),
        ),
        ("itmes = 1\n" + BASE, "r.toml line 1: the recipe has no key 'itmes' "),
        (
            "chunk = { tokens = 99, overlp = 3 }\n" + BASE,
            "r.toml line 1: [chunk] has no key 'overlp' (did you mean 'overlap'?).",
        ),
        (
            BASE.replace('ask = "How many?"', ""),
            "[fields.enrolled] needs the key 'ask'",
        ),
        ('items = "x/"', "r.toml: it asks nothing; add a [fields.NAME] table"),
        ("[fields]", "r.toml: it asks nothing; add a [fields.NAME] table"),
        ("items = ", "r.toml: not valid TOML, "),
        (
            BASE + '[fields.model]\nask = "?"',
            "r.toml line 10: [fields.model]: 'model' is a column of the table of ",
        ),
        (
            BASE + '[fields.enrolled_quote]\nask = "?"',
            "the field 'enrolled_quote' has the name of a column of the field ",
        ),
        (
            BASE + '[fields.Size]\nask = "?"',
            "r.toml line 10: [fields.Size]: 'Size' is not a field name",
        ),
        (
            BASE + '[fields.x]\nask = "?"\ntype = "one-of"',
            "r.toml line 10: [fields.x]: one-of needs at least two 'options'.",
        ),
        (
            BASE + '[fields.x]\nask = "?"\ntype = "object"',
            "an object needs its parts, as [fields.NAME.fields.PART] tables",
        ),
        (
            BASE
            + '[fields.x]\nask = "?"\ntype = "object"\n[fields.x.fields.a]\ntipe = 1',
            (
                "r.toml line 14: [fields.x.fields.a] has no key 'tipe' (did you mean "
                "'type'?)"
            ),
        ),
        (
            BASE + "[[then]]\nwhen = 'desing == \"RCT\"'\n[then.fields.y]\nask = '?'",
            (
                "[[then]] number 1: when = 'desing == \"RCT\"': there is no field "
                "'desing' "
                "in [fields] (did you mean 'design'?)."
            ),
        ),
        (
            BASE + "[[then]]\nwhen = 'design == \"RTC\"'\n[then.fields.y]\nask = '?'",
            "'RTC' is not one of the options RCT, other.",
        ),
        (
            BASE + '[[then]]\nwhen = "enrolled > 2"\n[then.fields.design]\nask = "?"',
            "the field 'design' is declared twice (rename one).",
        ),
        (
            BASE + '[[check]]\nfields = ["enroled"]',
            "[[check]] number 1: there is no field 'enroled' (did you mean 'enrolled'?",
        ),
        (
            BASE + '[[check]]\nfields = ["design"]',
            "the field 'design' has no quote to check (write quote = true",
        ),
        (
            BASE + '[[examples]]\ntext = "?"\nanswers = { enroled = 1 }',
            "[[examples]] number 1: there is no field 'enroled'",
        ),
    ],
)
def test_a_mistake_is_one_sentence_with_its_place(written: str, sentence: str) -> None:
    with pytest.raises(DatasetError) as caught:
        read_recipe(written, "r.toml")
    assert sentence in str(caught.value)
    assert str(caught.value).endswith(".")


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=8), max_size=3))
def test_whatever_a_table_holds_it_is_read_or_refused(table: dict[str, str]) -> None:
    for written in (table, {"fields": table}, {"fields": {"x": table}}):
        with suppress(DatasetError):
            read_recipe(tomli_w.dumps(written))


@given(st.text(max_size=40))
def test_a_condition_is_evaluated_or_refused(text: str) -> None:
    try:
        condition = Condition.parse(text)
    except ConditionError:
        return
    assert condition.holds({"n": 1}) in {True, False}


@pytest.mark.parametrize(
    ("condition", "holds"),
    [
        ('design == "RCT" and n > 20', True),
        ('design in ["cohort", "RCT"]', True),
        ("not blinded", False),
        ("blinded == true", True),
        ("dose == null", True),
        ("dose != null", False),
        ("dose != 5", False),
        ("dose < 5 or n >= 21", True),
        ("20 < n <= 21", True),
        ("design > 5", False),
        ("n < -1", False),
    ],
)
def test_conditions_compare_values(condition: str, holds: bool) -> None:
    values = {"design": "RCT", "n": 21, "blinded": True, "dose": None}
    assert Condition.parse(condition).holds(values) is holds


@pytest.mark.parametrize(
    "text", ["n.__class__", "f(1)", "n + 1 > 2", "[x for x in n]", "n is 1", "", "n ="]
)
def test_a_condition_runs_no_code(text: str) -> None:
    with pytest.raises(ConditionError, match="such as"):
        Condition.parse(text)


def test_questions_make_a_recipe() -> None:
    settings = AskSettings(
        question=("n=How many, in all?", "Blinded?", "Dose?", "Design?"),
        type=("integer", "boolean", "number:mg", "RCT|cohort"),
        quote=False,
    )
    recipe = recipe_of(settings)
    assert list(recipe.fields) == ["n", "answer2", "answer3", "answer4"]
    assert recipe.fields["n"].ask == "How many, in all?"
    assert recipe.fields["answer3"].unit == "mg"
    assert recipe.fields["answer4"].options == ("RCT", "cohort")
    assert tomllib.loads(question_recipe(settings))["fields"]["n"]["quote"] is False


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({}, "Nothing is asked: give --question"),
        ({"question": ("a", "b"), "type": ("list",) * 3}, "2 --question but 3 --type"),
        ({"question": ("a",), "type": ("intger",)}, "did you mean 'integer'?"),
        ({"question": ("a",), "type": ("list:mg",)}, "--type list:mg is unknown"),
        ({"question": ("n=a", "n=b")}, "n names two questions"),
        ({"question": ("a",), "recipe": Path("r.toml")}, "exclude each other"),
    ],
)
def test_flags_that_make_no_recipe(settings: dict[str, object], sentence: str) -> None:
    with pytest.raises(RunnerError, match=sentence.replace("?", r"\?")):
        recipe_of(AskSettings.model_validate(settings))


def test_the_sample_is_a_recipe() -> None:
    recipe = recipe_of(AskSettings(recipe=SAMPLE / "recipe.toml"))
    assert [spec.type for spec in recipe.every_field.values()] == [
        "integer",
        "one-of",
        "number",
        "date",
        "list",
        "boolean",
    ]
