"""Settings come from four places, in one order, and say what is wrong with them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal, Self

import pytest
from pydantic import BaseModel, ConfigDict, model_validator

from runner.errors import UsageError
from runner.options import options_from, read_toml, write_toml
from runner.workload import as_json, resolve
from tests.runner.toy_jobs import ToyJob


class Settings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    items: int = 3
    mode: Literal["fast", "slow"] = "slow"
    kinds: tuple[str, ...] = ("x",)
    bench: Path | None = None
    files: tuple[Path, ...] = ()
    cap: int | None = None
    ddof: Literal[0, 1] | None = 1

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.cap is not None and self.cap < self.items:
            raise ValueError("cap is less than items")
        return self


class Job(ToyJob):
    Settings = Settings


def _resolve(
    typed: dict[str, list[str]] | None = None,
    environment: dict[str, str] | None = None,
    file: dict[str, object] | None = None,
) -> Settings:
    return resolve(
        Job(), typed=typed or {}, environment=environment or {}, file=file or {}
    )


def test_command_line_wins_over_environment_over_file_over_default() -> None:
    assert _resolve().items == 3
    file = {"items": 4}
    assert _resolve(file=file).items == 4
    environment = {"SIFTLOG_SET_ITEMS": "5"}
    assert _resolve(environment=environment, file=file).items == 5
    assert _resolve({"items": ["6"]}, environment, file).items == 6


def test_lists_come_by_commas_or_by_repetition() -> None:
    assert _resolve({"kinds": ["a, b"]}).kinds == ("a", "b")
    assert _resolve({"kinds": ["a", "b"]}).kinds == ("a", "b")


@pytest.mark.parametrize(("text", "value"), [("0", 0), ("1", 1), ("none", None)])
def test_a_choice_that_is_a_number_is_typed_as_text(
    text: str, value: int | None
) -> None:
    assert _resolve({"ddof": [text]}).ddof == value
    assert _resolve(environment={"SIFTLOG_SET_DDOF": text}).ddof == value
    with pytest.raises(UsageError, match="Setting ddof"):
        _resolve({"ddof": ["2"]})


def test_an_empty_value_unsets_what_may_be_unset() -> None:
    assert _resolve({"cap": [""]}, file={"cap": 3}).cap is None


def test_a_path_in_a_file_begins_where_the_file_lies(tmp_path: Path) -> None:
    def bench(value: str, **typed: list[str]) -> Path | None:
        return resolve(
            Job(),
            typed=typed,
            environment={},
            file={"bench": value, "mode": "fast"},
            folder=tmp_path / "x",
        ).bench

    assert bench("data/b.jsonl") == tmp_path / "x" / "data" / "b.jsonl"
    assert bench("../b.jsonl") == tmp_path / "b.jsonl"
    assert bench("/b.jsonl") == Path("/b.jsonl")
    assert bench("b.jsonl", bench=["c.jsonl"]) == Path.cwd() / "c.jsonl"


def test_paths_become_absolute_so_that_a_resume_may_start_anywhere() -> None:
    given = _resolve({"bench": ["data/bench.jsonl"], "files": ["a.csv,b/../c.csv"]})
    assert given.bench == Path.cwd() / "data/bench.jsonl"
    assert given.files == (Path.cwd() / "a.csv", Path.cwd() / "c.csv")


def test_a_typing_mistake_is_answered_with_the_nearest_setting() -> None:
    with pytest.raises(UsageError, match="no setting 'itmes'; did you mean 'items'"):
        _resolve({"itmes": ["3"]})


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [("items", "many", "integer"), ("mode", "quick", "'fast' or 'slow'")],
)
def test_a_value_that_does_not_fit_is_named(name: str, value: str, said: str) -> None:
    with pytest.raises(UsageError, match=f"Setting {name} of toy: .*{said}"):
        _resolve({name: [value]})


def test_values_that_do_not_fit_together_are_told_by_the_job() -> None:
    with pytest.raises(UsageError, match="Settings of toy: cap is less than items;"):
        _resolve({"cap": ["1"]})


def test_settings_as_json_do_not_depend_on_the_order_they_were_given_in() -> None:
    one = as_json(_resolve({"items": ["1"], "mode": ["fast"]}))
    other = as_json(_resolve({"mode": ["fast"], "items": ["1"]}))
    assert one == other


def test_a_written_configuration_reads_back_as_the_same_options(
    tmp_path: Path,
) -> None:
    options = options_from(
        {"model": ["openai/x"], "rpm": 50, "models": {"openai/x": {"concurrency": 2}}}
    )
    path = tmp_path / "run.toml"
    write_toml(path, job="toy", options=options, settings={"items": 3, "cap": None})
    content = read_toml(path)
    assert content.pop("job") == "toy"
    assert content.pop("settings") == {"items": 3}
    assert options_from(content) == options


def test_a_models_own_options_win_over_the_runs() -> None:
    options = options_from({"model": "a", "rpm": 50, "models": {"a": {"rpm": 7}}})
    assert options.of("a").rpm == 7
    assert options.of("b").rpm == 50


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"a = 1\nb = ]", "is not valid TOML: .*line 2"),
        (b"\xff\xfe", "cannot be read"),
    ],
)
def test_a_broken_file_is_named_with_the_place(
    tmp_path: Path, content: bytes, said: str
) -> None:
    path = tmp_path / "x.toml"
    path.write_bytes(content)
    with pytest.raises(UsageError, match=re.escape(str(path)) + ".*" + said):
        read_toml(path)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"concurency": 3}, "did you mean 'concurrency'"),
        ({"bench": "x.jsonl"}, r"go under \[settings\]"),
        ({"models": {"b": {}}}, "a model that the run does not use"),
    ],
)
def test_a_word_that_is_no_option_says_where_it_may_belong(
    content: dict[str, object], said: str
) -> None:
    with pytest.raises(UsageError, match=said):
        options_from(content)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ({"top_p": 7}, "Option top_p (--top-p): write a number from 0 to 1, or none;"),
        ({"temperature": "x"}, "(--temperature): write a number of at least 0, or no"),
        ({"max_output_tokens": 0}, "write a whole number of at least 1, or none;"),
        (
            {"model": "a", "models": {"a": {"top_p": 7}}},
            "Option models.a.top_p: write a number from 0 to 1, or none;",
        ),
        (
            {"model": "a", "models": {"a": {"seed": "x"}}},
            "Option models.a.seed: write a whole number, or none;",
        ),
    ],
)
def test_an_option_that_may_be_none_is_refused_with_its_range(
    content: dict[str, object], said: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        options_from(content)


def test_an_option_that_is_off_is_named() -> None:
    with pytest.raises(UsageError, match=r"Option models\.a\.rpm: .*greater than 0"):
        options_from({"model": "a", "models": {"a": {"rpm": 0}}})
