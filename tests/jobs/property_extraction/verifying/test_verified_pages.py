"""A name of a verification is explained by what was said of its pairs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.jobs.screening.commanded import command, write_csv

COLUMNS = ("pred_name", "gt_name", "count", "avg_sim")
PAIRS = [
    ("critical temperature Tc", "critical temperature", 3, 0.5),
    ("Debye frequency", "critical temperature", 2, 0.25),
    ("GAP", "gap", 1, 1.0),
]


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    path = write_csv(tmp_path / "candidates.csv", COLUMNS, PAIRS)
    done = command(
        *("run", "property-extraction", "--mode", "verify", "--candidates", path),
        *("--runs-dir", tmp_path, "--run-id", "v", "--no-report"),
    )
    assert done.code == 0, done.err
    return tmp_path


def test_a_name_has_each_of_its_pairs_with_who_said_what(runs: Path) -> None:
    told = command("explain", "v", "critical temperature", "--runs-dir", runs).out
    lines = told.splitlines()
    assert lines.count("  asked      baseline/lexical") == 2
    at = lines.index("critical temperature Tc => critical temperature")
    assert lines[at + 1 : at + 3] == [
        "  seen       in 3 papers, similarity 0.500, equal values 0",
        "  ruling     match, 1 vote for",
    ]
    at = lines.index("Debye frequency => critical temperature")
    assert lines[at + 2] == "  ruling     no match, 0 votes for"


def test_equal_names_and_unknown_ones_say_so(runs: Path) -> None:
    told = command("explain", "v", "GAP", "--runs-dir", runs).out
    assert "match: the names are equal but for case; nobody was asked" in told
    refused = command("explain", "v", "nothing", "--runs-dir", runs)
    assert refused.code != 0
    assert "No pair has the name 'nothing'" in refused.err


def test_of_a_longer_list_the_new_pairs_alone_are_asked_about(runs: Path) -> None:
    first = runs / "v/scores/1/alias_verification_all__baseline--lexical.csv"
    pairs = [*PAIRS, ("coherence length", "gap", 1, 0.5)]
    longer = write_csv(runs / "longer.csv", COLUMNS, pairs)
    done = command(
        *("run", "property-extraction", "--mode", "verify", "--candidates", longer),
        *("--verdicts", first, "--runs-dir", runs, "--run-id", "w", "--no-report"),
    )
    assert "\nNames verified: 4 pairs, 1 equal, 2 verified before\n" in done.out
    assert command("tasks", "w", "--runs-dir", runs).out.count("completed") == 1
