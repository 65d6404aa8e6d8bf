"""The request that click's options are turned into once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest

from runner.cli.import_ import import_
from runner.cli.request import OutputOptions, RunRequest
from runner.cli.run import estimate, resume, run
from runner.errors import UsageError
from runner.options import RunOptions

READ_BY_THE_VERB = {
    "run": {"job_name", "dry_run", "count_tokens", "cache_from", "no_score"},
    "resume": {"run_name", "accept_changes", "no_score", "stage", "model"},
    "estimate": {"what", "run_name", "count_tokens"},
    "import": {
        *("job_name", "words", "model", "form", "item", "replicates", "responses"),
        *("dry_run", "no_score"),
    },
}


def _request(verb: click.Command, *words: str) -> RunRequest:
    context = verb.make_context(verb.name, [*words])
    read = READ_BY_THE_VERB[verb.name or ""]
    parameters = {k: v for k, v in context.params.items() if k not in read}
    return RunRequest.of(context.args, parameters)


@pytest.mark.parametrize("verb", [run, resume, estimate, import_])
def test_what_is_in_no_other_group_is_an_option_of_runs(verb: click.Command) -> None:
    read = READ_BY_THE_VERB[verb.name or ""]
    every: dict[str, Any] = {
        each.name: "typed"
        for each in verb.params
        if each.name is not None and each.expose_value and each.name not in read
    }
    assert set(RunRequest.of([], every).options.values) <= set(RunOptions.model_fields)


def test_only_options_that_were_typed_are_laid_over_the_file() -> None:
    request = _request(run, "toy", "--rpm", "60", "--no-cache", "--model", "a")
    assert request.options.values == {"rpm": 60.0, "cache": False, "model": ("a",)}
    assert request.options.temperature is None


def test_each_group_has_its_own_options() -> None:
    request = _request(
        *(run, "toy", "--shard", "0/2", "--ship", "there", "--shards", "2"),
        *("--output-dir", "out", "--json", "--bench", "b.csv", "--set", "k=2"),
    )
    assert (request.part.shard, request.part.ship) == ("0/2", "there")
    assert request.placing.shards == 2
    assert request.output == OutputOptions(as_json=True, output_dir=Path("out"))
    assert request.source.typed() == {"k": ["2"], "bench": ["b.csv"]}


def test_a_verb_without_an_option_has_its_default() -> None:
    everywhere, lacking = _request(run, "toy"), _request(estimate, "toy")
    assert lacking.part == everywhere.part
    assert lacking.placing == everywhere.placing
    assert lacking.output == everywhere.output


def test_a_word_that_is_no_setting_is_refused_when_settings_are_read() -> None:
    request = _request(run, "toy", "word")
    with pytest.raises(UsageError, match="Unexpected 'word'"):
        request.source.typed()
