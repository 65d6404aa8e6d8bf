"""Regress over the golden runs: what changed since they were recorded has a name.

A change of a scorecard's bytes is named in CHANGELOG.md by the test that holds it, and
`changed_scorecards.toml` lists the scorings with the bytes that they have now.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from pathlib import Path

import pytest

from runner.cli.console import CHECK_FAILED
from runner.score.repeat import rescorer
from store.runs import RunFolder
from tests.commands import command
from tests.golden.runs import DAMAGED, OLD, RUNS, SPLIT, put_inputs, recorded

ROOT = Path(__file__).resolve().parents[2]
ACCEPTED = tomllib.loads(
    Path(__file__).with_name("changed_scorecards.toml").read_text("utf-8")
)


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The golden runs, in a folder of their own."""
    put_inputs()
    folder = tmp_path_factory.mktemp("golden")
    for name, data in recorded().items():
        if name.startswith("runs/"):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    return folder / "runs"


def _hashes(folder: Path) -> dict[str, str]:
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file() and not path.name.endswith(("-shm", "-wal"))
    }


def test_only_scorecards_that_are_named_have_other_bytes(golden: Path) -> None:
    before = _hashes(golden)
    done = command("regress", golden, "--json", "--processes=1")
    found = {line["run"]: line for line in map(json.loads, done.out.splitlines())}
    assert done.code == CHECK_FAILED
    assert _hashes(golden) == before  # nothing is written
    assert set(found) >= {*RUNS, *SPLIT, *OLD, *DAMAGED}
    unread = {run for run, line in found.items() if line["problem"]}
    assert unread == {*OLD}  # their job is a test's
    differing = {run: line for run, line in found.items() if line["differs"]}
    assert differing.pop("flipped")["causes"] == ["log"]
    steps = {
        (run, step)
        for run, line in differing.items()
        for step, tally in line["steps"].items()
        if tally["differs"]
    }
    named = {scoring.split()[0] for scoring in ACCEPTED["digests"]}
    assert steps == {(run, "scorecard") for run in named}
    assert all(line["causes"] == ["unknown"] for line in differing.values())


def test_a_scorecard_with_other_bytes_is_named_in_the_changelog(golden: Path) -> None:
    """If this fails: name the change in CHANGELOG.md, with the test that holds it.

    Then list the scoring, and its digest of today, in `changed_scorecards.toml`.
    """
    digests = {}
    for run in RUNS:
        with rescorer(RunFolder(golden / run)) as opened:
            for scoring in opened.scorings():
                digest = opened.repeated(scoring).digest
                if digest != scoring.digest:
                    digests[f"{run} {scoring.number}"] = digest[:12]
    assert digests == ACCEPTED["digests"]
    changes = ACCEPTED["change"]
    assert {name for each in changes for name in each["scorings"]} == set(digests)
    changelog = (ROOT / "CHANGELOG.md").read_text("utf-8")
    tests = "".join(
        path.read_text("utf-8") for path in (ROOT / "tests").rglob("test_*.py")
    )
    for each in changes:
        assert f"`{each['test']}`" in changelog, each
        assert f"def {each['test']}(" in tests, each
