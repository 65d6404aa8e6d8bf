"""One rule finds the name that a misspelt word stands for."""

from __future__ import annotations

import pytest

from store.nearest import did_you_mean, nearest

NAMES = ("run", "resume", "runs", "run-all", "status", "openai/gpt-4o", "base_url")


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("stauts", "status"),
        ("STATUS", "status"),
        ("base-url", "base_url"),
        ("gpt-4o", "openai/gpt-4o"),
        ("gpt4o", "openai/gpt-4o"),
        ("sta", "status"),
        ("run_all", "run-all"),
    ],
)
def test_the_likeliest_name_comes_first(word: str, name: str) -> None:
    assert nearest(word, NAMES) == [name]


def test_names_that_are_no_letters_alike_are_not_near() -> None:
    assert nearest("xyz", NAMES) == []
    assert nearest("xyz", [], ratio=0.0) == []
    assert nearest("xyz", NAMES, ratio=0.0) != []


def test_a_name_comes_once_and_no_more_than_the_limit() -> None:
    assert nearest("run", ["run", "runs", "run"], limit=2) == ["run", "runs"]
    assert len(nearest("r", ["ra", "rb", "rc", "rd"], limit=3)) == 3


def test_the_hint_is_the_end_of_a_sentence() -> None:
    assert did_you_mean("stauts", NAMES, "no") == "did you mean 'status'?"
    assert did_you_mean("xyz", NAMES, "see --help.") == "see --help."
    two = did_you_mean("seed", ["seeds", "seed_b"], "no", limit=2)
    assert two == "did you mean 'seeds' or 'seed_b'?"
