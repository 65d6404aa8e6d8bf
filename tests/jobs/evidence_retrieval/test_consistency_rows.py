"""Each rule about rows finds what is planted against it, and nothing in clean rows.

Numbers as files print them: rounding is no contradiction, another number is.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.evidence_retrieval.stated_rules import digits, is_printed, is_share
from tests.jobs.evidence_retrieval.given_files import (
    CLEAN,
    SAMPLE,
    SHORT_LISTS,
    Rows,
    changed,
    codes,
    found,
    imported,
    ranked,
    write_csv,
    write_jsonl,
)


def findings_of(
    tmp_path: Path, rows: Rows, lists: Rows | None = None
) -> dict[str, int]:
    files = [
        write_csv(tmp_path / "l.csv", rows),
        write_jsonl(tmp_path / "r.jsonl", ranked(rows) if lists is None else lists),
    ]
    sheet = imported(*files)
    return codes([*sheet.findings, *found(sheet, **SHORT_LISTS)])


def test_clean_rows_have_no_finding(tmp_path: Path) -> None:
    assert findings_of(tmp_path, CLEAN) == {}


@pytest.mark.parametrize(
    ("place", "cells", "expected"),
    [
        (0, {"gold_sent_uids": ""}, {"positive_without_gold": 1}),
        (1, {"gold_sent_uids": "p_1_2"}, {"negative_with_gold": 1}),
        (
            1,
            {"n_candidates": 0},
            {"empty_pool": 1, "list_longer_than_pool": 1},
        ),
        (0, {"n_candidates": 6}, {"list_shorter_than_pool": 1}),
        (3, {"n_candidates": 3}, {"list_longer_than_pool": 1}),
        (
            3,
            {"state": "POS", "screening_correct": 0, "alert_correct": 0},
            {"state_contradicts_thresholds": 1},
        ),
        (2, {"tau_neg": 0.13}, {"thresholds_vary_in_fold": 1}),
        (0, {"p4_prob_raw": 0.05}, {"calibration_not_monotone": 1}),
        (1, {"selected_k": 2}, {"neg_with_k": 1}),
        (3, {"selected_k": 0}, {"shown_without_k": 1}),
        (3, {"selected_k": 5}, {"k_above_pool": 1}),
        (
            2,
            {"evidence_recall_at_k": 0.7},
            {"recall_no_share_of_gold": 1, "stated_differs": 1},
        ),
        (
            2,
            {"evidence_precision_at_k": 0.5},
            {"precision_no_share_of_k": 1, "stated_differs": 1},
        ),
        (2, {"mrr": 0.4}, {"mrr_no_reciprocal": 1, "stated_differs": 1}),
        (
            2,
            {"mrr": 0.25},
            {"rank_contradicts_recall": 1, "stated_differs": 1},
        ),
        (
            2,
            {"evidence_recall_at_k": 0.0, "evidence_precision_at_k": 0.0},
            {"rank_contradicts_recall": 1, "stated_differs": 2},
        ),
        (2, {"evidence_recall_at_k": 1.0}, {"stated_differs": 1}),
        (1, {"mrr": 1.0, "evidence_recall_at_k": 0.0}, {"filled_on_negatives": 2}),
        (1, {"screening_correct": 0}, {"decision_wrongly_judged": 1}),
        (2, {"alert_correct": 1}, {"decision_wrongly_judged": 1}),
    ],
)
def test_planted_violation_is_found(
    tmp_path: Path, place: int, cells: Mapping[str, object], expected: dict[str, int]
) -> None:
    assert findings_of(tmp_path, changed(place, **cells)) == expected


def test_precision_that_is_a_share_as_printed_is_no_contradiction(
    tmp_path: Path,
) -> None:
    assert findings_of(tmp_path, changed(2, evidence_precision_at_k="0.33")) == {}


def test_reciprocal_that_is_one_only_as_printed_is_told(tmp_path: Path) -> None:
    lists = [dict(row) for row in ranked(CLEAN)]
    lists[2]["sent_uids"] = ["p_0", "p_2", "p_1", "p_3"]
    assert findings_of(tmp_path, changed(2, mrr="0.333"), lists) == {"mrr_rounded": 1}


def test_incomplete_posts_are_told_with_both_numbers(tmp_path: Path) -> None:
    sheet = imported(write_csv(tmp_path / "l.csv", CLEAN[:3]))
    (finding,) = found(sheet, **SHORT_LISTS)
    assert (finding.code, finding.n) == ("incomplete_posts", 1)
    assert "3 queries, but 2 posts x 2 criteria are 4" in finding.message
    assert sheet.sizes["incomplete_posts"] == 1


def test_gold_outside_of_the_list_is_told_with_the_query(tmp_path: Path) -> None:
    lists = [dict(row) for row in ranked(CLEAN)]
    lists[2]["sent_uids"] = ["p_0", "p_1", "p_2"]
    assert findings_of(tmp_path, CLEAN, lists) == {
        "gold_not_listed": 1,
        "list_shorter_than_pool": 1,
    }


def test_lists_that_end_before_a_cut_off_are_told(tmp_path: Path) -> None:
    files = (
        write_csv(tmp_path / "l.csv", CLEAN),
        write_jsonl(tmp_path / "r.jsonl", ranked(CLEAN)),
    )
    (finding,) = found(imported(*files))
    assert finding.code == "lists_end_early"
    assert "Lists end at 4: figures at 5, 10, 20 equal those at 4" in finding.message


def test_one_pair_of_thresholds_for_all_folds_is_told(tmp_path: Path) -> None:
    rows = [{**row, "tau_neg": 0.1, "tau_pos": 0.8} for row in CLEAN]
    assert findings_of(tmp_path, rows) == {"same_thresholds_in_all_folds": 4}


def test_thresholds_swapped_between_folds_are_found_in_the_states(
    tmp_path: Path,
) -> None:
    other = {0: (0.12, 0.91), 1: (0.3, 0.8)}
    rows = [
        {**row, "tau_neg": other[fold][0], "tau_pos": other[fold][1]}
        for row in CLEAN
        for fold in [int(str(row["fold_id"]))]
    ]
    assert findings_of(tmp_path, rows) == {"state_contradicts_thresholds": 2}


@pytest.mark.parametrize(("edge", "n"), [("lt", 1), ("le", 0)])
def test_state_at_a_threshold_says_which_edge_rule_made_it(
    tmp_path: Path, edge: str, n: int
) -> None:
    rows = changed(1, p4_prob_calibrated=0.1)
    sheet = imported(write_csv(tmp_path / "l.csv", rows))
    assert codes(found(sheet, gate_edge=edge)).get("state_of_other_edge", 0) == n


def test_states_under_both_edges_where_p_is_0_and_so_is_tau_neg(tmp_path: Path) -> None:
    """Isotonic calibration gives many zeros, and a perfect screen a threshold of 0."""
    rows = [
        {**row, "tau_neg": 0.0, "p4_prob_calibrated": 0.0, "p4_prob_raw": 0.1}
        if row["criterion_id"] == "A.2"
        else {**row, "tau_neg": 0.0}
        for row in CLEAN
    ]
    sheet = imported(write_csv(tmp_path / "l.csv", rows))
    (told,) = (f for f in found(sheet) if f.code == "state_contradicts_thresholds")
    assert told.n == 1
    assert "1 of 4 states do not follow" in told.message
    assert "1 where it is p <= tau_neg" in told.message


def test_gamma_sweep_that_changes_nothing_is_told(tmp_path: Path) -> None:
    sweep = [
        {
            "post_id": row["post_id"],
            "criterion_id": row["criterion_id"],
            "k_gamma_0.7": 3,
            "k_gamma_0.95": 3,
        }
        for row in CLEAN
    ]
    sheet = imported(
        write_csv(tmp_path / "l.csv", CLEAN), write_csv(tmp_path / "g.csv", sweep)
    )
    assert list(sheet.predictions[0].sweep) == [0.7, 0.95]
    (told,) = found(sheet)
    assert told.code == "gamma_without_effect"
    assert "3.0 at 0.7, 3.0 at 0.95" in told.message


@pytest.mark.realdata
def test_every_contradiction_of_the_published_sample_is_found(realdata: Path) -> None:
    sheet = imported(realdata / SAMPLE, allow_ragged=True)
    findings = [*sheet.findings, *found(sheet)]
    assert [(f.code, f.severity, f.where, f.n) for f in findings] == [
        ("ragged_rows", "warn", "sample_per_query.csv", 8),
        ("state_contradicts_thresholds", "error", "imported state", 15),
        ("neg_with_k", "warn", "imported selected_k", 7),
        (
            "precision_no_share_of_k",
            "error",
            "imported evidence_precision_at_k",
            6,
        ),
        ("mrr_rounded", "info", "imported mrr", 2),
        ("filled_on_negatives", "warn", "imported mrr", 8),
        ("decision_wrongly_judged", "error", "imported screening_correct", 1),
        ("decision_wrongly_judged", "error", "imported alert_correct", 8),
    ]
    said = {f.where: f.message for f in findings}
    assert "15 of 16" in said["imported state"]
    assert "15 where it is p <= tau_neg" in said["imported state"]
    screening = said["imported screening_correct"]
    assert "1 of 16 rows, 8 by p and the thresholds" in screening
    alert = said["imported alert_correct"]
    assert "8 of 8 rows, 0 by p and the thresholds" in alert


@pytest.mark.realdata
@pytest.mark.parametrize(
    ("folder", "absent"),
    [("bge_m3_rrf_top20", (5, 13)), ("baseline_default_val", (3, 5))],
)
def test_gold_absent_from_the_recorded_lists_is_counted(
    realdata: Path, folder: str, absent: tuple[int, int]
) -> None:
    sheet = imported(realdata / "evidence_pipeline" / folder / "per_query.csv")
    findings = found(sheet)
    assert {f.code for f in findings} == {"gold_not_listed"}
    assert tuple(int(f.message.split()[0]) for f in findings) == absent


places = st.integers(1, 17)


@given(st.integers(1, 60), st.data(), places)
def test_share_is_one_in_however_many_digits_it_is_printed(
    parts: int, data: st.DataObject, decimals: int
) -> None:
    share = data.draw(st.integers(0, parts)) / parts
    assert is_share(float(f"{share:.{decimals}f}"), parts)


@given(st.floats(0, 1), places)
def test_number_is_what_it_is_printed_as(exact: float, decimals: int) -> None:
    assert is_printed(exact, float(f"{exact:.{decimals}f}"))


@given(st.integers(1, 60), st.integers(0, 59))
def test_number_half_way_between_two_shares_is_none(parts: int, whole: int) -> None:
    between = (whole % parts + 0.5) / parts
    assert not is_share(between, parts) or digits(between) <= 2


def test_tiny_numbers_have_digits_too() -> None:
    assert digits(0.25) == 2
    assert digits(2.5e-7) == 8


@pytest.mark.parametrize(("precise", "told"), [(True, 1), (False, 0)])
def test_half_stands_for_046_only_where_the_column_has_few_digits(
    tmp_path: Path, precise: bool, told: int
) -> None:
    """Seven sentences of fifteen are 0.467: 0.5 in a column of one digit."""
    rows = [dict(row, n_candidates=15) for row in CLEAN]
    rows[2] |= {
        "gold_sent_uids": "|".join(f"p_{n}" for n in range(7)),
        "selected_k": 15,
        "evidence_recall_at_k": 1.0,
        "evidence_precision_at_k": 0.5,
        "mrr": 1.0,
    }
    if precise:
        rows[0] |= {"selected_k": 3, "evidence_precision_at_k": 0.3333333333333333}
    lists = [
        {**row, "sent_uids": [f"{row['post_id']}_{n}" for n in range(15)]}
        for row in ranked(CLEAN)
    ]
    sheet = imported(
        write_csv(tmp_path / "l.csv", rows), write_jsonl(tmp_path / "r.jsonl", lists)
    )
    assert codes(found(sheet, **SHORT_LISTS)).get("stated_differs", 0) == told
