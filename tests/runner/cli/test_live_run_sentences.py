"""What the commands that look at results say of a run that goes on."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.cli.score import _partial_sentence
from runner.cli.status_page import replies_lines
from runner.errors import UsageError
from runner.score.repeat import chosen
from store.read.usage import ReplyShares
from store.runs import RunFolder
from tests.store.logs import COURSE, written


def test_a_live_run_without_a_scoring_names_what_shows_it_now() -> None:
    with pytest.raises(UsageError) as live:
        chosen("r", [], None, is_alive=True)
    said = str(live.value)
    assert said.startswith("Run r is still running and has no scoring yet")
    assert "siftlog score r prints the metrics so far" in said
    with pytest.raises(UsageError, match="make one with: siftlog score r"):
        chosen("r", [], None)


@pytest.mark.parametrize(
    ("is_alive", "state", "step"),
    [
        (True, "is still running: 2 of about ", "siftlog watch r1"),
        (False, "is unfinished: 2 of about ", "siftlog resume r1"),
    ],
)
def test_a_partial_scoring_says_what_of_the_run_is_scored_and_what_to_do(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    is_alive: bool,
    state: str,
    step: str,
) -> None:
    folder = RunFolder(tmp_path / "r1")
    folder.path.mkdir()
    written(folder.log, *COURSE[:7])
    monkeypatch.setattr(RunFolder, "is_alive", lambda _: is_alive)
    said = _partial_sentence(folder, is_past=False)
    assert said.startswith(f"partial: r1 {state}"), said
    assert "only these tasks are scored" in said
    assert said.endswith(step)
    assert ("Nothing is recorded" in said) == is_alive
    assert "unfinished then" in _partial_sentence(folder, is_past=True)


def test_refused_and_filtered_replies_have_one_name() -> None:
    shares = ReplyShares(
        model="m",
        replies=40,
        truncated=0,
        refused=2,
        filtered=1,
        empty=0,
        unparsed=3,
        failed=0,
    )
    (line,) = replies_lines([shares])
    assert line == (
        "m: of 40 replies 3 refused (7.5 %), 3 unparsed (7.5 %); one reply may have "
        "several faults"
    )
    assert shares.withheld == 3
