"""Recorded lists through the scorecard, against answers computed independently."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from jobs.evidence_retrieval.measuring.comparing import Gap
from jobs.evidence_retrieval.measuring.results import Results, measured
from tests.jobs.evidence_retrieval.sheets import MODEL, recorded_sheet, settings

pytestmark = pytest.mark.realdata

LARGE, SMALL = "bge_m3_rrf_top20", "baseline_default_val"

VALUES = {
    LARGE: {
        "recall@1": (0.41988095238095235, 0.44940476190476186),
        "recall@3": (0.7022619047619048, 0.7383333333333333),
        "recall@5": (0.8320238095238095, 0.805595238095238),
        "recall@10": (0.9001190476190476, 0.8848809523809523),
        "recall@20": (0.9340476190476189, 0.938095238095238),
        "precision@5": (0.1928571428571428, 0.1871428571428571),
        "precision@10": (0.10642857142857141, 0.10428571428571427),
        "hit@1": (0.45714285714285713, 0.4857142857142857),
        "hit@5": (0.8642857142857143, 0.8357142857142857),
        "hit@10": (0.9214285714285714, 0.9142857142857143),
        "hit@20": (0.95, 0.95),
        "map@1": (0.41988095238095235, 0.44940476190476186),
        "map@5": (0.5891567460317461, 0.606031746031746),
        "map@10": (0.6009878117913833, 0.6188863378684807),
        "ndcg@3": (0.6034486411864478, 0.6363419556960851),
        "ndcg@5": (0.656918593426205, 0.6622603076819883),
        "ndcg@10": (0.6805939208340914, 0.6901598854925285),
        "ndcg@10~std": (0.3212547843095446, 0.33111996013153355),
        "mrr": (0.6224249508260513, 0.6393551543424387),
        "mrr~std": (0.3690697490372631, 0.3742059793680393),
        "mrr~median": (0.5, 0.5),
        "mrr~p25": (0.3125, 0.3333333333333333),
        "mrr~p75": (1.0, 1.0),
    },
    SMALL: {
        "recall@1": (0.48690476190476184, 0.48690476190476184),
        "recall@5": (0.8392857142857143, 0.825),
        "recall@10": (0.9, 0.9214285714285714),
        "recall@20": (0.9428571428571428, 0.9642857142857143),
        "map@10": (0.6373781179138323, 0.6371570294784581),
        "ndcg@10": (0.7039152742194619, 0.7076022702442125),
        "ndcg@10~std": (0.3384493336458154, 0.32948894293205455),
        "mrr": (0.6496988476355713, 0.6441492237920811),
    },
}

ENDS = {
    LARGE: {
        "retriever.recall@10": (0.8378753665689149, 0.9556793507910528),
        "reranked.recall@10": (0.8197412480974124, 0.9403073286052008),
        "retriever.ndcg@10": (0.6182983071794407, 0.7413592746375619),
        "reranked.ndcg@10": (0.6275015327277089, 0.7536083370935978),
        "retriever.mrr": (0.5581689294090518, 0.6893805897221605),
        "reranked.mrr": (0.5724303303932314, 0.7059623464982989),
    },
    SMALL: {
        "retriever.ndcg@10": (0.6372548180367468, 0.7680907545009601),
        "reranked.ndcg@10": (0.6478422603766164, 0.7637466087631396),
    },
}

GAPS = {
    LARGE: {
        "ndcg@10": (
            0.00956596465843702,
            (-0.03307150986572003, 0.05370290085875028),
            0.6655334466553344,
        ),
        "recall@10": (
            -0.015238095238095238,
            (-0.04413928012519574, 0.011111111111111072),
            0.328125,
        ),
        "mrr": (
            0.01693020351638748,
            (-0.04043762285521205, 0.07530853892109828),
            0.5695430456954305,
        ),
        "hit@10": (-0.007142857142857143, None, 1.0),
    },
    SMALL: {
        "ndcg@10": (
            0.0036869960247506058,
            (-0.037674015310638284, 0.04631366547329843),
            0.869013098690131,
        )
    },
}

POSITIVES = {
    LARGE: [33, 13, 3, 11, 6, 15, 27, 6, 21, 5],
    SMALL: [38, 12, 7, 11, 1, 11, 34, 5, 11, 10],
}


@pytest.fixture(scope="module")
def runs(realdata: Path) -> Mapping[str, Results]:
    folder = realdata / "evidence_pipeline"
    return {
        name: measured(recorded_sheet(folder / name / "per_query.csv"), settings())
        for name in (LARGE, SMALL)
    }


@pytest.mark.parametrize("run", [LARGE, SMALL])
def test_both_lists_have_the_known_means(runs: Mapping[str, Results], run: str) -> None:
    found = runs[run].models[MODEL].by_path()
    for path, (retriever, reranked) in VALUES[run].items():
        both = (found[f"retriever.{path}"].value, found[f"reranked.{path}"].value)
        assert both == pytest.approx((retriever, reranked), rel=0, abs=1e-12), path
        assert found[path].value == both[1]


@pytest.mark.parametrize("run", [LARGE, SMALL])
def test_both_lists_have_the_known_intervals(
    runs: Mapping[str, Results], run: str
) -> None:
    found = runs[run].models[MODEL].by_path()
    for path, ends in ENDS[run].items():
        assert (found[path].lo, found[path].hi) == pytest.approx(ends, rel=1e-11), path


@pytest.mark.parametrize("run", [LARGE, SMALL])
def test_differences_are_paired_and_corrected(
    runs: Mapping[str, Results], run: str
) -> None:
    gaps: Mapping[str, Gap] = {gap.metric: gap for gap in runs[run].gaps}
    assert list(gaps) == ["recall@10", "ndcg@10", "mrr", "map@10", "hit@10"]
    assert [gap.p_holm for gap in gaps.values()] == [1.0] * 5
    for path, (value, ends, p) in GAPS[run].items():
        gap = gaps[path]
        assert gap.value == pytest.approx(value, abs=1e-12)
        assert gap.p == pytest.approx(p, rel=1e-11)
        if ends is not None:
            assert gap.interval is not None
            drawn = (gap.interval.lo, gap.interval.hi)
            # the two sides are not rounded alike where an end is nearly 0
            assert drawn == pytest.approx(ends, rel=1e-10)


@pytest.mark.parametrize(("run", "absent"), [(LARGE, (5, 13)), (SMALL, (3, 5))])
def test_gold_that_is_not_listed_is_counted(
    runs: Mapping[str, Results], run: str, absent: tuple[int, int]
) -> None:
    found = runs[run].models[MODEL].by_path()
    names = ("retriever.gold_absent", "reranked.gold_absent")
    assert tuple(found[name].value for name in names) == absent


@pytest.mark.parametrize("run", [LARGE, SMALL])
def test_criteria_with_few_positives_are_flagged(
    runs: Mapping[str, Results], run: str
) -> None:
    own = runs[run].models[MODEL].criteria
    by_path = {m.path: m for metrics in own.values() for m in metrics}
    positives = [by_path[f"criterion.{name}.n_positive"].value for name in own]
    assert positives == POSITIVES[run]
    for name, n in zip(own, POSITIVES[run], strict=True):
        note = by_path[f"criterion.{name}.ndcg@10"].note or ""
        assert note.endswith("few") == (n < 10)


def test_one_criterion_has_the_known_numbers(runs: Mapping[str, Results]) -> None:
    own = runs[LARGE].models[MODEL].criteria["A.10"]
    found = {m.path.removeprefix("criterion.A.10."): m.value for m in own}
    values = [found[path] for path in ("recall@10", "ndcg@10", "mrr")]
    expected = [0.6, 0.42618595071429155, 0.36666666666666664]
    assert values == pytest.approx(expected, abs=1e-12)
    of_small = runs[SMALL].models[MODEL].criteria["A.5"]
    assert {m.value for m in of_small if m.path.endswith("ndcg@10")} == {1.0}


def test_what_format_e_has_nothing_for_is_said_and_not_filled(
    runs: Mapping[str, Results],
) -> None:
    own = runs[LARGE].models[MODEL]
    assert [each.partition(":")[0] for each in own.not_available] == [
        "gate, calibration and risk",
        "states",
        "dynamic K",
        "gamma sweep",
        "folds",
        "posts",
    ]
    assert "auroc" not in own.by_path()
    assert not own.folds


def test_the_published_profile_also_counts_queries_without_evidence(
    realdata: Path,
) -> None:
    path = realdata / "evidence_pipeline" / LARGE / "per_query.csv"
    chosen = settings(profile="published-lists", boot_b=0)
    found = measured(recorded_sheet(path), chosen).models[MODEL].by_path()
    metric = found["all_queries.reranked.recall@10"]
    assert metric.value == pytest.approx(0.08314317673378076, abs=1e-12)
    assert metric.n == 1490
    assert "denominator includes queries without evidence" in metric.definition
    assert found["reranked.mrr@5"].value == pytest.approx(0.625952380952381, abs=1e-12)
    assert np.isclose(found["reranked.map@5"].value or 0, 0.606309523809524, atol=1e-12)
