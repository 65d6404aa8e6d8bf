"""Configurations in TOML: what a person may write, and what is said about the rest."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.evidence_retrieval.pipeline import (
    STANDARD,
    Config,
    first_stages,
    read_configs,
)
from runner.errors import DatasetError
from tests.jobs.evidence_retrieval.input_files import files

WHOLE = """
[[config]]
name = "plain"

[[config]]
name = "all of it"
first_stage = "rrf:[bm25, embedding]"
rerank = "assess"
graph = "label_propagation"
dynamic_k = "fixed:7"
gate = "passthrough"
calibration = "platt"
three_state = true
top = 24
"""


def read(folder: Path, text: str, **changes: object) -> tuple[Config, ...]:
    settings = files(folder, pipeline=text)
    return read_configs(settings.model_copy(update=changes))


def complaint(folder: Path, text: str, **changes: object) -> str:
    with pytest.raises(DatasetError) as caught:
        read(folder, text, **changes)
    return str(caught.value)


def test_every_key_is_read_and_each_has_a_default(tmp_path: Path) -> None:
    assert read(tmp_path, WHOLE) == (
        Config(name="plain"),
        Config(
            name="all of it",
            first_stage=("bm25", "embedding"),
            rerank="assess",
            graph="label_propagation",
            dynamic_k="fixed:7",
            gate="passthrough",
            calibration="platt",
            three_state=True,
            top=24,
        ),
    )


def test_without_a_file_there_are_the_six_standard_ones(tmp_path: Path) -> None:
    assert read_configs(files(tmp_path)) is STANDARD


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ("rerank = 'bm25'", "1: rerank: Input should be 'none', 'llm', 'assess' or"),
        ("rerankk = 'llm'", "1: unknown key rerankk (known are name, first_stage"),
        ("dynamic_k = 'fixed:0'", "1: dynamic_k: 'fixed:0' is not none, mass or fixed"),
        ("dynamic_k = 'fixed:x'", "1: dynamic_k: 'fixed:x' is not none, mass or fixed"),
        ("dynamic_k = 5", "1: dynamic_k: Input should be a valid string (correct it)"),
        ("first_stage = 'bm52'", "1: first_stage: 'bm52' is not one of bm25, embed"),
        ("first_stage = 'rrf:[bm25]'", "1: first_stage: 'rrf:[bm25]' does not fuse"),
        ("three_state = 'true'", "1: three_state: Input should be a valid boolean"),
        ("top = 0", "1: top: Input should be greater than or equal to 1"),
        ("calibration = 'platt'", "'x': calibration without a gate (name a gate"),
        ("three_state = true", "'x': three_state without a gate (name a gate"),
    ],
)
def test_what_is_off_is_said_by_configuration_and_key(
    tmp_path: Path, lines: str, said: str
) -> None:
    text = f"[[config]]\nname = 'x'\n{lines}\n"
    assert complaint(tmp_path, text).startswith(f"pipeline.toml config {said}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[[config]]\n", "config 1: name: Field required (correct it)."),
        ("[[config]]\nname = ''\n", "config 1: name: String should have at least 1"),
        ("[[config]]\nname='a'\n" * 2, "config 'a': the name is taken already"),
        ("", "no configuration in it (write a [[config]])."),
        ("[config]\nname='a'\n", "no configuration in it (write a [[config]])."),
        ("config = [1]\n", "config 1: table: Input should be a valid dictionary"),
        ("[[configs]]\nname='a'\n", "unknown key configs (known is [[config]])."),
        ("name = \n", "not TOML, Invalid value (at line 1, column 8)"),
    ],
)
def test_a_file_that_holds_no_configurations_is_refused(
    tmp_path: Path, text: str, said: str
) -> None:
    found = complaint(tmp_path, text)
    assert found.removeprefix("pipeline.toml").lstrip(": ").startswith(said)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    settings = files(tmp_path).model_copy(update={"pipeline": tmp_path / "no.toml"})
    with pytest.raises(DatasetError, match=r"no\.toml: No such file"):
        read_configs(settings)


def test_a_model_that_reranks_starts_from_the_settings_first_stage(
    tmp_path: Path,
) -> None:
    text = "[[config]]\nname='x'\nrerank='llm'\nfirst_stage='embedding'\n"
    assert "rerank llm reorders what --first-stage bm25 lists" in complaint(
        tmp_path, text
    )
    (config,) = read(tmp_path, text, first_stage="embedding")
    assert config.first_stage == ("embedding",)


def test_an_endpoint_is_given_the_whole_pool_behind_any_first_stage(
    tmp_path: Path,
) -> None:
    text = "[[config]]\nname='x'\nrerank='endpoint'\nfirst_stage='embedding'\n"
    (config,) = read(tmp_path, text)
    assert (config.rerank, config.first_stage) == ("endpoint", ("embedding",))


def test_a_fusion_names_several_rankings() -> None:
    assert first_stages("rrf:[bm25,embedding,document]") == (
        *("bm25", "embedding", "document"),
    )
    for text in ("rrf:[]", "rrf:[bm25,bm25]", "rrf:bm25", "rrf:[rrf:[bm25]]", ""):
        with pytest.raises(ValueError, match=r"is not one of|does not fuse"):
            first_stages(text)
