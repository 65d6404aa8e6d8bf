"""README and docs do what they say: their shell blocks run, their words are true."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest

from runner.cli.command_table import cli
from tests.commands import siftlog
from tests.pages import blocks, follow
from tests.processes import SIFTLOG

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()


@pytest.mark.timeout(180)
def test_the_shell_blocks_run_from_the_top_without_an_error(tmp_path: Path) -> None:
    printed = follow(README, tmp_path, {"TMPDIR": str(tmp_path)})
    (folder,) = tmp_path.iterdir()  # which the first block makes
    assert "is sound" in printed
    printed += siftlog("score", "screened", "--no-record", cwd=folder).stdout
    for page in ("evidence-retrieval", "screening"):
        (shown,) = blocks("text", (ROOT / f"docs/{page}.md").read_text())
        assert shown in printed, page
    assert (folder / "runs/first/exports/tasks.csv").exists()
    assert (folder / "runs/old/scores/1/scorecard.json").exists()
    assert (folder / "runs/rebuilt/scores/1/lost_papers.csv").exists()
    assert "macro recall by run" in printed


@pytest.mark.timeout(180)
def test_the_tutorial_may_be_begun_again(tmp_path: Path) -> None:
    first, *_ = blocks("sh", README)
    printed = follow(f"```sh\n{first}{first}```\n", tmp_path, {"TMPDIR": str(tmp_path)})
    assert printed.count("run first  paper-investigation") == 2


@pytest.mark.timeout(360)
def test_the_tutorial_runs_and_prints_what_it_shows(tmp_path: Path) -> None:
    page = (ROOT / "docs/tutorial.md").read_text()
    printed = follow(page, tmp_path, {"TMPDIR": str(tmp_path)})
    (folder,) = tmp_path.iterdir()  # which the first block makes
    for shown in blocks("text", page):
        assert shown in printed
    assert (folder / "report.html").exists()


@pytest.mark.timeout(180)
def test_the_rehearsal_of_a_long_run_goes_as_it_is_written(tmp_path: Path) -> None:
    printed = follow((ROOT / "docs/long-runs.md").read_text(), tmp_path)
    assert "  finished" in printed
    assert "budget $7.0000" in printed


@pytest.mark.timeout(180)
def test_reports_and_comparisons_go_as_they_are_written(tmp_path: Path) -> None:
    printed = follow((ROOT / "docs/scoring.md").read_text(), tmp_path)
    assert (tmp_path / "first.html").read_text().startswith("<!DOCTYPE html>")
    assert "ndcg@10" in printed
    assert "tau 0.5 -> 0.7" in printed
    assert (tmp_path / "changes.html").exists()


@pytest.mark.timeout(180)
def test_a_matrix_of_runs_goes_as_it_is_written(tmp_path: Path) -> None:
    page = (ROOT / "docs/run-all.md").read_text()
    (shown,) = blocks("text", page)
    assert shown in follow(page, tmp_path)


@pytest.mark.timeout(180)
def test_split_runs_go_as_they_are_written(tmp_path: Path) -> None:
    follow((ROOT / "docs/clusters.md").read_text(), tmp_path)
    wide, far = (
        (tmp_path / f"runs/{run}/scores/1/scorecard.json").read_bytes()
        for run in ("wide", "far")
    )
    assert wide == far


@pytest.mark.timeout(180)
def test_batches_go_as_they_are_written(tmp_path: Path) -> None:
    printed = follow((ROOT / "docs/batches.md").read_text(), tmp_path)
    assert '"outcome": "completed"' in printed


def test_the_notebook_examples_print_what_stands_below_them(tmp_path: Path) -> None:
    page = (ROOT / "docs/notebooks.md").read_text()
    follow(page, tmp_path)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", "".join(blocks("python", page))],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "".join(blocks("text", page))


@pytest.mark.timeout(180)
def test_exports_go_as_they_are_written(tmp_path: Path) -> None:
    printed = follow((ROOT / "docs/sharing.md").read_text(), tmp_path)
    assert '"file": "runs/first/exports/scores/1/verdicts.csv"' in printed
    folder = tmp_path / "runs/first/exports"
    assert {path.name for path in folder.iterdir()} == {
        *("tasks.parquet", "answers.parquet", "scores")
    }


@pytest.mark.timeout(180)
def test_manuscripts_are_checked_as_it_is_written(tmp_path: Path) -> None:
    page = (ROOT / "docs/methods-text.md").read_text()
    printed = follow(page, tmp_path)
    (shown,) = blocks("text", page)
    assert shown in printed
    assert "exit code 6" in printed
    assert printed.count(" 0 wrong") == 2


def test_every_page_that_is_pointed_to_is_there() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    for page in pages:
        text = page.read_text()
        for target in re.findall(r"\]\(([^)#:]+)\)", text):
            assert (page.parent / target).exists(), (page.name, target)
        for target in re.findall(r"`((?:design|docs)/[\w.-]+)`", text):
            assert (ROOT / target).exists(), (page.name, target)


def test_the_configuration_block_is_one(tmp_path: Path) -> None:
    from runner.options import options_from, read_toml  # noqa: PLC0415 - one test's

    (block,) = blocks("toml", README)
    path = tmp_path / "run.toml"
    path.write_text(block)
    content = read_toml(path)
    content.pop("settings")
    options = options_from(content)
    assert options.of("local-model").concurrency == 8
    assert options.of("openai/gpt-4o-mini").concurrency == 32


def test_the_configuration_of_a_pipeline_is_one(tmp_path: Path) -> None:
    from jobs.evidence_retrieval.pipeline import (  # noqa: PLC0415 - one test's
        read_configs,
    )
    from jobs.evidence_retrieval.settings import (  # noqa: PLC0415 - one test's
        EvidenceSettings,
    )

    (block,) = blocks("toml", (ROOT / "docs/evidence-retrieval.md").read_text())
    path = tmp_path / "pipeline.toml"
    path.write_text(block)
    (config,) = read_configs(EvidenceSettings(pipeline=path))
    assert config.first_stage == ("bm25", "embedding")


def test_every_verb_is_in_the_table_of_commands() -> None:
    table = README[README.index("## Commands") : README.index("`RUN` is an id")]
    named = set(re.findall(r"`([\w-]+)", table))
    assert set(cli.list_commands(click.Context(cli))) <= named


def test_the_summary_it_shows_is_the_one_the_demo_prints(tmp_path: Path) -> None:
    (block,) = blocks("text", README)
    done = subprocess.run(
        [SIFTLOG, "run", "paper-investigation"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert block in done.stdout


#: Rows of the table of keys, by the screen that has them.
MOVES = "↑ ↓ ← → j k h g G home end enter esc pgup pgdn ctrl+d ctrl+u"


def test_the_keys_that_move_are_named_and_the_example_is_a_keymap() -> None:
    from tui.terminal.keymap import all_bindings, checked  # noqa: PLC0415 - one test's

    page = (ROOT / "docs/monitor.md").read_text()
    moving = page.split("\n## Keys\n")[1].split("\n| on | keys |")[0]
    assert set(MOVES.split()) <= set(re.findall(r"`(\S+)`", moving))
    known = all_bindings()
    (example,) = blocks("toml", page)
    assert checked(tomllib.loads(example), known, "the example")
