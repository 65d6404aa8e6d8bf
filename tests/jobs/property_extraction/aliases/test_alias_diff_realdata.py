"""The reviewed aliases of the real free names: which of them gains what."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.commands import command
from tests.csv_files import write_csv
from tests.jobs.property_extraction.aliases.reviewed_names import (
    digest,
    reviewed_aliases,
)
from tests.jobs.property_extraction.real_predictions import FREE, MODEL, RealPredictions

pytestmark = pytest.mark.realdata

WITHOUT_EFFECT = {
    "312c7383822f",
    "a00ce6c1e0c7",
    "1f64482ba9e2",
    "2d9172abf064",
    "a34b559802b4",
    "fa9cbffa6dfe",
}
"""Digests of aliases that gain no row."""

GAINS_TWO = "1a70c3e37fc3"


def test_fourteen_rows_are_gained_by_thirteen_aliases(
    real: RealPredictions, tmp_path: Path
) -> None:
    reviewed = write_csv(
        tmp_path / "reviewed.csv",
        ("pred_name", "gt_name", "status", "source"),
        [
            (name, targets[0], "accepted", "human")
            for name, targets in reviewed_aliases(real.folder).items()
        ],
    )
    before, after = (
        real.scoring(FREE, *words).folder.name
        for words in ((), ("--aliases", reviewed))
    )
    done = command("diff", real.run(FREE), before, after, "--json")
    assert done.code == 0, done.err
    made = json.loads(done.out)
    (step,) = made["causes"]
    assert [cause["name"] for cause in step["causes"]] == ["aliases"]
    booked = step["booked"][MODEL]
    assert (booked["metric"], booked["change"]) == ("tp", 14)
    rows = {row["pred_name"]: row for row in booked["rows"]}
    gained = {digest(name): row["tp_gained"] for name, row in rows.items()}
    assert {name for name, n in gained.items() if not n} == WITHOUT_EFFECT
    assert sorted(gained.values()) == [0] * 6 + [1] * 12 + [2]
    assert gained[GAINS_TWO] == 2
    assert {row["tp_lost"] for row in rows.values()} == {0}
    assert sum(row["rows_renamed"] for row in rows.values()) == 43
    changes = {each["path"]: each["change"] for each in made["metrics"]}
    assert (changes["tp"], changes["fp"], changes["fn"]) == (14, -14, -14)
