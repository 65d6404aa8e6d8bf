"""`siftlog drift` and what other commands say of a model that was replaced."""

from __future__ import annotations

import json
import re
from itertools import count
from pathlib import Path

import pytest

from jobs.kit.differences.difference import cause_steps
from jobs.kit.drift import first_snapshot
from runner.score.repeat import ScoringBasis
from store.database import open_reader
from store.tables import visible_seq
from tests.answering import answering
from tests.processes import siftlog

ITEMS = 240
SWITCH = 180
"""Replies of the first build."""

RECIPE = """
items = "items.jsonl"
[fields.dose]
ask = "Which dose was given?"
type = "integer"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs: behind one model's name, another build answers worse from a call on."""
    folder = tmp_path_factory.mktemp("drift")
    rows = ({"id": f"i{n:03}", "text": f"Dose {n} mg."} for n in range(ITEMS))
    (folder / "items.jsonl").write_text("".join(f"{json.dumps(r)}\n" for r in rows))
    (folder / "recipe.toml").write_text(RECIPE)
    (folder / "gold.csv").write_text(
        "id,dose\n" + "".join(f"i{n:03},1\n" for n in range(ITEMS))
    )
    numbers = count()
    last = [0]

    def reply(prompt: str) -> str:
        last[0] = next(numbers)
        item = int(re.findall(r"Dose (\d+) mg", prompt)[-1])
        is_garbled = last[0] >= SWITCH and item % 3 == 0
        return "no idea" if is_garbled else '{"dose": 1}'

    def served() -> dict[str, object]:
        build = "fp_old" if last[0] < SWITCH else "fp_new"
        return {"model": "atlas-2026-05-01", "system_fingerprint": build}

    with answering(reply, served) as endpoint:
        words = ("run", "recipe.toml", "--model", "atlas", "--concurrency", "1")
        url = ("--base-url", endpoint.url, "--no-report")
        gold = (*words, *url, "--gold", "gold.csv")
        siftlog(*gold, "--run-id", "half", "--limit", "100", cwd=folder)
        siftlog(*gold, "--run-id", "whole", cwd=folder)
        siftlog(*words, *url, "--run-id", "bare", "--limit", "3", cwd=folder)
    return folder


def test_a_change_is_detected_at_the_new_build(folder: Path) -> None:
    said = siftlog("drift", "whole", "--json", cwd=folder).stdout
    row = json.loads(said)
    (model,) = row["models"]
    assert row["tested"] == "right"
    assert model["is_detected"]
    assert model["snapshot"] == {
        "field": "fingerprint",
        "before": "fp_old",
        "after": "fp_new",
    }
    assert model["before"] == {"n": 80, "share": 1.0}
    assert model["after"]["share"] < 0.7
    text = siftlog("drift", "whole", cwd=folder).stdout
    assert "the fingerprint changed from fp_old to fp_new" in " ".join(text.split())
    assert all(len(line) <= 80 for line in text.splitlines())


def test_a_run_without_truth_says_how_to_test_it(folder: Path) -> None:
    done = siftlog("drift", "bare", "--of", "right", cwd=folder, check=False)
    assert done.returncode == 2
    assert "--of parsed" in done.stderr


def test_a_comparison_says_that_another_build_served_a_side(folder: Path) -> None:
    done = siftlog("compare", "half", "whole", cwd=folder, check=False)
    assert (
        "the served fingerprint of atlas differs: fp_old in half, fp_new, fp_old in "
        "whole."
    ) in " ".join((done.stdout + done.stderr).split())


def test_answers_of_another_build_are_a_cause_of_their_own(folder: Path) -> None:
    with open_reader(folder / "runs/whole/log.db") as reader:
        end = visible_seq(reader)
        change = first_snapshot(reader, 1, end)
        assert first_snapshot(reader, end, end) is None
    assert change is not None
    before, after = (ScoringBasis(seq=seq, settings={}, inputs=()) for seq in (10, end))
    items, served = cause_steps(before, after, (), change)
    assert (items.cause.label, items.basis.seq) == ("items", change.at.seq - 1)
    assert (served.cause.label, served.basis.seq) == ("served model atlas", end)
    assert (served.cause.before, served.cause.after) == ("fp_old", "fp_new")
