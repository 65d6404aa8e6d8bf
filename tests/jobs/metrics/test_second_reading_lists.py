"""Ranked lists: the fast reading and the plain one, query by query."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.evidence_retrieval.verification.definitions import MetricDefinitions
from jobs.evidence_retrieval.verification.definitions import gold_ranks as compare
from jobs.evidence_retrieval.verification.formulas import MEASURES
from jobs.metrics.ranking import RankingRules, evaluate, hits
from tests.jobs.metrics import second_reading as plain

IDS = [f"d{i}" for i in range(12)]
KS = (1, 3, 5, 10, 20)


@st.composite
def queries(draw: st.DrawFn) -> list[tuple[dict[str, int], list[str]]]:
    """Grades by id, some of them 0, and a list: short, long, or empty."""
    found = []
    for _ in range(draw(st.integers(1, 5))):
        judged = draw(st.lists(st.sampled_from(IDS), unique=True, max_size=8))
        grades = {item: draw(st.integers(0, 3)) for item in judged}
        ranked = draw(st.permutations(IDS))[: draw(st.integers(0, 12))]
        found.append((grades, ranked))
    return found


def evaluated(asked: list[tuple[dict[str, int], list[str]]], **rules: Any) -> Any:
    found = hits([grades for grades, _ in asked], [ranked for _, ranked in asked])
    return evaluate(found, KS, RankingRules(**rules), persistence=0.8)


def near(expected: object) -> object:
    return pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(
    queries(),
    st.sampled_from(["gold", "min", "found"]),
    st.sampled_from(["k", "k_eff"]),
    st.booleans(),
)
def test_measures_at_every_cut_off(
    asked: list[tuple[dict[str, int], list[str]]],
    ap: Any,
    precision: Any,
    is_zero: bool,
) -> None:
    columns = evaluated(
        asked,
        ap_over=ap,
        precision_over=precision,
        empty="zero" if is_zero else "undefined",
    )
    choices = MetricDefinitions(ap_denominator=ap, precision_over=precision)
    for i, (grades, ranked) in enumerate(asked):
        gold = {item for item, grade in grades.items() if grade}
        own = compare(gold, ranked)
        for name, measure in MEASURES.items():
            # the plain nDCG knows no grades
            if name == "ndcg" and any(grade > 1 for grade in grades.values()):
                continue
            for k in KS:
                value = columns[f"{name}@{k}"][i]
                if not gold:
                    assert value == 0.0 if is_zero else math.isnan(value)
                else:
                    assert value == near(measure(own, k, choices)), (name, k)
        if gold:
            whole = len(ranked)
            assert columns["mrr"][i] == near(MEASURES["mrr"](own, whole, choices))
            least = max(len(gold), whole)
            assert columns["ap"][i] == near(MEASURES["map"](own, least, choices))


@given(queries())
def test_measures_of_grades_and_of_the_whole_list(
    asked: list[tuple[dict[str, int], list[str]]],
) -> None:
    linear, exp = evaluated(asked), evaluated(asked, gain="exp")
    for i, (grades, ranked) in enumerate(asked):
        value, unknown = plain.rbp(grades, ranked, 0.8)
        assert linear["rbp_residual"][i] == near(unknown)
        for k in KS:
            seen = ranked[:k]
            judged = sum(item in grades for item in seen)
            share = judged / len(seen) if seen else 0.0
            assert linear[f"judged@{k}"][i] == near(share)
        if not any(grades.values()):
            assert np.isnan(linear["rbp"][i])
            assert np.isnan(linear["rprec"][i])
            continue
        assert linear["rbp"][i] == near(value)
        for name, expected in plain.whole_list(grades, ranked).items():
            assert expected is not None
            assert linear[name][i] == near(float(expected)), name
        for k in KS:
            ndcg = f"ndcg@{k}"
            own = plain.graded_ndcg(grades, ranked, k, lambda grade: grade)
            assert linear[ndcg][i] == near(own)
            own = plain.graded_ndcg(grades, ranked, k, lambda grade: 2**grade - 1)
            assert exp[ndcg][i] == near(own)
