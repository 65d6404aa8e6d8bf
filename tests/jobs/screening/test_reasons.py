"""Written reasons as codes: rules in order, a mapping before them, known counts."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest

from jobs.noticed import Noticed
from jobs.screening.corpus import Exclusion
from jobs.screening.judgement import REASON_CODES
from jobs.screening.reasons import RULES, code_of, coded, read_reason_map
from runner.errors import DatasetError


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("Duplicate of a randomised trial", "duplicate"),
        ("Protocol only", "ongoing"),
        ("Not yet\n published", "ongoing"),
        ("Nonrandom; wrong patients", "population"),
        ("No RCT: wrong patients", "study_design"),
        ("Wrong study\N{HYPHEN}design", "other"),
        ("cross\N{HYPHEN}over", "study_design"),
        ("Patient had no diagnosis", "population"),
        ("No control group", "comparator"),
        ("Wrong dose", "intervention"),
        ("Follow\N{HYPHEN}up too short", "outcome"),
        ("Data could not be had", "outcome"),
        ("Written in verse", "other"),
    ],
)
def test_the_first_rule_that_fits_gives_the_code(reason: str, code: str) -> None:
    assert code_of(reason) == code


def test_every_code_is_one_that_models_may_give() -> None:
    assert {code for code, _ in RULES} < set(REASON_CODES)


def test_a_given_code_wins_over_the_mapping_and_that_over_the_rules(
    tmp_path: Path,
) -> None:
    path = tmp_path / "map.csv"
    path.write_text("reason,reason_code\nWrong  Patients,date\n")
    own = read_reason_map(path, Noticed())
    assert own == {"wrong patients": "date"}
    given = [
        Exclusion(review="r", paper="1", reason="wrong patients"),
        Exclusion(review="r", paper="2", reason="wrong patients", reason_code="other"),
        Exclusion(review="r", paper="3", reason="other patients"),
        Exclusion(review="r", paper="4"),
    ]
    codes = [each.reason_code for each in coded(given, own)]
    assert codes == ["date", "other", "population", ""]


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ("a,other\nA,date\n", r"map\.csv row 3: the reason has another code"),
        ("a,wrong\n", r"map\.csv row 2: reason_code is 'wrong'"),
    ],
)
def test_a_mapping_that_is_off_is_refused(rows: str, told: str, tmp_path: Path) -> None:
    path = tmp_path / "map.csv"
    path.write_text(f"reason,reason_code\n{rows}")
    with pytest.raises(DatasetError, match=told):
        read_reason_map(path, Noticed())


@pytest.mark.realdata
def test_published_reasons_have_the_known_codes(realdata: Path) -> None:
    with (realdata / "near_miss" / "csmed_cochrane" / "references.csv").open(
        encoding="utf-8", newline=""
    ) as file:
        rows = list(csv.DictReader(file))
    assert Counter(row["reference_type"] for row in rows) == {
        "included": 191,
        "excluded": 248,
        "additional": 468,
        "other_versions": 9,
        "awaiting_assessment": 4,
    }
    reasons = (r["exclusion_reason"] for r in rows if r["reference_type"] == "excluded")
    assert Counter(map(code_of, reasons)) == {
        "study_design": 159,
        "intervention": 29,
        "population": 19,
        "outcome": 14,
        "comparator": 11,
        "other": 8,
        "ongoing": 7,
        "duplicate": 1,
    }
