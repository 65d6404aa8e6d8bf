"""Models, replicates and papers: what is drawn, what is paired, what is left out."""

from __future__ import annotations

import statistics

import numpy as np
import pytest

from jobs.property_extraction.aliases.alias_set import AliasEntry, AliasSet
from jobs.property_extraction.score import comparable
from tests.jobs.property_extraction.made_rows import Fields, column, values

WORDS = ("precision", "recall", "f1")

TRUTH: list[Fields] = [
    ("P1", "Tc", "5", "K"),
    ("P1", "Tc", "5", "K"),
    ("P2", "Tc", "6", "K"),
    ("P3", "structure", "A15"),
    ("P4", "Tc", "1", "K"),
    ("P5", "field", "2", "T"),
    ("P6", "field", "3", "T"),
]
STATED: list[Fields] = [
    ("P1", "Tc", "5", "K"),
    ("P2", "Tc", "7", "K"),
    ("P3", "structure", "a15"),
    ("P3", "structure", "B1"),
    ("P5", "field", "2", "T"),
    ("P6", "field", "30", "kOe"),
    ("P6", "field", "4", "T"),
]


def test_intervals_are_those_of_a_loop_over_draws_of_papers() -> None:
    own = column(TRUTH, STATED, boot_b=200, interval="percentile")
    rng = np.random.default_rng(20260118)
    draws = [rng.integers(0, 6, 6) for _ in range(200)]
    assert draws[0].tolist() == [1, 2, 2, 0, 0, 1]
    by_paper = [(1, 0, 1), (0, 1, 1), (1, 1, 0), (0, 0, 1), (1, 0, 0), (1, 1, 0)]
    for word, above, below in (
        ("precision", (1, 0, 0), (1, 1, 0)),
        ("recall", (1, 0, 0), (1, 0, 1)),
        ("f1", (2, 0, 0), (2, 1, 1)),
    ):
        drawn = []
        for places in draws:
            sums = [sum(by_paper[place][at] for place in places) for at in range(3)]
            bottom = sum(n * weight for n, weight in zip(sums, below, strict=True))
            if bottom:
                top = sum(n * weight for n, weight in zip(sums, above, strict=True))
                drawn.append(top / bottom)
        low, high = np.percentile(drawn, [2.5, 97.5])
        metric = own.metric(word)
        assert (metric.lo, metric.hi) == pytest.approx((low, high), abs=1e-11)
        assert metric.note is not None
        assert "only 6 papers" in metric.note


def test_one_paper_bounds_next_to_nothing() -> None:
    own = column(TRUTH[:2], STATED[:1], boot_b=200)
    for word in WORDS:
        metric = own.metric(word)
        assert metric.value is not None
        assert metric.lo == pytest.approx(0.025 * metric.value)
        assert metric.hi == pytest.approx(1 - 0.025 * (1 - metric.value))
        assert metric.note is not None
        assert "only 1 paper" in metric.note


def test_equal_truth_rows_are_rows_of_their_own_where_models_are_paired() -> None:
    one, both = (
        comparable(column(TRUTH, rows))["matched"]()
        for rows in (STATED, [*STATED, STATED[0]])
    )
    assert one.items == both.items
    assert len(set(one.items)) == len(TRUTH)
    assert one.first == [1, 0, 0, 1, 0, 1, 1]
    assert both.first == [1, 1, 0, 1, 0, 1, 1]


def test_replicates_are_scored_one_by_one() -> None:
    replicates = [STATED, STATED[:3], [*STATED, *STATED]]
    own = column(TRUTH, *replicates)
    for word in (*WORDS, "macro.recall", "tp"):
        each = [values(column(TRUTH, rows), word)[0] for rows in replicates]
        metric = own.metric(word)
        assert metric.value == pytest.approx(statistics.fmean(each))
        assert metric.std == pytest.approx(statistics.stdev(each))


def test_a_consensus_holds_the_rows_of_enough_replicates() -> None:
    replicates = [STATED, STATED[:3], STATED[1:]]
    for least, rows in ((1, STATED), (2, STATED), (3, STATED[1:3])):
        own = column(TRUTH, *replicates, consensus=least)
        assert values(own, "tp", "fp", "fn") == values(
            column(TRUTH, rows), "tp", "fp", "fn"
        )


