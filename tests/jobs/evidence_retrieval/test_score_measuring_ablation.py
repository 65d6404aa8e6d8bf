"""Configurations in a row: each against the one before, and nothing invented.

What `compare` gets of a model gives the same differences as the run's own table. What
figures are drawn from says the same as the numbers.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from jobs.evidence_retrieval.curve_figures import (
    bins,
    gate_curve,
    k_by_state,
    risk,
    roc_band,
    states_by_fold,
)
from jobs.evidence_retrieval.metrics.bootstrap import PostBootstrap
from jobs.evidence_retrieval.metrics.judged_predictions import (
    JudgedPredictions,
    block_of,
)
from jobs.evidence_retrieval.metrics.paired_differences import (
    AblationStep,
    PairedDifference,
)
from jobs.evidence_retrieval.metrics.results import EvidenceResults, measure_models
from jobs.evidence_retrieval.queries import SCORED, UNSCORED
from jobs.evidence_retrieval.score import compared, labels, score
from jobs.kit.comparison.difference import PValue, gap
from jobs.kit.comparison.pairing import label_agreement, pair_items
from jobs.kit.metrics.areas import delong_paired
from jobs.kit.metrics.resampling import Resamples
from tests.jobs.evidence_retrieval.sheets import (
    MODEL,
    dataset,
    full_sheet,
    settings,
    sheet_of,
    small_sheet,
)

POSTS = 30
KEYS = [(f"p{post:02d}", f"A.{c}") for post in range(POSTS) for c in (1, 2)]
Y = [int(i % 3 == 0) for i in range(len(KEYS))]
LISTS = [tuple(f"{post}_{s}" for s in range(4)) for post, _ in KEYS]
GOLD = [(f"{post}_2",) if y else () for (post, _), y in zip(KEYS, Y, strict=True)]
BETTER = [(own[2], own[0], own[1], own[3]) for own in LISTS]
SCORE = [((7 * i) % 11) / 11 + y for i, y in enumerate(Y)]
P = [min(1.0, ((7 * i) % 11) / 22 + y / 2) for i, y in enumerate(Y)]
FOLD = [i // 2 % 3 for i in range(len(KEYS))]


def steps_of(
    *configs: dict[str, Any],
) -> tuple[EvidenceResults, dict[tuple[str, str], AblationStep]]:
    named = [{"config": f"c{i}", **each} for i, each in enumerate(configs)]
    sheet = sheet_of(KEYS, named, y=Y, gold=GOLD, fold=FOLD)
    results = measure_models(sheet, settings(boot_b=100, interval="percentile"))
    return results, {
        (step.config, step.metric.path.partition("@")[0]): step
        for step in results.steps
    }


def decided_by(difference: PairedDifference) -> PValue:
    """The test that decides."""
    test = difference.metric.p_values.primary
    assert test is not None
    return test


FIRST = {"lists": {"a": LISTS}, "final": "a", "k_rule": "2", "score": SCORE}
RERANKED = {"lists": {"b": BETTER}, "final": "b", "k_rule": "2", "score": SCORE}
DYNAMIC = {"lists": {"b": BETTER}, "final": "b", "k": [1] * len(KEYS), "score": SCORE}


def test_each_configuration_is_held_against_the_one_before() -> None:
    _, steps = steps_of(FIRST, RERANKED)
    assert steps["c0", "ndcg"].gap is None
    gap = steps["c1", "ndcg"].gap
    assert gap is not None
    assert gap.value == pytest.approx(0.5)
    assert gap.interval is not None
    assert gap.interval.lo == gap.interval.hi == pytest.approx(0.5)
    assert decided_by(gap).p < 0.01
    assert steps["c1", "ndcg"].metric.std == 0


def test_what_a_stage_does_not_touch_is_shown_as_equal() -> None:
    _, steps = steps_of(FIRST, RERANKED)
    gap = steps["c1", "auroc"].gap
    assert gap is not None
    assert gap.value == 0
    assert gap.interval is not None
    assert (gap.interval.lo, gap.interval.hi) == (0.0, 0.0)
    assert "score=max_score" in steps["c1", "auroc"].metric.definition


def test_alert_precision_without_states_is_undefined_and_never_0() -> None:
    _, steps = steps_of(FIRST, RERANKED)
    for config in ("c0", "c1"):
        assert steps[config, "alert_precision"].metric.value is None
    states = {"prob": P, "tau_neg": [0.1] * len(P), "tau_pos": [0.7] * len(P)}
    _, steps = steps_of(DYNAMIC, {**DYNAMIC, **states})
    assert steps["c1", "alert_precision"].metric.value is not None
    assert steps["c1", "alert_precision"].gap is None


def test_evidence_at_a_fixed_and_at_a_chosen_k_have_their_own_names() -> None:
    _, steps = steps_of(RERANKED, DYNAMIC)
    fixed, chosen = (steps[c, "evidence_recall"] for c in ("c0", "c1"))
    assert fixed.metric.path == "evidence_recall@2"
    assert chosen.metric.path == "evidence_recall@K"
    assert chosen.gap is not None
    assert chosen.gap.value == 0


def test_areas_of_two_configurations_have_delongs_test() -> None:
    other = [*reversed(SCORE)]
    _, steps = steps_of(FIRST, {**RERANKED, "score": other})
    gap = steps["c1", "auroc"].gap
    assert gap is not None
    assert decided_by(gap).name == "DeLong by post"
    one, two = (np.array(each, dtype=np.float64) for each in (other, SCORE))
    posts = [post for post, _ in KEYS]
    known = delong_paired(Y, one, two, posts)
    assert known is not None
    assert decided_by(gap).p == pytest.approx(known.p, rel=1e-11)


def test_a_criterion_with_ten_positives_has_enough() -> None:
    keys = [(f"p{post:02d}", f"A.{c}") for post in range(20) for c in (1, 2)]
    y = [int(i < 20 and (i > 0 or c == "A.2")) for i, (_, c) in enumerate(keys)]
    score = [float((7 * i) % 11) for i in range(len(keys))]
    sheet = sheet_of(keys, [{"score": score}], y=y)
    criteria = measure_models(sheet, settings(boot_b=0)).models[MODEL].criteria
    few = {
        (metric.value, (metric.note or "").endswith("few"))
        for metrics in criteria.values()
        for metric in metrics
        if metric.path.endswith("n_positive")
    }
    assert few == {(9, True), (10, False)}


def test_an_empty_list_of_a_scored_query_counts_0_and_an_unscored_one_nothing() -> None:
    lists = [() if i in {0, 3} else ranked for i, ranked in enumerate(BETTER)]
    status = [SCORED if i != 3 else UNSCORED for i in range(len(KEYS))]
    final = {"lists": {"b": lists}, "final": "b", "k_rule": "2", "status": status}
    sheet = sheet_of(KEYS, [final], y=Y, gold=GOLD)
    found = measure_models(sheet, settings(boot_b=0)).models[MODEL].by_path()
    assert found["recall@10"].n == sum(Y) - 1
    assert found["recall@10"].value == pytest.approx((sum(Y) - 2) / (sum(Y) - 1))


@pytest.mark.parametrize("fewer", ["a", "b"])
def test_models_with_other_queries_are_compared_over_those_of_both(fewer: str) -> None:
    ranked = {"a": LISTS, "b": BETTER}
    predictions = []
    for model, every in ranked.items():
        lists, status = [*every], [SCORED] * len(KEYS)
        if model == fewer:
            lists[0], status[0] = (), UNSCORED
        final = {"lists": {"x": lists}, "final": "x", "k_rule": "2", "status": status}
        predictions.append({"model": model, **final})
    # the query that only one model has is the one that both would have wrong
    gold = [("p00_none",), *GOLD[1:]]
    sheet = sheet_of(KEYS, predictions, y=Y, gold=gold)
    (gap,) = (
        gap
        for gap in measure_models(sheet, settings(boot_b=0)).gaps
        if gap.metric.path == "recall@10"
    )
    assert (gap.metric.gap.b, gap.metric.gap.a) == (1.0, 1.0)
    assert {*gap.dropped} == {0, 1}


def test_holm_runs_over_the_rows_of_one_metric() -> None:
    _, steps = steps_of(FIRST, RERANKED, FIRST)
    gaps = [steps[c, "ndcg"].gap for c in ("c1", "c2")]
    assert gaps[0] is not None
    assert gaps[1] is not None
    assert gaps[0].family == gaps[1].family
    assert gaps[0].metric.p_holm == pytest.approx(2 * decided_by(gaps[0]).p, rel=1e-11)


def test_the_headline_stands_without_a_prefix_and_others_with_their_name() -> None:
    results, _ = steps_of(FIRST, RERANKED)
    paths = {metric.path for metric in results.metrics(MODEL)}
    assert "ndcg@10" in paths
    assert "config.c1.ndcg@10" in paths
    assert "config.c0.ndcg@10" not in paths


def test_the_gamma_sweep_has_a_block_a_gamma() -> None:
    sweep = {
        0.7: np.ones(len(KEYS), dtype=np.int64),
        0.9: np.full(len(KEYS), 3, dtype=np.int64),
    }
    sheet = sheet_of(KEYS, [{**DYNAMIC, "sweep": sweep}], y=Y, gold=GOLD)
    card = score(dataset(boot_b=50), sheet)
    table = next(t for t in card.tables if t.name == "gamma_sweep")
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    found = {(row["gamma"], row["metric"]): row["value"] for row in rows}
    assert found[0.7, "k.mean"] == 1
    assert found[0.9, "sentences_extracted"] == 3 * len(KEYS)
    assert found[0.9, "evidence_recall@K"] == 1


def test_a_stage_that_is_not_there_has_a_blank_cell_and_no_metric() -> None:
    results, _ = steps_of(FIRST, RERANKED)
    assert not [m for m in results.metrics(MODEL) if "alert_precision" in m.path]
    named = [{"config": f"c{i}", **each} for i, each in enumerate((FIRST, RERANKED))]
    card = score(dataset(boot_b=20), sheet_of(KEYS, named, y=Y, gold=GOLD, fold=FOLD))
    table = next(t for t in card.tables if t.name == "ablation")
    rows = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    cells = [row["value"] for row in rows if row["metric"] == "alert_precision"]
    assert cells == [None, None]
    assert "AUROC (largest score)" in card.summary
    assert "evidence recall@2" in card.summary
    assert not [finding for finding in card.findings if finding.severity == "error"]


def test_a_longer_fixed_list_is_compared_at_10_and_costs_all_it_shows() -> None:
    long = [tuple(f"{post}_{s}" for s in range(30)) for post, _ in KEYS]
    far = [(f"{post}_15",) if y else () for (post, _), y in zip(KEYS, Y, strict=True)]
    first = {"config": "c0", "lists": {"a": long}, "final": "a", "k_rule": "24"}
    sheet = sheet_of(KEYS, [first], y=Y, gold=far, fold=FOLD)
    found = measure_models(sheet, settings(boot_b=0)).models[MODEL].by_path()
    assert found["evidence_recall@10"].value == 0
    assert found["sentences_extracted"].value == 24 * len(KEYS)
    assert "evidence_recall@24" not in found


def test_the_workload_counts_what_posts_have_and_the_nominal_k_has_its_own_name() -> (
    None
):
    whole = {**FIRST, "k_rule": "24"}
    first_two = {**FIRST, "k_rule": "2"}
    results, steps = steps_of(whole, first_two)
    for config, nominal, shown in (("c0", 24, 4), ("c1", 2, 2)):
        read = steps[config, "sentences_extracted"].metric.value
        assert read == shown * len(KEYS)
        assert steps[config, "k.mean"].metric.value == shown
        assert steps[config, "k_nominal.mean"].metric.value == nominal
    # the saving is that of sentences, and neither of 24 nor of a list that ends
    gap = steps["c1", "k.mean"].gap
    assert gap is not None
    assert gap.value == -2
    own = {metric.path for metric in results.metrics(MODEL)}
    assert {"k.mean", "k_nominal.mean", "config.c1.k_nominal.mean"} <= own


def test_each_step_has_a_verdict_by_the_rule_of_comparisons() -> None:
    _, steps = steps_of(FIRST, RERANKED)
    better = steps["c1", "ndcg"].gap
    same = steps["c1", "auroc"].gap
    assert better is not None
    assert same is not None
    assert (better.metric.verdict, better.metric.overlap.clusters) == ("better", 20)
    assert same.metric.verdict == "undecided"
    strict = measure_models(
        sheet_of(
            KEYS,
            [{"config": "c0", **FIRST}, {"config": "c1", **RERANKED}],
            y=Y,
            gold=GOLD,
            fold=FOLD,
        ),
        settings(boot_b=100, min_clusters=POSTS + 1),
    )
    words = {
        step.gap.metric.verdict
        for step in strict.steps
        if step.gap and step.gap.metric.p_values.primary
    }
    assert words == {"too few"}


def test_a_pair_of_models_has_the_known_difference() -> None:
    results = measure_models(full_sheet(second=True, lists=False), settings(boot_b=0))
    first, second = (compared(own) for own in results.models.values())
    both = pair_items(second["auroc"](), first["auroc"]())
    found = gap(both, Resamples(both.resampled_clusters, cluster="post"))
    ends = (0.06776053859306257, 0.10398216096216743)
    assert found.value == pytest.approx(0.08615971059323613, abs=1e-12)
    assert (found.interval.lo, found.interval.hi) == pytest.approx(ends, rel=1e-11)


def test_decisions_of_two_models_agree_as_the_table_of_the_run_says() -> None:
    results = measure_models(full_sheet(second=True, lists=False), settings(boot_b=0))
    one, other = (labels(own) for own in results.models.values())
    found = label_agreement(one, other)
    assert found is not None
    assert found.n == 14_770
    (note,) = [gap.note for gap in results.gaps if "kappa of the decisions" in gap.note]
    assert note.endswith(f"kappa of the decisions {found.agreement.kappa:.12g}")


def test_every_maker_gives_what_its_metric_is_made_of() -> None:
    own = measure_models(full_sheet(), settings(boot_b=0)).models[MODEL]
    made = compared(own)
    assert list(made) == [
        "auroc",
        "auprc",
        "recall@10",
        "ndcg@10",
        "mrr",
        "map@10",
        "hit@10",
        "brier",
        "evidence_recall@K",
        "evidence_precision@K",
        "screening_sensitivity",
        "alert_precision",
        "alert_recall",
    ]
    for path, make in made.items():
        values = make()
        assert len(values.items) == len(values.clusters) == 14_770
        expected = own.by_path()[path].value
        if values.kind == "mean":
            defined = [value for value in values.first if value is not None]
            assert sum(defined) / len(defined) == pytest.approx(expected)
        elif values.kind == "ratio":
            above = sum(value or 0 for value in values.first)
            below = sum(value or 0 for value in values.second or ())
            assert above / below == pytest.approx(expected)
        assert "bootstrap" not in values.definition


CHOSEN = settings(boot_b=200)


@pytest.fixture(scope="module")
def block() -> JudgedPredictions:
    sheet = full_sheet(lists=False)
    return block_of(sheet.queries, sheet.predictions[0], CHOSEN)


def test_the_curves_go_from_corner_to_corner_inside_their_band(
    block: JudgedPredictions,
) -> None:
    found = gate_curve(block)
    assert found is not None
    points = found.points
    assert (points.fpr[0], points.tpr[0]) == (0.0, 0.0)
    assert (points.fpr[-1], points.tpr[-1]) == (1.0, 1.0)
    assert points.precision[-1] == pytest.approx(1379 / 14_770)
    band = roc_band(found.gated, PostBootstrap(block.queries, CHOSEN), series=0)
    lo = np.array([-1.0 if end is None else end for end in band.lo])
    hi = np.array([-1.0 if end is None else end for end in band.hi])
    own = np.interp(band.x, points.fpr, points.tpr)
    # the first place is the start, where a draw's curve may already have gone up
    assert (lo[1:] - 0.005 <= own[1:]).all()
    assert (own[1:] <= hi[1:] + 0.005).all()
    assert (hi - lo).max() > 0.01
    screening = next(o for o in found.operating if o.name.startswith("screening"))
    assert screening.tpr == pytest.approx(0.9883973894126178)


def test_bins_and_counts_add_up_to_the_queries(block: JudgedPredictions) -> None:
    counts = [1940, 1943, 1910, 2106, 2099, 2126, 2105, 172, 188, 181]
    assert [each.count for each in bins(block)] == counts
    by_state = k_by_state(block)
    assert by_state["NEG"] == {0: 1350}
    assert sum(sum(own.values()) for own in by_state.values()) == 14_770
    assert set(by_state["POS"]) == {1, 2, 3, 4, 5, 6}
    folds = states_by_fold(block)
    assert sum(own["UNCERTAIN"] for own in folds.values()) == 12_431
    points = risk(block)
    assert points is not None
    assert points.coverage[-1] == 1.0
    assert points.risk[-1] == pytest.approx((3843 + 428) / 14_770)


def test_there_is_nothing_to_draw_without_probabilities() -> None:
    sheet = small_sheet([("p", "A.1"), ("p", "A.2")], y=[1, 0])
    block = block_of(sheet.queries, sheet.predictions[0], CHOSEN)
    assert gate_curve(block) is None
    assert bins(block) == ()
    assert risk(block) is None
    assert k_by_state(block) == {}
    assert states_by_fold(block) == {}
