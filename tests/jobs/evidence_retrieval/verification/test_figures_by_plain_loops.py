"""Each figure of a summary against plain loops, under every choice of definitions."""

from __future__ import annotations

import ast
import math
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.evidence_retrieval.verification.definitions import (
    SIFTLOG,
    MetricDefinitions,
    QueryRow,
)
from jobs.evidence_retrieval.verification.figures import (
    NotComputableError,
    QueryScope,
    deployment_figure,
    gate_figure,
    mean,
    ranking_figure,
)
from tests.jobs.kit.metrics import plain_formulas as plain

LIST = "retriever"
IDS = tuple("abcdefgh")
PROBABILITIES = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0])


@st.composite
def query_rows(draw: st.DrawFn) -> QueryRow:
    gold = draw(st.lists(st.sampled_from(IDS), unique=True, max_size=4))
    ranked = draw(st.lists(st.sampled_from(IDS), unique=True))
    low, high = sorted((draw(PROBABILITIES), draw(PROBABILITIES)))
    return QueryRow(
        truth=draw(st.sampled_from([bool(gold), None])),
        p=draw(PROBABILITIES | st.none()),
        state=draw(st.sampled_from(["", "NEG", "UNCERTAIN", "POS"])),
        tau_neg=low,
        tau_pos=high,
        selected=draw(st.integers(0, 6) | st.none()),
        gold=tuple(gold),
        lists={LIST: ranked} if draw(st.booleans()) else {},
    )


QUERIES = st.lists(query_rows(), min_size=1, max_size=12)


def computed(
    figure: str, queries: list[QueryRow], choices: MetricDefinitions
) -> float | str | None:
    """The product's value, or "not computable"."""
    found = (
        ranking_figure(figure, LIST) or gate_figure(figure) or deployment_figure(figure)
    )
    assert found is not None
    try:
        value = QueryScope(queries).value(found, choices)
    except NotComputableError:
        return "not computable"
    return None if value is not None and math.isnan(value) else value


def every_choice(figure: str) -> list[MetricDefinitions]:
    found = (
        ranking_figure(figure, LIST) or gate_figure(figure) or deployment_figure(figure)
    )
    assert found is not None
    others = [choices for choices, _ in SIFTLOG.alternatives(found.variants)]
    return [SIFTLOG, *others]


def near(value: float | None) -> object:
    return value if value is None else pytest.approx(value, rel=1e-12, abs=1e-15)


def ranked_by_loops(
    measure: str, cut: str | None, queries: list[QueryRow], choices: MetricDefinitions
) -> float | str | None:
    named = {None: "whole list", "K": "selected"}.get(cut) or int(cut or 0)
    at = named if choices.k == "named" else choices.k
    values = []
    positive = [query for query in queries if query.truth]
    if choices.skip_empty and at == "selected":
        positive = [q for q in positive if q.selected != 0 or LIST not in q.lists]
    for query in positive:
        if LIST not in query.lists or (at == "selected" and query.selected is None):
            continue
        ranks = plain.gold_ranks(query.gold, query.lists[LIST])
        k = {"selected": query.selected, "whole list": ranks.length}.get(str(at), at)
        rule = choices
        if at == "selected" and choices.precision_over is None:
            rule = MetricDefinitions(
                precision_over="k_eff", ap_denominator=choices.ap_denominator
            )
        assert isinstance(k, int)
        values.append(plain.MEASURES[measure](ranks, k, rule))
    if positive and not values:
        return "not computable"
    negatives = sum(query.truth is False for query in queries)
    is_over_all = choices.queries == "all"
    return mean(values, choices, over=len(values) + (negatives if is_over_all else 0))


CUTS = [
    *((measure, cut) for measure in sorted(plain.MEASURES) for cut in ("1", "3", "K")),
    ("mrr", None),
]


@given(queries=QUERIES)
def test_rankings(queries: list[QueryRow]) -> None:
    # all figures of the same queries: drawing them takes longer than a figure
    for measure, cut in CUTS:
        figure = measure if cut is None else f"{measure}@{cut}"
        for choices in every_choice(figure):
            expected = ranked_by_loops(measure, cut, queries, choices)
            found = computed(figure, queries, choices)
            wanted = expected if isinstance(expected, str) else near(expected)
            assert found == wanted, figure


@pytest.mark.parametrize("measure", sorted({*plain.MEASURES} - {"mrr"}))
def test_a_ranking_has_a_cut(measure: str) -> None:
    assert ranking_figure(measure, LIST) is None


@given(queries=QUERIES)
def test_rates_of_the_gate(queries: list[QueryRow]) -> None:
    for name in sorted(plain.RATES):
        for choices in every_choice(name):
            stated = [
                (query.truth, state)
                for query in queries
                if query.truth is not None and (state := plain.state_of(query, choices))
            ]
            expected = plain.rate(name, plain.count(stated), choices)
            found = computed(name, queries, choices)
            wanted = near(expected) if stated else "not computable"
            assert found == wanted, name


@given(queries=QUERIES)
def test_curves_and_calibration(queries: list[QueryRow]) -> None:
    judged = [
        (query.truth, query.p)
        for query in queries
        if query.truth is not None and query.p is not None
    ]
    points = plain.curve(judged)
    for name in ("auroc", "auprc", "ece", "mce", "tpr_at_10pct_fpr"):
        for choices in every_choice(name):
            found = computed(name, queries, choices)
            if not judged:
                assert found == "not computable"
                continue
            point = plain.operating_point(points, 0.1, choices.tpr_rule)
            expected = {
                "auroc": plain.auroc(points),
                "auprc": plain.auprc(points),
                "ece": plain.ece(judged, choices),
                "mce": plain.mce(judged, choices),
                "tpr_at_10pct_fpr": None if point is None else point.tpr,
            }[name]
            assert found == near(choices.of_nothing if expected is None else expected)


def test_the_plain_loops_share_nothing_with_the_kit() -> None:
    """What two readings agree on is worth more if they are two."""
    tree = ast.parse(Path(plain.__file__).read_text(encoding="utf-8"))
    modules = {
        name
        for node in ast.walk(tree)
        for name in (
            [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else []
        )
    }
    foreign = {n for n in modules if n.partition(".")[0] not in sys.stdlib_module_names}
    # the names of the choices, and no arithmetic
    assert foreign == {"jobs.evidence_retrieval.verification.definitions"}
