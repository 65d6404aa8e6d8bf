"""The models that are known by name, and those of a run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from runner.money.prices import listed_models
from tests.commands import siftlog
from tests.processes import status

JOB = "paper-investigation"


def _lines(cwd: Path, *words: object) -> list[dict[str, object]]:
    done = siftlog("models", *words, "--json", cwd=cwd)
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_the_table_names_models_as_they_are_asked(tmp_path: Path) -> None:
    found = _lines(tmp_path, "--filter", "openai/GPT-4o-mini")
    (mini,) = [row for row in found if row["model"] == "openai/gpt-4o-mini"]
    assert (mini["client"], mini["kind"]) == ("direct", "chat")
    assert 0 < float(str(mini["usd_per_mtok_cached"])) < 0.15
    assert (mini["usd_per_mtok_in"], mini["usd_per_mtok_out"]) == (0.15, 0.6)
    assert mini["context_tokens"] == 128_000
    assert {row["kind"] for row in _lines(tmp_path)} == {"chat", "embed", "rerank"}


def test_every_listed_model_has_a_provider_once_and_no_price_of_zero() -> None:
    rows = list(listed_models())
    assert len(rows) > 1000
    names = [row.model for row in rows]
    assert names == sorted(names)
    for row in rows:
        first, _, rest = row.model.partition("/")
        assert first
        assert rest
        assert row.price is None or not row.price.is_free


@pytest.mark.parametrize(
    "words", [(), ("--filter", "claude"), ("--filter", "azure_ai")]
)
def test_the_list_fits_a_narrow_terminal(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    lines = siftlog("models", *words, cwd=tmp_path).stdout.splitlines()
    assert len(lines) > 5
    assert max(map(len, lines)) <= 80


def test_a_name_that_nobody_has_is_said_to_be_none(tmp_path: Path) -> None:
    done = siftlog("models", "--filter", "no such model", cwd=tmp_path)
    assert not done.stdout
    assert "No model has such a name" in done.stderr


def test_a_runs_models_are_shown_with_their_calls_and_limits(tmp_path: Path) -> None:
    siftlog("generate", JOB, "--run-id=r", cwd=tmp_path)
    (row,) = _lines(tmp_path, "r")
    assert (row["model"], row["client"]) == ("baseline/lexical", "baseline")
    calls = status(tmp_path, "r")["attempts"]["started"]
    assert row["calls"] == calls > 0
    assert row["concurrency"]
    shown = siftlog("models", "r", cwd=tmp_path).stdout
    assert f"{calls} calls" in shown
    assert "at a time" in shown


def test_litellm_is_not_imported_for_its_table() -> None:
    script = (
        "from runner.cli.main import exit_code\n"
        "assert exit_code(['models', '--filter', 'gpt-4o']) == 0\n"
        "import sys\n"
        "assert 'litellm' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", script], check=True, timeout=60)
