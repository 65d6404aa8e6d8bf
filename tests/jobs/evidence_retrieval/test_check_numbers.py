"""The recorded files through the shipped command, against answers known beforehand.

Each file is imported once; what is asserted is read from what the command wrote. The
full-size set is held against its answers where it is imported and measured.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.jobs.evidence_retrieval.given_files import SAMPLE
from tests.processes import siftlog

pytestmark = [pytest.mark.realdata, pytest.mark.timeout(120)]

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
        "gold_absent": (5, 13),
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
        "gold_absent": (3, 5),
    },
}
"""Of the retriever and of the reranker."""

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
"""Reranked minus retriever: difference, its interval, p of the sign flips."""

POSITIVES = {
    LARGE: [33, 13, 3, 11, 6, 15, 27, 6, 21, 5],
    SMALL: [38, 12, 7, 11, 1, 11, 34, 5, 11, 10],
}
SIZES = {LARGE: (1490, 149), SMALL: (1470, 147)}

OF_CRITERIA = (
    (LARGE, "A.1", "retriever", (0.9191919191919191, 0.6783417919832357)),
    (LARGE, "A.1", "reranked", (0.8989898989898989, 0.6923406142436679)),
    (LARGE, "A.10", "retriever", (0.8, 0.5528019782813453)),
    (LARGE, "A.10", "reranked", (0.6, 0.42618595071429155)),
)
MRR_OF_CRITERIA = {
    ("A.1", "retriever"): 0.610805019895929,
    ("A.1", "reranked"): 0.639009139009139,
    ("A.10", "retriever"): 0.48546798029556654,
    ("A.10", "reranked"): 0.36666666666666664,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What one scoring left behind."""

    folder: Path
    said: str

    @property
    def card(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "scorecard.json").read_text())
        return found

    @property
    def metrics(self) -> Mapping[str, Mapping[str, Any]]:
        found: dict[str, Any] = self.card["models"]["imported"]["metrics"]
        return found

    def table(self, name: str) -> list[dict[str, str]]:
        path = self.folder / f"{name}.csv"
        with path.open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def codes(self) -> dict[str, int]:
        """Rows of each finding, by code and place."""
        return {f"{f['code']} {f['where']}": f["n"] for f in self.card["findings"]}


def imported(desk: Path, name: str, *words: object) -> Written:
    """A file imported by the command under its own name."""
    command = ("import", "evidence-retrieval", *words, f"--run-id={name}", "--json")
    done = siftlog(*command, cwd=desk)
    return Written(folder=desk / "runs" / name / "scores/1", said=done.stdout)


def scored(desk: Path, name: str, number: int, *words: object) -> Written:
    """The run scored again under other settings."""
    done = siftlog("score", name, *words, cwd=desk)
    return Written(folder=desk / f"runs/{name}/scores/{number}", said=done.stdout)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("desk")


@pytest.fixture(scope="module")
def runs(realdata: Path, desk: Path) -> Mapping[str, Written]:
    """Both files of lists under our own definitions."""
    made = {}
    for name in (LARGE, SMALL):
        files = realdata / "evidence_pipeline" / name
        given = ("--per-query", files / "per_query.csv")
        stored = ("--against", files / "summary.json")
        made[name] = imported(desk, name, *given, *stored)
    return made


@pytest.fixture(scope="module")
def published(runs: Mapping[str, Written], desk: Path) -> Mapping[str, Written]:
    """The same under the definitions that the stored files were made with."""
    return {name: scored(desk, name, 2, "--profile=published-lists") for name in runs}


@pytest.fixture(scope="module")
def sample(realdata: Path, desk: Path) -> Written:
    """The published rows, which contradict themselves."""
    words = ("--per-query", realdata / SAMPLE, "--allow-ragged")
    return imported(desk, "sample", *words)


@pytest.fixture(scope="module")
def as_stated(sample: Written, desk: Path) -> Written:
    """The same by the states of the file."""
    assert sample.folder.is_dir()
    return scored(desk, "sample", 2, "--states=column")


@pytest.mark.parametrize("run", [LARGE, SMALL])
def test_both_lists_have_the_known_means(runs: Mapping[str, Written], run: str) -> None:
    found = runs[run].metrics
    assert (found["queries"]["value"], found["posts"]["value"]) == SIZES[run]
    assert found["recall@10"]["n"] == 140
    for path, expected in VALUES[run].items():
        both = [found[f"{each}.{path}"]["value"] for each in ("retriever", "reranked")]
        assert both == pytest.approx(expected, rel=0, abs=1e-12), path
        assert found[path]["value"] == both[1]


@pytest.mark.parametrize("run", [LARGE, SMALL])
def test_both_lists_have_the_known_intervals(
    runs: Mapping[str, Written], run: str
) -> None:
    found = runs[run].metrics
    for path, ends in ENDS[run].items():
        drawn = (found[path]["lo"], found[path]["hi"])
        assert drawn == pytest.approx(ends, rel=1e-11), path