def test_a_paper_that_failed_is_beside_the_headline_and_not_in_it() -> None:
    own = column(TRUTH, STATED[:3], failed=["P4", "P5"])
    # P6 was not asked about: an import knows no better than that nothing was found
    assert values(own, "tp", "fp", "fn") == (2, 1, 3)
    metric = own.metric("recall~failed_as_empty")
    assert (metric.value, metric.n) == (2 / 7, 2)
    assert own.metric("recall").value == 2 / 5


@pytest.mark.parametrize(
    ("truth", "stated", "counts"),
    [
        (TRUTH[:2], STATED[:1] * 2, (2, 0, 0)),
        (TRUTH[:2], (), (0, 0, 2)),
        (TRUTH[:2], [("P9", "Tc", "5", "K")], (0, 1, 2)),
    ],
)
def test_a_paper_without_wrong_or_without_missed_rows_offers_no_aliases(
    truth: list[Fields], stated: list[Fields], counts: tuple[int, int, int]
) -> None:
    own = column(truth, stated)
    assert values(own, "tp", "fp", "fn") == counts
    assert not own.mismatches.candidates
    assert not own.mismatches.draft


def test_without_papers_in_common_nothing_is_defined() -> None:
    own = column(TRUTH[:2], [("P9", "Tc", "5", "K")], paper_set="common", boot_b=10)
    assert values(own, "tp", "fp", "fn") == (0, 0, 0)
    assert values(own, *WORDS, "macro.f1", "encompassment") == (None,) * 5


def test_a_value_that_says_there_is_none_is_a_value_in_the_truth() -> None:
    truth: list[Fields] = [("P1", "free", "NOT_FOUND")]
    stated: list[Fields] = [("P1", "free", "not_found"), ("P1", "free", "NOT_FOUND")]
    paths = ("tp", "fp", "fn", "abstained")
    assert values(column(truth, stated), *paths) == (0, 0, 1, 2)
    assert values(column(truth, stated, abstentions="value"), *paths) == (1, 1, 0, 0)


def test_what_cannot_be_compared_is_in_no_denominator() -> None:
    truth, stated = (
        [*rows, ("P1", "formula", "Nb3Sn"), ("P2", "formula", "NbSe2")]
        for rows in (TRUTH, STATED)
    )
    paths = ("tp", "fp", "fn", *WORDS, "macro.f1", "name_coverage", "misses")
    usual = column(TRUTH, STATED)
    left_out = column(truth, stated)
    assert values(left_out, *paths) == values(usual, *paths)
    assert left_out.metric("macro.f1").n == usual.metric("macro.f1").n
    pytest.importorskip("pymatgen.core")
    compared = column(truth, stated, pymatgen="on")
    tp, fp, fn = values(usual, "tp", "fp", "fn")
    assert values(compared, "tp", "fp", "fn") == (tp + 2, fp, fn)


def test_names_that_differ_in_a_blank_are_two() -> None:
    truth: list[Fields] = [("P1", "H ⊥ab-plane", "1"), ("P1", "H⊥ab-plane", "2")]
    stated: list[Fields] = [("P1", "H⊥ab-plane", "1"), ("P1", "H ⊥ab-plane", "2")]
    assert values(column(truth, stated), "tp", "fp", "fn") == (0, 2, 2)
    assert values(column(truth, truth), "tp", "fp", "fn") == (2, 0, 0)


def test_an_alias_takes_no_value_from_the_right_name() -> None:
    truth: list[Fields] = [("P1", "Tc", "5", "K")]
    stated: list[Fields] = [("P1", "onset Tc", "5", "K"), ("P1", "Tc", "5", "K")]
    alias = AliasEntry(
        pred_name="onset Tc", gt_name="Tc", status="accepted", source="human"
    )
    own = column(truth, stated, aliases=AliasSet(entries=(alias,)))
    assert values(own, "tp", "fp", "fn") == (1, 1, 0)
    assert list(own.first.row_outcomes.partners) == [-1, 0]


def test_a_name_that_is_right_in_one_paper_may_be_an_alias_nowhere_else() -> None:
    truth: list[Fields] = [("P1", "free", "x"), ("P2", "Tc", "5", "K")]
    stated: list[Fields] = [("P1", "free", "x"), ("P2", "free", "5", "K")]
    own = column(truth, stated)
    assert own.mismatches.draft == {}
    kept = column(truth, stated, same_name="keep")
    assert kept.mismatches.draft == {"free": "Tc"}
