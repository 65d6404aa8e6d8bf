"""What one or two words mean: runs, models, and every pair of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.kit.comparison.sides import ModelReference, RunReference, paired_models
from runner.errors import UsageError

MODELS = {
    "one": ("a/x",),
    "other": ("b/y",),
    "three": ("a/x", "b/y", "ollama/l:8b"),
    "two": ("b/y", "a/x"),
    "none": ("c/z", "d/w"),
}


def pairs(*words: str) -> list[tuple[str, ...]]:
    named = [ModelReference.of(word) for word in words]
    models = {each.source: MODELS[each.source.run] for each in named}
    return [
        (str(a), left, str(b), right)
        for (a, left), (b, right) in paired_models(named, models)
    ]


def test_a_run_alone_is_its_models_with_each_other() -> None:
    assert pairs("three") == [
        ("three", "a/x", "three", "b/y"),
        ("three", "a/x", "three", "ollama/l:8b"),
        ("three", "b/y", "three", "ollama/l:8b"),
    ]


def test_a_model_alone_is_compared_with_the_others_of_its_run() -> None:
    assert pairs("three:b/y") == [
        ("three", "b/y", "three", "a/x"),
        ("three", "b/y", "three", "ollama/l:8b"),
    ]


def test_two_runs_are_compared_model_by_model() -> None:
    assert pairs("three", "two") == [
        ("three", "a/x", "two", "a/x"),
        ("three", "b/y", "two", "b/y"),
    ]


def test_runs_of_one_model_each_are_those_two() -> None:
    assert pairs("one", "other") == [("one", "a/x", "other", "b/y")]


def test_a_model_of_one_run_meets_itself_or_the_only_one_of_the_other() -> None:
    assert pairs("three:b/y", "two") == [("three", "b/y", "two", "b/y")]
    assert pairs("one", "three:a/x") == [("one", "a/x", "three", "a/x")]
    assert pairs("three:b/y", "one") == [("three", "b/y", "one", "a/x")]


def test_models_named_on_both_sides_are_those() -> None:
    assert pairs("three:a/x", "three:ollama/l:8b") == [
        ("three", "a/x", "three", "ollama/l:8b")
    ]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("one",), "one model only, a/x; name a second run"),
        (("one:a/x",), "one model only, a/x; name a second run"),
        (("three:z",), "has no model 'z'; it has: a/x, b/y, ollama/l:8b"),
        (("one", "three:z"), "Run three has no model 'z'"),
        (("three", "none"), "say which to compare as RUN:MODEL"),
        (("three:a/x", "none"), "say which to compare as RUN:MODEL"),
    ],
)
def test_what_is_not_plain_is_said_with_the_next_step(
    words: tuple[str, ...], told: str
) -> None:
    with pytest.raises(UsageError, match=told):
        pairs(*words)


def test_a_folder_may_have_a_colon_in_its_name(tmp_path: Path) -> None:
    folder = tmp_path / "runs:old"
    folder.mkdir()
    assert ModelReference.of(str(folder)) == ModelReference(RunReference(str(folder)))
    assert ModelReference.of("r:m:8b") == ModelReference(RunReference("r"), "m:8b")


def test_a_number_after_an_at_is_a_recorded_scoring(tmp_path: Path) -> None:
    assert ModelReference.of("r@12") == ModelReference(RunReference("r", 12))
    assert ModelReference.of("r@3:vendor/m@7:free") == ModelReference(
        RunReference("r", 3), "vendor/m@7:free"
    )
    assert ModelReference.of("r:m@2") == ModelReference(RunReference("r"), "m@2")
    folder = tmp_path / "runs@2"
    assert ModelReference.of(str(folder)) == ModelReference(
        RunReference(str(tmp_path / "runs"), 2)
    )
    folder.mkdir()
    assert ModelReference.of(str(folder)) == ModelReference(RunReference(str(folder)))


@pytest.mark.parametrize("word", ["r@", "r@0", "r@-1", "r@x", "@2"])
def test_what_is_no_number_is_part_of_the_name(word: str) -> None:
    assert ModelReference.of(word) == ModelReference(RunReference(word))


def test_two_scorings_of_a_run_are_compared_model_by_model() -> None:
    assert pairs("two@1", "two@2") == [
        ("two@1", "b/y", "two@2", "b/y"),
        ("two@1", "a/x", "two@2", "a/x"),
    ]
    assert pairs("one@1", "one") == [("one@1", "a/x", "one", "a/x")]


def test_of_several_words_every_two_are_compared_once() -> None:
    assert pairs("one", "other", "three:b/y") == [
        ("one", "a/x", "other", "b/y"),
        ("one", "a/x", "three", "b/y"),
        ("other", "b/y", "three", "b/y"),
    ]
    assert (
        pairs("one", "other", "one", "other").count(("one", "a/x", "other", "b/y")) == 1
    )
