"""The list of runs: newest first, in 80 columns or more."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from runner.cli.run_list import ROOMY, RunListing, listed_runs, run_table
from store.document import as_text
from store.printable import display_width
from store.runs import RunFolder
from tests.commands import siftlog
from tests.replacing import replace
from tests.store.logs import COURSE, FINISHED, SCORED, written
from tests.store.memory_log import START_US
from tests.store.samples import RUN_STARTED

DAY_US = 86_400_000_000
LONG = "20260118-083000-paper-investigation"


@pytest.fixture
def listed(tmp_path: Path) -> RunListing:
    """A run in the middle of its work."""
    log = written(tmp_path / "log.db", *COURSE[:7])
    (run,) = listed_runs([RunFolder(log.parent)], START_US, print)
    return run


def _renamed(
    run: RunListing, name: str, created_us: int, **fields: object
) -> RunListing:
    status = replace(run.seen.status, run_id=name, created_us=created_us, **fields)
    return replace(run, name=name, seen=replace(run.seen, status=status))


@pytest.mark.parametrize("width", [80, 100, 120, 160])
def test_every_line_fits(listed: RunListing, width: int) -> None:
    many = {"subject": [f"provider/model-{n}" for n in range(3)]}
    scored = replace(SCORED, headline="avg", reached={"a": 0.25, "b": 0.5})
    runs = [
        replace(
            _renamed(listed, LONG, START_US, job="paper-investigation", models=many),
            scoring=scored,
        ),
        _renamed(listed, "x" * 100, START_US - DAY_US),
        _renamed(listed, "old", START_US - 400 * DAY_US),
    ]
    lines = as_text([run_table(runs, START_US, width)], width).splitlines()
    assert lines[0].split() == [
        *("started", "run", "job", "models", "state", "cost", "headline")
    ]
    assert max(map(display_width, lines)) <= width
    if width < ROOMY:
        assert "20260118-083000 " in lines[1]
        assert "0.250 0.500" in lines[1]
        assert lines[1].startswith("00:00 ")
        assert lines[2].startswith("2025-12 ")
        assert lines[3].startswith("2024-11 ")


def test_a_wide_terminal_shows_everything(listed: RunListing) -> None:
    scored = replace(SCORED, headline="avg", reached={"a": 0.25, "b": None, "c": 0.5})
    run = replace(_renamed(listed, LONG, START_US), scoring=scored)
    (_, line) = as_text([run_table([run], START_US, 160)], 160).splitlines()
    for text in ("2026-01-01 00:00", LONG, "m-large", "avg 0.250 to 0.500", "lost"):
        assert text in line


def test_the_newest_run_is_first_and_programs_get_more(tmp_path: Path) -> None:
    for name in ("b", "a"):
        folder = RunFolder(tmp_path / "runs" / name)
        folder.path.mkdir(parents=True)
        written(folder.log, [replace(RUN_STARTED, run_id=name)], [FINISHED])
    (tmp_path / "runs" / ".gone.removed").mkdir()
    records = [
        json.loads(line)
        for line in siftlog("runs", "--json", cwd=tmp_path).stdout.splitlines()
    ]
    assert len(records) == 2
    assert records[0]["started"].endswith("+00:00")
    assert records[0]["progress"] == {
        "done": 0,
        "remaining": {"low": 0, "expected": 0, "high": None},
        "share": 0.0,
    }
    assert records[0]["headline"] is None
    lines = siftlog("runs", cwd=tmp_path).stdout.splitlines()
    assert lines[0].startswith("started")
    assert ["finished" in line.split() for line in lines[1:]] == [True, True]


def test_jobs_and_models_are_cut_before_ids_which_commands_take(
    listed: RunListing,
) -> None:
    run = _renamed(listed, "paper-investigation-two", START_US, job=LONG)
    (_, line) = as_text([run_table([run], START_US, 80)], 80).splitlines()
    assert "paper-investigation-two  2026" in line
    assert "lost 44.4 %" in line