@pytest.mark.parametrize("run", [LARGE, SMALL])
def test_differences_are_paired_and_corrected(
    runs: Mapping[str, Written], run: str
) -> None:
    gaps = {row["metric"]: row for row in runs[run].table("comparison")}
    assert list(gaps) == ["recall@10", "ndcg@10", "mrr", "map@10", "hit@10"]
    assert [float(row["p_holm"]) for row in gaps.values()] == [1.0] * 5
    for path, (value, ends, p) in GAPS[run].items():
        row = gaps[path]
        assert (row["left"], row["right"]) == (
            "imported: reranked",
            "imported: retriever",
        )
        assert float(row["difference"]) == pytest.approx(value, abs=1e-12)
        assert float(row["p"]) == pytest.approx(p, rel=1e-11)
        if ends is not None:
            drawn = (float(row["lo"]), float(row["hi"]))
            assert drawn == pytest.approx(ends, rel=0, abs=1e-12)


@pytest.mark.parametrize("run", [LARGE, SMALL])
def test_criteria_with_few_positives_are_flagged(
    runs: Mapping[str, Written], run: str
) -> None:
    rows = [r for r in runs[run].table("per_criterion") if r["criterion"] != "macro"]
    own = {r["criterion"]: r for r in rows if r["metric"] == "n_positive"}
    assert list(own) == [f"A.{i}" for i in range(1, 11)]
    assert [int(row["value"]) for row in own.values()] == POSITIVES[run]
    notes = {r["criterion"]: r["note"] for r in rows if r["metric"] == "ndcg@10"}
    flagged = [note.endswith("few") for note in notes.values()]
    assert flagged == [n < 10 for n in POSITIVES[run]]


@pytest.mark.parametrize(("run", "criterion", "ranking", "expected"), OF_CRITERIA)
def test_criteria_have_the_known_numbers(
    runs: Mapping[str, Written],
    run: str,
    criterion: str,
    ranking: str,
    expected: tuple[float, float],
) -> None:
    rows = {
        row["metric"]: float(row["value"])
        for row in runs[run].table("per_criterion")
        if row["criterion"] == criterion and row["value"]
    }
    prefix = "retriever." if ranking == "retriever" else ""
    found = [rows[f"{prefix}{path}"] for path in ("recall@10", "ndcg@10", "mrr")]
    wanted = [*expected, MRR_OF_CRITERIA[criterion, ranking]]
    assert found == pytest.approx(wanted, rel=0, abs=1e-12)


def test_one_positive_alone_is_found_at_once(runs: Mapping[str, Written]) -> None:
    found = runs[SMALL].metrics["criterion.A.5.ndcg@10"]
    assert (found["value"], found["n"]) == (1.0, 1)


@pytest.mark.parametrize("run", [LARGE, SMALL])
def test_a_file_of_lists_is_clean_and_what_it_lacks_is_not_filled(
    runs: Mapping[str, Written], run: str
) -> None:
    lists = ("retriever", "reranked")
    absent = [f"gold_not_listed imported {name}" for name in lists]
    assert list(runs[run].codes()) == absent
    parts = ("auroc", "ece", "screening_sensitivity", "k.mean", "posts_at_tau.items")
    assert not [part for part in parts if part in runs[run].metrics]
    assert not (runs[run].folder / "folds.csv").exists()


def test_what_a_file_of_lists_has_nothing_for_is_said(
    published: Mapping[str, Written],
) -> None:
    told = [
        line.partition(": ")[2].partition(":")[0]
        for line in published[LARGE].said.splitlines()
        if line.startswith("not available")
    ]
    assert told == [
        "gate, calibration and risk",
        "states",
        "dynamic K",
        "gamma sweep",
        "folds",
        "posts",
    ]


@pytest.mark.parametrize(
    ("run", "total", "others"),
    [
        (LARGE, 64, {f"map@{k}" for k in (1, 5)}),
        (SMALL, 32, {"map@1"}),
    ],
)
def test_stored_summaries_are_equal_under_their_profile(
    runs: Mapping[str, Written],
    published: Mapping[str, Written],
    run: str,
    total: int,
    others: set[str],
) -> None:
    told = f"{total} numbers compared, {total} equal; largest difference 0.0\n"
    assert told in published[run].said
    rows = [r for r in published[run].table("verification") if r["kind"] == "figure"]
    assert {row["verdict"] for row in rows} == {"equal"}
    ours = runs[run].table("verification")
    other = [row for row in ours if row["verdict"] == "other definition"]
    assert {row["path"].rpartition(".")[2] for row in other} == others
    assert len(other) == {LARGE: 8, SMALL: 2}[run]
    assert {row["verdict"] for row in ours} <= {"equal", "other definition"}


