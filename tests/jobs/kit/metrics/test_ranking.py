"""The same numbers as trec_eval, on lists shorter and longer than the cut-off.

Ranked lists: the fast reading and the plain one, query by query.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.evidence_retrieval.verification.definitions import MetricDefinitions
from jobs.kit.metrics.ranking import (
    RankingRules,
    evaluate,
    hits,
    qrels_lines,
    read_qrels,
    read_run,
    run_lines,
)
from tests.jobs.kit.metrics import second_reading as plain
from tests.jobs.kit.metrics.plain_formulas import MEASURES
from tests.jobs.kit.metrics.plain_formulas import gold_ranks as compare

trec = pytest.importorskip("pytrec_eval", reason="pytrec_eval is not installed")

IDS = [f"d{i}" for i in range(12)]
KS = (1, 3, 5, 10)
EVAL_MEASURES = {
    **{f"recall_{k}": f"recall@{k}" for k in KS},
    **{f"P_{k}": f"precision@{k}" for k in KS},
    **{f"success_{k}": f"hit@{k}" for k in KS},
    **{f"map_cut_{k}": f"map@{k}" for k in KS},
    **{f"ndcg_cut_{k}": f"ndcg@{k}" for k in KS},
    "recip_rank": "mrr",
    "map": "ap",
    "Rprec": "rprec",
    "bpref": "bpref",
    "infAP": "infap",
}
FAMILIES = {name.rsplit("_", 1)[0] for name in EVAL_MEASURES if name[-1].isdigit()}
PLAIN = {name for name in EVAL_MEASURES if not name[-1].isdigit()}


@st.composite
def queries(draw: st.DrawFn) -> tuple[dict[str, dict[str, int]], dict[str, list[str]]]:
    gold, ranked = {}, {}
    for i in range(draw(st.integers(1, 4))):
        judged = draw(st.lists(st.sampled_from(IDS), unique=True, max_size=8))
        grades = {item: draw(st.integers(0, 3)) for item in judged}
        # trec_eval leaves a query without relevant items out of its averages
        grades[draw(st.sampled_from(IDS))] = 1
        gold[f"q{i}"] = grades
        ranked[f"q{i}"] = draw(st.permutations(IDS))[: draw(st.integers(1, 12))]
    return gold, ranked


@given(queries())
def test_every_measure_of_every_query(
    given_: tuple[dict[str, dict[str, int]], dict[str, list[str]]],
) -> None:
    gold, ranked = given_
    names = list(gold)
    found = evaluate(hits([gold[q] for q in names], [ranked[q] for q in names]), KS)
    cuts = ",".join(map(str, KS))
    measures = {f"{family}.{cuts}" for family in FAMILIES} | PLAIN
    run = {
        q: {item: float(-rank) for rank, item in enumerate(items)}
        for q, items in ranked.items()
    }
    theirs = trec.RelevanceEvaluator(gold, measures).evaluate(run)
    for i, query in enumerate(names):
        for name, ours in EVAL_MEASURES.items():
            expected = theirs[query][name]
            assert found[ours][i] == pytest.approx(expected, abs=1e-12), (query, name)


@given(queries())
def test_files_keep_the_lists_as_trec_eval_reads_them(
    given_: tuple[dict[str, dict[str, int]], dict[str, list[str]]],
) -> None:
    gold, ranked = given_
    lines = [line.split() for line in run_lines(ranked, "tag")]
    run: dict[str, dict[str, float]] = {}
    for query, _, item, _, score, _ in lines:
        run.setdefault(query, {})[item] = float(np.float32(score))
    theirs = trec.RelevanceEvaluator(gold, {"recip_rank"}).evaluate(run)
    found = evaluate(hits(list(gold.values()), [ranked[q] for q in gold]), (1,))
    for i, query in enumerate(gold):
        expected = theirs[query]["recip_rank"]
        assert found["mrr"][i] == pytest.approx(expected, abs=1e-12)


def test_files_are_read_as_they_were_written(tmp_path: Path) -> None:
    gold = {"p 1|A.1": {"p 1_0": 1.0, "p 1_3": 0.0}, "p2|A.1": {"p2_1": 2.0}}
    ranked = {"p 1|A.1": ["p 1_3", "p 1_0"], "p2|A.1": ["p2_1"]}
    qrels, run = tmp_path / "qrels.txt", tmp_path / "run.txt"
    with pytest.raises(ValueError, match="--escape-ids"):
        list(qrels_lines(gold))
    qrels.write_text("".join(qrels_lines(gold, escape_ids=True)))
    run.write_text("".join(run_lines(ranked, "bm25", escape_ids=True)))
    assert read_qrels(qrels, escape_ids=True) == gold
    back = read_run(run, escape_ids=True)
    assert back.ranked == ranked
    assert (back.contradicting, back.first_contradicting) == (0, None)


def test_scores_in_single_precision_decide_and_contradictions_are_counted(
    tmp_path: Path,
) -> None:
    run = tmp_path / "run.txt"
    run.write_text("q Q0 a 1 1.000000001 t\nq Q0 b 2 1.0 t\nr Q0 a 1 3 t\n")
    found = read_run(run)
    assert found.ranked == {"q": ["b", "a"], "r": ["a"]}
    assert (found.contradicting, found.first_contradicting) == (1, "q")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("q Q0 a 1 1.0\n", "line 1: 5 fields"),
        ("q Q0 a 1 high t\n", "line 1: 'high' is no number"),
        ("q Q0 a 1 2 t\nq Q0 a 2 1 t\n", "lists an item twice"),
    ],
)
def test_a_line_that_is_off_is_named(tmp_path: Path, text: str, said: str) -> None:
    run = tmp_path / "run.txt"
    run.write_text(text)
    with pytest.raises(ValueError, match=said):
        read_run(run)


def test_the_three_denominators_of_average_precision() -> None:
    both = hits([["a", "b", "c"]], [["a", "x", "b"]])
    for over, expected in (("gold", 5 / 9), ("min", 5 / 6), ("found", 5 / 6)):
        found = evaluate(both, (2, 3), RankingRules(ap_over=over))
        assert found["map@3"][0] == pytest.approx(
            expected if over != "min" else 5 / 9, abs=1e-12
        )
    at_2 = {
        over: evaluate(both, (2,), RankingRules(ap_over=over))["map@2"][0]
        for over in ("gold", "min", "found")
    }
    assert at_2 == pytest.approx({"gold": 1 / 3, "min": 1 / 2, "found": 1.0})


LISTS_KS = (1, 3, 5, 10, 20)


@st.composite
def lists_queries(draw: st.DrawFn) -> list[tuple[dict[str, int], list[str]]]:
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
    return evaluate(found, LISTS_KS, RankingRules(**rules), persistence=0.8)


def near(expected: object) -> object:
    return pytest.approx(expected, rel=1e-12, abs=1e-12)


@given(
    lists_queries(),
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
            for k in LISTS_KS:
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


@given(lists_queries())
def test_measures_of_grades_and_of_the_whole_list(
    asked: list[tuple[dict[str, int], list[str]]],
) -> None:
    linear, exp = evaluated(asked), evaluated(asked, gain="exp")
    for i, (grades, ranked) in enumerate(asked):
        value, unknown = plain.rbp(grades, ranked, 0.8)
        assert linear["rbp_residual"][i] == near(unknown)
        for k in LISTS_KS:
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
        for k in LISTS_KS:
            ndcg = f"ndcg@{k}"
            own = plain.graded_ndcg(grades, ranked, k, lambda grade: grade)
            assert linear[ndcg][i] == near(own)
            own = plain.graded_ndcg(grades, ranked, k, lambda grade: 2**grade - 1)
            assert exp[ndcg][i] == near(own)
