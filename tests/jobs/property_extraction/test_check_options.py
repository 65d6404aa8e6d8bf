"""Real predictions, scored by the command with one option changed at a time."""

from __future__ import annotations

import csv
from pathlib import Path

import pytest

from tests.jobs.property_extraction.real_predictions import (
    CHAT,
    FREE,
    GEMINI,
    RealPredictions,
)
from tests.jobs.screening.commanded import rows, write_csv

pytestmark = [pytest.mark.realdata, pytest.mark.timeout(120)]


@pytest.mark.parametrize(
    ("words", "counts"),
    [
        (("--numbers", "strict"), (32, 71, 82)),
        (("--categorical", "substring"), (39, 64, 75)),
        (("--units", "ignore"), (36, 67, 78)),
        (("--abstentions", "value"), (37, 77, 77)),
        (("--matching", "greedy"), (37, 66, 77)),
        (("--paper-set", "common"), (37, 66, 77)),
    ],
)
def test_one_option_at_a_time(
    real: RealPredictions, words: tuple[str, str], counts: tuple[int, int, int]
) -> None:
    assert real.scored(GEMINI, *words).counts == counts


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("rubric_2.csv", (33, 70, 81)),
        ("rubric_4.csv", (29, 74, 85)),
        ("rubric_5.csv", (33, 73, 84)),
    ],
)
def test_one_rubric_after_another(
    real: RealPredictions, name: str, counts: tuple[int, int, int]
) -> None:
    path = real.folder / "scoring_assets" / name
    assert real.scored(GEMINI, "--rubric", path).counts == counts


def test_space_groups_compared_as_such(real: RealPredictions, tmp_path: Path) -> None:
    with real.rubric.open(encoding="utf-8", newline="") as lines:
        table = csv.DictReader(lines)
        own = [
            {**row, "rubric": "space_group"}
            if row["property_name"] == "space group"
            else row
            for row in table
        ]
        columns = list(table.fieldnames or ())
    path = write_csv(tmp_path / "rubric.csv", columns, own)
    assert real.scored(GEMINI, "--rubric", path).counts == (38, 65, 76)


@pytest.mark.parametrize(
    ("name", "profile", "counts"),
    [
        (GEMINI, "siftlog", (37, 77, 89)),
        (CHAT, "siftlog", (26, 383, 100)),
        (FREE, "siftlog", (2, 144, 35)),
        (GEMINI, "published", (33, 93, 93)),
        (CHAT, "published", (27, 382, 99)),
    ],
)
def test_compositions_are_in_all_counts_or_in_none(
    real: RealPredictions, name: str, profile: str, counts: tuple[int, int, int]
) -> None:
    pytest.importorskip("pymatgen.core")
    words = ("--pymatgen", "on", "--profile", profile)
    assert real.scored(name, *words).counts == counts


def test_what_substrings_and_units_add_is_known(real: RealPredictions) -> None:
    """Both pairs that substrings add are accidents; one pair needs its unit."""
    usual, loose, plain = (
        real.scoring(GEMINI, *words).folder
        for words in ((), ("--categorical", "substring"), ("--units", "ignore"))
    )

    def pairs(folder: Path) -> set[tuple[str, str]]:
        return {
            (row["pred_value"], row["gt_value"])
            for row in rows(folder / "score_pr_matches.csv")
            if row["status"] == "TP"
        }

    accidents = pairs(loose) - pairs(usual)
    assert len(accidents) == 2
    assert all(
        truth != stated and (truth.lower() in stated.lower() or stated in truth)
        for stated, truth in accidents
    )
    (converted,) = (
        row
        for row in rows(usual / "score_pr_rows.csv")
        if row["status"] == "TP" and row["unit_status"] == "converted"
    )
    assert (converted["pred_unit"], converted["gt_unit"]) == (
        "μΩ cm at 100 K",
        "m.ohm.cm",
    )
    lost = (converted["pred_value"], converted["gt_value"])
    assert pairs(usual) - pairs(plain) == {lost} == {("30", "0.03")}
