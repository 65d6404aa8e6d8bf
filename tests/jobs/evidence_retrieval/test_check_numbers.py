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
from tests.jobs.evidence_retrieval.known_numbers import (
    ENDS,
    GAPS,
    LARGE,
    MRR_OF_CRITERIA,
    OF_CRITERIA,
    POSITIVES,
    SIZES,
    SMALL,
    VALUES,
)
from tests.processes import siftlog

pytestmark = [pytest.mark.realdata, pytest.mark.timeout(120)]


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
        made[name] = imported(desk, name, *given, *stored, "--interval=percentile")
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