def test_the_other_definition_is_told_with_both_values(
    runs: Mapping[str, Written],
) -> None:
    rows = {row["path"]: row for row in runs[LARGE].table("verification")}
    row = rows["reranked.positives_only.map@5"]
    both = (float(row["stored"]), float(row["recomputed"]))
    assert both == pytest.approx((0.606309523809524, 0.6060317460317461), abs=1e-12)
    assert "min" in row["why"]


def test_the_published_profile_also_counts_queries_without_evidence(
    published: Mapping[str, Written],
) -> None:
    found = published[LARGE].metrics
    metric = found["all_queries.reranked.recall@10"]
    assert metric["value"] == pytest.approx(0.08314317673378076, abs=1e-12)
    assert metric["n"] == 1490
    assert "denominator includes queries without evidence" in metric["definition"]
    cut = {"mrr@5": 0.625952380952381, "map@5": 0.606309523809524}
    values = {path: found[f"reranked.{path}"]["value"] for path in cut}
    assert values == pytest.approx(cut, rel=0, abs=1e-12)


def test_the_sample_separates_perfectly_and_its_spread_is_flagged(
    sample: Written,
) -> None:
    expected = {
        "queries": 16,
        "positives": 8,
        "n_candidates.mean": 19.5,
        "auroc": 1.0,
        "auprc": 1.0,
        **{f"tpr_at_fpr@{target}": 1.0 for target in ("0.01", "0.03", "0.05", "0.1")},
        "threshold_at_fpr@0.01": 0.6,
        "at_tau.tp": 8,
        "at_tau.tn": 8,
        "at_tau.fp": 0,
        "at_tau.fn": 0,
        "ece": 0.168125,
        "mce": 0.4,
        "brier": 0.03916875,
        "log_loss": 0.1925424159350582,
        "evidence_recall@K": 0.825,
        "evidence_recall@K~std": 0.1414213562373095,
        "evidence_precision@K": 0.1693125,
        "mrr": 0.552,
        "mrr~median": 0.5,
        "k.mean": 7.8125,
        "k.median": 8,
        "k.p90": 11,
    }
    found = {path: sample.metrics[path]["value"] for path in expected}
    assert found == pytest.approx(expected, rel=0, abs=1e-12)
    wilson = sample.metrics["at_tau.sensitivity~wilson"]
    ends = (wilson["lo"], wilson["hi"])
    assert ends == pytest.approx((0.6755924351161198, 1.0), rel=1e-11)
    notes = {row["metric"]: row["note"] for row in sample.table("metrics")}
    assert "degenerate: SE 0" in notes["auroc~delong"]
    (delong,) = (r for r in sample.table("metrics") if r["metric"] == "auroc~delong")
    assert (delong["lo"], delong["hi"]) == ("1.0", "1.0")
    given = sample.metrics["evidence_recall@K"]["definition"]
    assert "not recomputable" in given


def test_every_contradiction_of_the_sample_is_in_its_report(sample: Written) -> None:
    assert sample.codes() == {
        "ragged_rows sample_per_query.csv": 8,
        "state_contradicts_thresholds imported state": 15,
        "neg_with_k imported selected_k": 7,
        "precision_no_share_of_k imported evidence_precision_at_k": 6,
        "mrr_rounded imported mrr": 2,
        "filled_on_negatives imported mrr": 8,
        "decision_wrongly_judged imported screening_correct": 1,
        "decision_wrongly_judged imported alert_correct": 8,
    }
    written = json.loads((sample.folder / "consistency.json").read_text())
    assert written == sample.card["findings"]


def test_states_of_the_sample_are_computed_unless_the_column_is_asked_for(
    sample: Written, as_stated: Written
) -> None:
    names = ("states.NEG", "states.UNCERTAIN", "states.POS", "alert_precision")
    both = [
        [each.metrics[name]["value"] for name in names] for each in (sample, as_stated)
    ]
    assert both == [[0, 16, 0, None], [7, 1, 8, 1.0]]
    expected = {
        "screening_sensitivity": 1.0,
        "k.NEG.mean": 5.0,
        "k.UNCERTAIN.mean": 10.0,
        "k.POS.mean": 10.0,
        "k.POS.p90": 12.0,
        "posts_at_tau.exact_match": 1.0,
        "posts_at_tau.micro_f1": 1.0,
        "posts_not_neg.exact_match": 0.75,
        "posts_not_neg.hamming_score": 0.9375,
        "posts_not_neg.micro_f1": 0.9411764705882353,
        "posts_not_neg.f1_per_item": 0.95,
    }
    found = {path: as_stated.metrics[path]["value"] for path in expected}
    assert found == pytest.approx(expected, rel=0, abs=1e-12)
