"""Small files against stored results: borders, blanks and undefined values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.evidence_retrieval.verification.definitions import (
    SIFTLOG,
    MetricDefinitions,
    definitions_of,
)
from jobs.evidence_retrieval.verification.verify import (
    StoredComparison,
    SummaryVerification,
    verify,
)
from jobs.kit.metrics.calibration import ece
from jobs.kit.metrics.classification import Vertex, tpr_at_fpr

Row = Mapping[str, str]
Y = [0, 1, 1, 0, 0, 0, 0, 0, 1, 1, 0, 1, 0, 0, 0, 0]
P = [0.6, 0.7, 0.4, 0.3, 0.0, 0.8, 0.5, 0.7, 0.8, 0.9, 0.1, 0.1, 0.3, 0.6, 0.3, 1.0]


def row(i: int, **cells: object) -> Row:
    return {
        "fold_id": "0",
        "post_id": f"post_{i}",
        "criterion_id": "A.1",
        **{name: str(cell) for name, cell in cells.items()},
    }


def judged(y: Sequence[int], p: Sequence[float]) -> list[Row]:
    return [
        row(i, has_evidence_gold=truth, p4_prob_calibrated=repr(said))
        for i, (truth, said) in enumerate(zip(y, p, strict=True))
    ]


def compared(
    rows: Sequence[Row],
    group: str,
    key: str,
    value: object,
    *,
    choices: MetricDefinitions = SIFTLOG,
) -> StoredComparison:
    """What becomes of one value that the only fold has."""
    summary = {"fold_results": [{"test_metrics": {group: {key: value}}}]}
    found = verify(rows, summary, choices=choices)
    return found.comparisons[0]


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({}, ""),
        ({"closed": "left"}, "ece_edges=left"),
        ({"drop_zero": True}, "ece_edges=right_drop_zero"),
        ({"closed": "left", "drop_one": True}, "ece_edges=left_drop_one"),
        ({"reference": "midpoint"}, "ece_edges=right_midpoint"),
    ],
)
def test_the_bins_of_another_calibration_error_are_named(
    options: dict[str, Any], why: str
) -> None:
    # one positive at 0 and two negatives at 1: each lost border changes the value
    y, p = [*Y[:4], 1, *Y[5:], 0], [*P, 1.0]
    found = compared(judged(y, p), "ne_gate", "ece", ece(y, p, **options))
    assert (found.verdict, found.why) == ("other definition" if why else "equal", why)


@pytest.mark.parametrize("vertex", ["last", "interpolate", "drop_collinear", "nearest"])
def test_the_vertex_of_another_operating_point_is_named(vertex: Vertex) -> None:
    p = [*P[:-1], 0.2]
    point = tpr_at_fpr(Y, p, 0.1, vertex=vertex)
    assert point is not None
    found = compared(judged(Y, p), "ne_gate", "tpr_at_10pct_fpr", point.tpr)
    assert found.why == ("" if vertex == "last" else f"tpr_rule={vertex}")
    assert found.verdict == ("equal" if vertex == "last" else "other definition")


@pytest.mark.parametrize("stored", [None, math.inf, "inf", "Infinity"])
def test_a_threshold_that_nobody_reaches_is_inf_or_null(stored: object) -> None:
    rows = judged([0, 1, 0], [0.9, 0.5, 0.1])
    found = compared(rows, "ne_gate", "threshold_at_10pct_fpr", stored)
    assert (found.verdict, found.recomputed) == ("equal", math.inf)
    assert compared(rows, "ne_gate", "threshold_at_10pct_fpr", 0.4).verdict == "differs"


def test_tau_pos_of_inf_is_read_back_as_it_is_written() -> None:
    rows = [row(0, tau_neg="0.1", tau_pos="inf"), row(1, tau_neg="0.1", tau_pos="inf")]
    for stored in ("inf", None):
        summary = {"fold_results": [{"threshold_selection": {"tau_pos": stored}}]}
        assert verify(rows, summary).comparisons[0].verdict == "equal"
    mixed = [*rows, row(2, tau_neg="0.1", tau_pos="0.9")]
    summary = {"fold_results": [{"threshold_selection": {"tau_pos": 0.9}}]}
    (found,) = verify(mixed, summary).comparisons
    assert found.verdict == "not computable"
    assert found.why == "the rows of the fold hold 2 values of it"


@pytest.mark.parametrize(
    ("stored", "verdict", "why"),
    [
        (None, "equal", ""),
        (math.nan, "equal", ""),
        (0.0, "other definition", "of_nothing=0.0"),
        (0.5, "differs", ""),
        ("n/a", "differs", ""),
    ],
)
def test_an_area_of_one_class_is_undefined(
    stored: object, verdict: str, why: str
) -> None:
    found = compared(judged([0, 0], [0.2, 0.4]), "ne_gate", "auroc", stored)
    assert (found.verdict, found.why) == (verdict, why)


@pytest.mark.parametrize(
    ("stored", "profile", "verdict", "why"),
    [
        (None, "siftlog", "equal", ""),
        (0.0, "siftlog", "other definition", "zero_division=0.0"),
        (0.0, "published-cv", "equal", ""),
        (None, "published-cv", "other definition", "zero_division=None"),
    ],
)
def test_a_rate_of_nothing_by_nothing_is_null_or_zero_by_choice(
    stored: object, profile: str, verdict: str, why: str
) -> None:
    rows = [{**each, "tau_neg": "0.1", "tau_pos": "0.9"} for each in judged([0], [0.4])]
    found = compared(
        rows,
        "deployment",
        "alert_precision",
        stored,
        choices=definitions_of(EvidenceSettings(profile=profile)),
    )
    assert (found.verdict, found.why) == (verdict, why)


def test_a_file_that_is_undefined_throughout_has_not_been_verified() -> None:
    summary = {
        "fold_results": [{"test_metrics": {"ne_gate": {"auroc": None}}}],
        "aggregated_metrics": {"ne_gate.auroc": {"std": None}},
    }
    found = verify(judged([0, 0], [0.2, 0.4]), summary)
    assert found.tally == {"equal": 2}
    (sentence,) = found.failures
    assert sentence.startswith("No number of the stored summary could be compared")


def test_a_spread_over_one_defined_fold_is_undefined() -> None:
    rows = [
        {**each, "fold_id": fold}
        for fold, y in (("0", [0, 1]), ("1", [0, 0]))
        for each in judged(y, [0.2, 0.4])
    ]
    spread = {"mean": 1.0, "std": None, "median": 1.0, "min": 1.0, "max": 1.0}
    summary = {"aggregated_metrics": {"ne_gate.auroc": spread}}
    assert verify(rows, summary).tally == {"equal": 5}
    population = {"aggregated_metrics": {"ne_gate.auroc": {"std": 0.0}}}
    (found,) = verify(rows, population).comparisons
    assert (found.verdict, found.why) == ("other definition", "ddof=0")


def test_folds_are_matched_by_name_and_else_in_natural_order() -> None:
    rows = [
        {**each, "fold_id": fold}
        for fold, y in (("10", [1, 0]), ("2", [0, 1]))
        for each in judged(y, [0.2, 0.4])
    ]
    blocks = [{"test_metrics": {"ne_gate": {"auroc": area}}} for area in (1.0, 0.0)]
    assert verify(rows, {"fold_results": blocks}).tally == {"equal": 2}
    named = [{"fold": 10, **blocks[1]}, {"fold_id": "2", **blocks[0]}]
    assert verify(rows, {"fold_results": named}).tally == {"equal": 2}
    strange = [{"fold": 3, **blocks[1]}]
    assert verify(rows, {"fold_results": strange}).tally == {"not computable": 1}


def test_figures_that_rows_only_state_are_averaged_as_given() -> None:
    given = {"evidence_recall_at_k": 0.5, "evidence_precision_at_k": 0.25, "mrr": 1.0}
    rows = [
        row(0, has_evidence_gold=1, **given),
        row(1, has_evidence_gold=1, evidence_recall_at_k=1.0, mrr=0.25),
        # filled on a row without evidence, where it means nothing
        row(2, has_evidence_gold=0, evidence_recall_at_k=1.0, mrr=0.5),
        row(3, has_evidence_gold="", evidence_recall_at_k=0.0),
    ]
    for key, value in (("recall@K", 0.75), ("precision@K", 0.25), ("mrr", 0.625)):
        assert compared(rows, "evidence", key, value).verdict == "equal"
    for key in ("ndcg@10", "recall@10", "mrr@10"):
        found = compared(rows, "evidence", key, 0.75)
        assert found.verdict == "not computable"
        assert "hold no reranked from which" in found.why


def with_lists() -> list[Row]:
    return [
        row(
            0,
            has_evidence_gold=1,
            reranked_topk="a|b|c",
            gold_sent_uids="b|x",
            selected_k=2,
        ),
        row(
            1,
            has_evidence_gold=1,
            reranked_topk="d|e",
            gold_sent_uids="d",
            selected_k=5,
        ),
        # positive, but nobody said where: it counts 0
        row(2, has_evidence_gold=1, reranked_topk="f", gold_sent_uids="", selected_k=0),
        row(3, has_evidence_gold=0, reranked_topk="", gold_sent_uids="", selected_k=1),
    ]


@pytest.mark.parametrize(
    ("key", "stored", "why"),
    [
        ("recall@K", (0.5 + 1 + 0) / 3, ""),
        ("recall@K", (0.5 + 1) / 2, "skip_empty=True"),
        ("recall@K", (0.5 + 1) / 4, "queries=all"),
        ("precision@K", (0.5 + 0.5 + 0) / 3, ""),
        ("precision@K", (0.5 + 0.2 + 0) / 3, "precision_over=k"),
        ("precision@5", (0.2 + 0.2 + 0) / 3, ""),
        ("precision@5", (1 / 3 + 1 / 2 + 0) / 3, "precision_over=k_eff"),
        ("hit@1", 1 / 3, ""),
        ("mrr", (0.5 + 1 + 0) / 3, ""),
        ("mrr", 1 / 3, "k=1"),
        ("mrr@1", 0.5, "k=whole list"),
        ("map@1", (0 + 1 + 0) / 3, ""),
        ("map@5", (0.25 + 1 + 0) / 3, ""),
        ("map@5", (0.5 + 1 + 0) / 3, "ap_denominator=found"),
    ],
)
def test_lists_are_measured_at_the_selected_k_and_at_fixed_ones(
    key: str, stored: float, why: str
) -> None:
    found = compared(with_lists(), "evidence", key, stored)
    assert (found.verdict, found.why) == ("other definition" if why else "equal", why)


def test_leaving_out_k_of_zero_touches_no_fixed_cut_off() -> None:
    skipping = replace(SIFTLOG, skip_empty=True)
    for key, value in (("recall@K", 0.75), ("recall@5", 0.5), ("mrr", 0.5)):
        found = compared(with_lists(), "evidence", key, value, choices=skipping)
        assert found.verdict == "equal", key


def test_an_empty_list_counts_only_where_the_query_was_seen() -> None:
    cells = {"has_evidence_gold": 1, "gold_sent_uids": "a"}
    rows = [row(0, **cells, reranked_topk="a"), row(1, **cells, reranked_topk="")]
    assert compared(rows, "evidence", "mrr", 0.5).verdict == "equal"
    unseen = [rows[0], {**rows[1], "status": "unscored"}]
    assert compared(unseen, "evidence", "mrr", 1.0).verdict == "equal"


def test_a_query_that_was_not_judged_or_not_scored_is_left_out() -> None:
    rows = [
        *judged([0, 1], [0.2, 0.4]),
        row(8, has_evidence_gold="", p4_prob_calibrated="0.9", status="unjudged"),
        row(9, has_evidence_gold=1, p4_prob_calibrated="", status="unscored"),
    ]
    assert compared(rows, "ne_gate", "auroc", 1.0).verdict == "equal"


def test_the_probability_is_the_calibrated_one_or_else_the_raw_one() -> None:
    cells = {"has_evidence_gold": 1, "p4_prob_raw": "0.9"}
    summary = {"aggregated_metrics": {"ne_gate.ece": {"mean": 0.1}}}
    assert verify([row(0, **cells)], summary).tally == {"equal": 1}
    raw = [row(0, **cells, p4_prob_calibrated="0.5")]
    assert verify(raw, summary).tally == {"differs": 1}


def test_sizes_of_lists_by_state() -> None:
    cells = {"tau_neg": "0.2", "tau_pos": "0.6", "n_candidates": 9}
    rows = [
        row(i, has_evidence_gold=i % 2, p4_prob_calibrated=p, selected_k=k, **cells)
        for i, (p, k) in enumerate([("0.1", 0), ("0.2", 4), ("0.5", 7), ("0.6", 2)])
    ]
    for key, value in (
        ("mean_k", 3.25),
        ("median_k", 3.0),
        ("min_k", 0.0),
        ("max_k", 7.0),
        ("mean_n", 9.0),
        ("NEG_mean_k", 0.0),
        ("UNCERTAIN_mean_k", 5.5),
        ("POS_max_k", 2.0),
    ):
        assert compared(rows, "dynamic_k", key, value).verdict == "equal"
    only_neg = rows[:1]
    assert compared(only_neg, "dynamic_k", "POS_mean_k", None).verdict == "equal"
    assert compared(only_neg, "dynamic_k", "K_mean", 0.0).verdict == "unknown key"


def test_a_truth_that_is_no_label_is_refused() -> None:
    with pytest.raises(ValueError, match="has_evidence_gold holds 'yes', not 0 or 1"):
        verify([row(0, has_evidence_gold="yes")], {})


def test_profiles_are_those_of_the_settings() -> None:
    assert definitions_of(EvidenceSettings()) == SIFTLOG
    lists = definitions_of(EvidenceSettings(profile="published-lists"))
    assert (lists.ap_denominator, lists.sums) == ("min", "file order")
    own = definitions_of(EvidenceSettings(profile="published-cv", ddof=1))
    assert (own.ddof, own.gate_edge) == (1, "le")


def test_one_line_tells_what_was_found() -> None:
    rows = judged([0, 1, 0], [0.2, 0.4, 0.9])
    found: SummaryVerification = verify(
        rows,
        {"aggregated_metrics": {"ne_gate.auroc": {"mean": 0.5, "max": 0.6, "x": 1}}},
    )
    assert found.summary == (
        "2 numbers compared, 1 equal, 1 differs, 1 unknown key; largest difference 0.0"
    )
    first = found.comparisons[0]
    assert first.cells == (
        "aggregated_metrics.ne_gate.auroc.mean",
        "figure",
        *(0.5, 0.5, 0.0, "equal", ""),
        first.meaning,
    )
    assert first.meaning.startswith("mean over the folds: chance that a query with ")
