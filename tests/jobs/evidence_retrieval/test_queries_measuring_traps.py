"""Places where a plausible scorer goes wrong without anybody noticing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from jobs.evidence_retrieval.metrics.judged_predictions import (
    JudgedPredictions,
    block_of,
)
from jobs.evidence_retrieval.metrics.results import measure_models
from jobs.evidence_retrieval.queries import (
    UNKNOWN,
    UNSCORED,
    EvidenceFrame,
    FoldGate,
    ScoringInput,
)
from jobs.evidence_retrieval.score import score
from jobs.kit.metrics.selective import NEG, POS, UNCERTAIN, Edge
from runner.scorecard import Metric
from tests.jobs.evidence_retrieval.sheets import (
    MODEL,
    dataset,
    settings,
    sheet_of,
    small_sheet,
)

KEYS = [(f"p{post}", f"A.{c}") for post in range(4) for c in (2, 10)]
Y = [1, 0, 0, 1, 1, 0, 0, 0]
P = [0.9, 0.2, 0.4, 0.5, 0.3, 0.1, 0.0, 0.6]
LISTS = [(f"{post}_0", f"{post}_1", f"{post}_2") for post, _ in KEYS]
GOLD = [(f"{KEYS[i][0]}_1",) if y else () for i, y in enumerate(Y)]


def by_path(
    sheet: ScoringInput, model: str = MODEL, **chosen: object
) -> Mapping[str, Metric]:
    chosen = {"boot_b": 50, **chosen}
    return measure_models(sheet, settings(**chosen)).models[model].by_path()


def test_a_positive_without_gold_or_hits_counts_0_in_every_mean() -> None:
    named = [GOLD[0], (), (), (), ("p2_9",), (), (), ()]
    found = by_path(small_sheet(KEYS, y=Y, gold=named, lists={"a": LISTS}, final="a"))
    assert (found["recall@3"].value, found["recall@3"].n) == (1 / 3, 3)
    assert found["mrr"].value == pytest.approx(0.5 / 3)
    assert found["gold_absent"].value == 1


def test_k_of_0_and_beyond_the_pool() -> None:
    k = [0, 2, 2, 9, 1, 0, 2, 2]
    sheet = small_sheet(KEYS, y=Y, gold=GOLD, lists={"a": LISTS}, final="a", k=k)
    found = by_path(sheet)
    assert found["evidence_recall@K"].value == 1 / 3
    assert found["evidence_precision@K"].value == pytest.approx((0 + 1 / 3 + 0) / 3)
    assert found["k.max"].value == 9
    assert found["k_shown.max"].value == 3
    assert found["sentences_extracted"].value == 0 + 2 + 2 + 3 + 1 + 0 + 2 + 2
    assert by_path(sheet, skip_empty=True)["evidence_recall@K"].n == 2


@pytest.mark.parametrize(
    ("edge", "states"),
    [("lt", [POS, UNCERTAIN, UNCERTAIN, POS]), ("le", [POS, NEG, NEG, POS])],
)
def test_a_probability_at_a_threshold_follows_the_named_edge(
    edge: Edge, states: list[int]
) -> None:
    sheet = small_sheet(
        KEYS[:4],
        y=Y[:4],
        prob=[0.5, 0.0, 0.0, 0.5],
        tau_neg=[0.5, 0.0, 0.0, 0.5],
        tau_pos=[0.5, 0.5, 0.5, 0.5],
    )
    block = block_of(sheet.queries, sheet.predictions[0], settings(gate_edge=edge))
    assert block.stated is not None
    assert block.stated.state.tolist() == states


def test_ranking_measures_ignore_what_negatives_list() -> None:
    lists = [ranked if y else ("x", "y") for ranked, y in zip(LISTS, Y, strict=True)]
    whole = by_path(small_sheet(KEYS, y=Y, gold=GOLD, lists={"a": LISTS}, final="a"))
    other = by_path(small_sheet(KEYS, y=Y, gold=GOLD, lists={"a": lists}, final="a"))
    for path in ("recall@1", "ndcg@10", "mrr"):
        assert whole[path].value == other[path].value
        assert whole[path].n == sum(Y)


def test_given_numbers_on_negatives_are_not_averaged() -> None:
    mrr = np.where(np.array(Y) == 1, 0.5, 1.0)
    found = by_path(small_sheet(KEYS, y=Y, prob=P, stated_values={"mrr": mrr}))
    assert found["mrr"].value == 0.5
    assert found["mrr"].n == 3
    assert found["mrr"].note == "not recomputable"


def test_one_class_in_a_fold_is_undefined_there_and_counted() -> None:
    fold = [0, 0, 0, 0, 1, 1, 2, 2]
    found = by_path(small_sheet(KEYS, y=Y, prob=P, fold=fold))
    auroc = found["auroc"]
    assert auroc.value == 0.8
    assert auroc.mean is not None
    assert auroc.note == "defined in 2 of 3 folds"


def test_a_spread_over_one_defined_fold_is_undefined() -> None:
    fold = [0, 0, 0, 0, 0, 0, 1, 1]
    auroc = by_path(small_sheet(KEYS, y=Y, prob=P, fold=fold))["auroc"]
    assert auroc.std is None
    assert auroc.mean is not None


def test_a_fold_whose_gate_could_not_be_fitted_is_left_out_of_the_gate() -> None:
    sheet = small_sheet(KEYS, y=Y, prob=P, fold=[0, 0, 0, 0, 1, 1, 1, 1])
    gate = FoldGate(
        model=MODEL,
        config="given",
        fold="1",
        posts={},
        tau_neg=None,
        tau_pos=None,
        on_tune={},
        fitted={},
    )

    def block_with(gate: FoldGate) -> JudgedPredictions:
        frame = EvidenceFrame.of(settings(), replace(sheet, gates=(gate,)))
        return block_of(
            frame.queries, frame.predictions[0], frame.settings, frame.unfitted
        )

    block = block_with(gate)
    assert block.gated is not None
    assert block.gated.rows.tolist() == [0, 1, 2, 3]
    # a record of what was chosen from a grid, for a configuration without a gate
    chosen = replace(gate, has_gate=False)
    block = block_with(chosen)
    assert block.gated is not None
    assert len(block.gated.rows) == 8


def test_criteria_stand_in_natural_order_and_one_class_is_undefined() -> None:
    results = measure_models(small_sheet(KEYS, y=Y, prob=P), settings(boot_b=20))
    own = results.models[MODEL]
    assert list(own.criteria) == ["A.2", "A.10"]
    macro = {each.path: each for each in own.macro}
    assert macro["macro.auroc"].n_defined == 2
    y = [1, 0, 0, 0, 1, 0, 0, 0]
    only = measure_models(small_sheet(KEYS, y=y, prob=P), settings(boot_b=20)).models[
        MODEL
    ]
    one_class = {each.path: each for each in only.criteria["A.10"]}
    assert one_class["criterion.A.10.auroc"].value is None
    assert {each.path: each for each in only.macro}["macro.auroc"].n_defined == 1


def test_posts_are_drawn_in_the_order_of_their_text() -> None:
    keys = [(post, "A.1") for post in ("p2", "p10", "p1")]
    values = {"p1": 0.1, "p10": 0.7, "p2": 0.2}
    sheet = small_sheet(keys, y=[0, 0, 0], prob=[values[post] for post, _ in keys])
    drawn = by_path(sheet, interval="percentile")["brier"]
    # one draw of three clusters a replicate; as text, p10 stands before p2
    chance = np.random.default_rng(20260118)
    squares = [values[post] ** 2 for post in ("p1", "p10", "p2")]
    means = [
        sum(squares[i] for i in chance.integers(0, 3, 3).tolist()) / 3
        for _ in range(50)
    ]
    ends = np.percentile(means, [2.5, 97.5]).tolist()
    assert [drawn.lo, drawn.hi] == pytest.approx(ends, rel=1e-11)


def test_a_list_is_taken_as_it_is_and_so_is_its_trec_form() -> None:
    lists = [("b", "a", "c") for _ in KEYS]
    gold = [("a",) if y else () for y in Y]
    sheet = small_sheet(KEYS, y=Y, gold=gold, lists={"a": lists}, final="a")
    card = score(dataset(boot_b=0), sheet)
    run = [d.text for d in card.details if getattr(d, "artifact", "") == "run.a.txt"]
    assert run[0] == "p0|A.2 Q0 b 1 2 a\np0|A.2 Q0 a 2 1 a\np0|A.2 Q0 c 3 0 a\n"
    assert by_path(sheet)["mrr"].value == 0.5


def test_ids_with_white_space_are_escaped_in_trec_files() -> None:
    keys = [("my post", "A.2"), ("other", "A.2")]
    lists = [("my post_0",), ("other_0",)]
    gold = [("my post_0",), ()]
    sheet = small_sheet(keys, y=[1, 0], gold=gold, lists={"a": lists}, final="a")
    card = score(dataset(boot_b=0), sheet)
    lines = [d.text for d in card.details if getattr(d, "artifact", "") == "qrels.txt"]
    assert lines == ["my%20post|A.2 0 my%20post_0 1\n"]


def test_nobody_is_pos_under_an_infinite_threshold_and_it_is_written_so() -> None:
    inf = [float("inf")] * 8
    sheet = small_sheet(KEYS, y=Y, prob=P, tau_neg=[0.1] * 8, tau_pos=inf)
    card = score(dataset(boot_b=20), sheet)
    found = {each.path: each for each in card.models[MODEL]}
    assert found["states.POS"].value == 0
    assert found["alert_precision"].value is None
    table = next(t for t in card.tables if t.name == "per_query")
    row = next(d for d in card.details if getattr(d, "table", "") == "per_query")
    cell = row.cells[table.columns.index("tau_pos")]  # type: ignore[union-attr]
    assert repr(cell) == "inf"


def test_models_are_compared_on_what_both_have_answered() -> None:
    part = [*P[:6], float("nan"), float("nan")]
    status = ["scored"] * 6 + [UNSCORED] * 2
    sheet = sheet_of(
        KEYS,
        [{"prob": P}, {"model": "other/m", "prob": part, "status": status}],
        y=Y,
    )
    results = measure_models(sheet, settings(boot_b=50))
    gap = next(gap for gap in results.gaps if gap.metric.path == "auroc")
    assert (gap.metric.overlap.n, gap.dropped) == (6, (2, 0))
    assert gap.value == 0
    other = results.models["other/m"].by_path()
    assert other["n"].value == 6
    assert other["coverage"].value == 6 / 8
    worst = other["auroc~unscored_as_1"].value
    best = other["auroc~unscored_as_0"].value
    assert worst is not None
    assert best is not None
    assert worst < best


def test_sensitivity_is_also_told_with_unscored_queries_read_and_skipped() -> None:
    some = [*P[:6], float("nan"), float("nan")]
    y = [1, *Y[1:6], 1, 0]
    sheet = small_sheet(
        KEYS,
        y=y,
        prob=some,
        status=["scored"] * 6 + [UNSCORED] * 2,
        tau_neg=[0.05] * 8,
        tau_pos=[0.6] * 8,
    )
    found = by_path(sheet)
    sides = ("", "~unscored_as_1", "~unscored_as_0")
    counts = [found[f"screening_sensitivity{side}"] for side in sides]
    positives = sum(y[:6])
    assert [each.n_defined for each in counts] == [positives, *[positives + 1] * 2]
    scored, read, skipped = (each.value for each in counts)
    assert scored is not None
    kept = round(scored * positives)
    assert read == pytest.approx((kept + 1) / (positives + 1))
    assert skipped == pytest.approx(kept / (positives + 1))
    assert counts[1].note == "secondary"


def test_an_empty_post_counts_0_1_or_not_at_all_each_under_its_name() -> None:
    found = by_path(small_sheet(KEYS, y=Y, prob=[0.9, *[0.0] * 7]))
    zero, one, defined = (
        found[f"posts_at_tau.f1_per_item{rule}"]
        for rule in ("", "_empty_one", "_defined")
    )
    assert zero.value == 1 / 4
    assert one.value == 2 / 4
    assert (defined.value, defined.n_defined) == (1 / 3, 3)


def test_draws_without_positives_are_dropped_and_said() -> None:
    y = [1, *[0] * 7]
    auroc = by_path(small_sheet(KEYS, y=y, prob=P), boot_b=200, interval="percentile")[
        "auroc"
    ]
    assert auroc.note is not None
    assert auroc.note.startswith("undefined in ")
    used = int(auroc.definition.rpartition("B_used=")[2])
    assert 0 < used < 190


def test_unjudged_queries_are_predicted_and_in_no_metric() -> None:
    y = [*Y[:6], UNKNOWN, UNKNOWN]
    card = score(dataset(boot_b=20), small_sheet(KEYS, y=y, prob=P))
    found = {each.path: each for each in card.models[MODEL]}
    assert found["n"].value == 6
    rows = [d for d in card.details if getattr(d, "table", "") == "per_query"]
    assert rows[-1].cells[5] is None  # type: ignore[union-attr]
    assert rows[-1].cells[-1] == "unjudged"  # type: ignore[union-attr]
    assert "unjudged 2" in card.summary


def test_scores_do_not_depend_on_the_order_of_rows() -> None:
    fold = [0, 0, 0, 0, 1, 1, 1, 1]
    straight = by_path(small_sheet(KEYS, y=Y, prob=P, fold=fold))
    turned = by_path(small_sheet(KEYS[::-1], y=Y[::-1], prob=P[::-1], fold=fold[::-1]))
    for path, metric in straight.items():
        if "~query" not in path and path != "ece_adaptive":
            other = turned[path]
            assert (metric.value, metric.lo, metric.hi, metric.std) == (
                other.value,
                other.lo,
                other.hi,
                other.std,
            ), path


def test_a_chosen_k_is_never_called_by_a_number() -> None:
    sheet = small_sheet(KEYS, y=Y, gold=GOLD, lists={"a": LISTS}, final="a", k=[2] * 8)
    found = by_path(sheet)
    assert "evidence_recall@K" in found
    assert not [path for path in found if path.startswith("evidence_recall@1")]
    fixed = small_sheet(KEYS, y=Y, gold=GOLD, lists={"a": LISTS}, final="a", k_rule="2")
    assert "evidence_recall@2" in by_path(fixed)
    assert "evidence_recall@K" not in by_path(fixed)
