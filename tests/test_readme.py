"""The README does what it says: its shell blocks run, its words are true."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from runner.cli.main import VERBS
from tests.processes import SIFTLOG

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


@pytest.mark.timeout(180)
def test_the_shell_blocks_run_from_the_top_without_an_error(tmp_path: Path) -> None:
    script = "\n".join(
        ["set -euo pipefail", "trap 'kill $(jobs -p)' EXIT", *_blocks("sh")]
    )
    done = subprocess.run(
        ["/bin/bash", "-c", script],
        cwd=tmp_path,
        env={
            **os.environ,
            "PATH": f"{SIFTLOG.parent}:{os.environ['PATH']}",
        },
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    assert "is sound" in done.stdout
    assert (tmp_path / "runs/first/exports/tasks.csv").exists()
    assert (tmp_path / "runs/old/scores/1/scorecard.json").exists()


def test_the_configuration_block_is_one(tmp_path: Path) -> None:
    from runner.options import options_from, read_toml  # noqa: PLC0415 - one test's

    (block,) = _blocks("toml")
    path = tmp_path / "run.toml"
    path.write_text(block)
    content = read_toml(path)
    content.pop("settings")
    options = options_from(content)
    assert options.of("local-model").concurrency == 8
    assert options.of("openai/gpt-4o-mini").concurrency == 32


def test_every_verb_is_in_the_table_of_commands() -> None:
    table = README[README.index("## Commands") : README.index("`RUN` is an id")]
    named = set(re.findall(r"`(\w+)", table))
    assert set(VERBS) <= named


def test_the_summary_it_shows_is_the_one_the_demo_prints(tmp_path: Path) -> None:
    (block,) = _blocks("text")
    done = subprocess.run(
        [SIFTLOG, "run", "paper-investigation"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert block in done.stdout
