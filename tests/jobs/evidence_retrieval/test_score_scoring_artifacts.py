"""The files of a scoring: names, columns, and what stands where nothing is known."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from jobs.evidence_retrieval.measures import MEASURES
from jobs.evidence_retrieval.per_query import PER_QUERY
from jobs.evidence_retrieval.queries import FoldGate, ScoringInput, TuningSample
from jobs.evidence_retrieval.score import score
from jobs.evidence_retrieval.tables import METRICS
from jobs.kit.metrics.ranking import read_qrels, read_run
from runner.score.result_files import _write_files
from runner.scorecard import Artifact, Scorecard
from tests.jobs.evidence_retrieval.sheets import MODEL, dataset, sheet_of

ROOT = Path(__file__).resolve().parents[3]
KEYS = [(f"p{post}", f"A.{c}") for post in range(6) for c in (1, 2)]
Y = [1, 0, 0, 1, 1, 0, 0, 0, 1, 1, 0, 0]
P = [0.9, 0.2, 0.4, 0.5, 0.3, 0.1, 0.0, 0.6, 0.7, 0.8, 0.2, 0.3]
LISTS = [(f"{post}_1", f"{post}_0", f"{post}_2") for post, _ in KEYS]
FIRST = [(f"{post}_0", f"{post}_1") for post, _ in KEYS]
GOLD = [(f"{KEYS[i][0]}_0",) if y else () for i, y in enumerate(Y)]
FOLD = [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2]
WHOLE: dict[str, Any] = {
    "prob_raw": P,
    "prob": P,
    "tau_neg": [0.15] * 12,
    "tau_pos": [0.65] * 12,
    "k": [2, 0, 1, 2] * 3,
    "lists": {"retriever": FIRST, "reranked": LISTS},
    "final": "reranked",
}


def sheet(*models: str) -> ScoringInput:
    own = [{**WHOLE, "model": model} for model in models or (MODEL,)]
    return sheet_of(KEYS, own, y=Y, gold=GOLD, fold=FOLD)


def written(card: Scorecard, folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    assert list(_write_files(folder, card)) == []
    return folder


def rows_of(path: Path) -> list[dict[str, str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("scoring") / "1"
    return written(score(dataset(boot_b=50), sheet()), target)


def test_the_files_of_one_model_lie_at_the_top(folder: Path) -> None:
    names = {p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()}
    assert names == {
        "baselines.csv",
        "baselines.txt",
        "checks.csv",
        "comparison.csv",
        "consistency.json",
        "fold_sizes.csv",
        "folds.csv",
        "leakage.json",
        "metrics.csv",
        "per_criterion.csv",
        "per_post_multilabel.csv",
        "per_query.csv",
        "per_query_lists.csv",
        "qrels.txt",
        "rankings.jsonl",
        "rankings.retriever.jsonl",
        "run.reranked.txt",
        "run.retriever.txt",
        "summary.json",
        "test_model/per_query.csv",
        "threshold_grid.csv",
    }


def test_several_models_have_a_folder_each(tmp_path: Path) -> None:
    card = score(dataset(boot_b=0), sheet("a/one", "../two"))
    made = written(card, tmp_path / "1")
    assert {p.name for p in made.iterdir() if p.is_dir()} == {"a_one", "_._two"}
    for name in ("a_one", "_._two"):
        own = {path.name for path in (made / name).iterdir()}
        assert {"per_query.csv", "rankings.jsonl", "summary.json"} <= own
    assert not (made / "per_query.csv").exists()


def test_a_row_a_query_and_the_ranking_columns_blank_on_negatives(
    folder: Path,
) -> None:
    rows = rows_of(folder / "per_query.csv")
    assert list(rows[0]) == list(PER_QUERY.names)
    assert rows == rows_of(folder / "test_model" / "per_query.csv")
    assert [(row["post_id"], row["criterion_id"]) for row in rows] == KEYS
    for row, y in zip(rows, Y, strict=True):
        blank = [
            row[name] == ""
            for name in ("evidence_recall_at_k", "evidence_precision_at_k", "mrr")
        ]
        assert blank == [not y] * 3
    assert rows[0]["mrr"] == "0.5"
    assert (rows[0]["state"], rows[5]["state"]) == ("POS", "NEG")
    assert (rows[0]["screening_correct"], rows[0]["alert_correct"]) == ("1", "1")
    assert (rows[1]["screening_correct"], rows[1]["alert_correct"]) == ("0", "1")
    assert rows[0]["gold_sent_uids"] == "p0_0"


def test_a_post_has_a_column_triple_a_criterion(folder: Path) -> None:
    rows = rows_of(folder / "per_post_multilabel.csv")
    assert len(rows) == 6
    assert (rows[0]["A.1_pred"], rows[0]["A.1_gold"], rows[0]["A.1_state"]) == (
        "1",
        "1",
        "POS",
    )
    assert (rows[0]["exact_match"], rows[0]["hamming_score"]) == ("1", "1.0")
    assert (rows[2]["exact_match"], rows[2]["hamming_score"]) == ("0", "0.5")


def test_rankings_come_in_three_forms_that_agree(folder: Path) -> None:
    lines = (folder / "rankings.jsonl").read_text().splitlines()
    ours = [tuple(json.loads(line)["sent_uids"]) for line in lines]
    wide = rows_of(folder / "per_query_lists.csv")
    assert ours == LISTS
    assert [tuple(row["reranked_topk"].split("|")) for row in wide] == LISTS
    assert [tuple(row["retriever_topk"].split("|")) for row in wide] == FIRST
    run = read_run(folder / "run.reranked.txt", escape_ids=True)
    assert run.contradicting == 0
    assert [tuple(run.ranked[f"{p}|{c}"]) for p, c in KEYS] == LISTS
    qrels = read_qrels(folder / "qrels.txt", escape_ids=True)
    assert qrels == {
        f"p{KEYS[i][0][1]}|{KEYS[i][1]}": {GOLD[i][0]: 1.0} for i in range(12) if Y[i]
    }


def test_every_metric_row_says_what_it_is(folder: Path) -> None:
    for name in ("metrics", "per_criterion", "threshold_grid"):
        rows = rows_of(folder / f"{name}.csv")
        assert set(METRICS.names) - {"note"} <= set(rows[0])
        assert all(row["metric"] and row["definition"] and row["n"] for row in rows)
    grid = rows_of(folder / "threshold_grid.csv")
    assert {row["deployed"] for row in grid} == {"true", "false"}
    assert all(
        "not for selection" in row["split"]
        for row in grid
        if row["deployed"] == "false"
    )
    assert {(r["tau_neg"], r["tau_pos"]) for r in grid if r["deployed"] == "true"} == {
        ("0.15", "0.65")
    }


def test_the_folds_can_be_given_to_another_run(folder: Path) -> None:
    rows = rows_of(folder / "folds.csv")
    assert [(row["post_id"], row["fold_id"]) for row in rows] == [
        (f"p{i}", str(i // 2)) for i in range(6)
    ]
    sizes = rows_of(folder / "fold_sizes.csv")
    assert [row["positives"] for row in sizes] == ["2", "1", "2"]


def test_the_summary_holds_each_fold_and_what_it_is_over_folds(folder: Path) -> None:
    summary = json.loads((folder / "summary.json").read_text())
    assert summary["n_folds"] == 3
    folds = [
        each["test_metrics"]["ne_gate"]["auroc"] for each in summary["fold_results"]
    ]
    over = summary["aggregated_metrics"]["ne_gate.auroc"]
    assert over["mean"] == pytest.approx(np.mean(folds))
    assert over["std"] == pytest.approx(np.std(folds, ddof=1))
    assert set(summary["definitions"]) == set(summary["aggregated_metrics"])
    interval = summary["intervals"]["ne_gate.auroc"]
    assert interval["lo"] <= interval["value"] <= interval["hi"]
    fold = summary["fold_results"][0]["test_metrics"]
    assert set(fold) == {"ne_gate", "deployment", "evidence", "dynamic_k"}


def test_without_folds_the_summary_has_a_block_a_list() -> None:
    lists = {key: WHOLE[key] for key in ("lists", "final")}
    plain = sheet_of(KEYS, [lists], y=Y, gold=GOLD)
    card = score(dataset(boot_b=0, profile="published-lists"), plain)
    text = next(a.text for a in card.artifacts if a.name == "summary.json")
    summary = json.loads(text)
    block = summary["reranked"]["positives_only"]
    assert block["mrr@5"] == 0.5
    assert block["queries_evaluated"] == 5
    assert summary["retriever"]["all_queries"]["recall@1"] == 5 / 12
    assert summary["retriever"]["all_queries"]["queries_evaluated"] == 12
    assert "retriever.recall@1" in summary["definitions"]


def test_what_was_fitted_for_a_fold_is_kept() -> None:
    gate = FoldGate(
        model=MODEL,
        config="given",
        fold="0",
        posts={"fit": 3, "tune": 1, "test": 2},
        tau_neg=0.1,
        tau_pos=float("inf"),
        on_tune={"screening_sensitivity": 1.0, "neg_rate": 0.4},
        fitted={"knots": [0.0, 1.0]},
        tuned=TuningSample(y=(True, False, False), p=(0.95, 0.3, 0.02)),
    )
    own = sheet()
    whole = ScoringInput(
        queries=own.queries,
        predictions=own.predictions,
        headline=own.headline,
        models=own.models,
        gates=(gate,),
    )
    card = score(dataset(boot_b=0), whole)
    text = next(a.text for a in card.artifacts if a.name == "gate_fold_0.json")
    assert json.loads(text)["configs"]["given"]["tau_pos"] == "inf"
    text = next(a.text for a in card.artifacts if a.name == "summary.json")
    first, second, _ = json.loads(text)["fold_results"]
    assert first["threshold_selection"] == {
        "tau_neg": 0.1,
        "tau_pos": "inf",
        "screening": {"sensitivity": 1.0},
        "distribution": {"neg_rate": 0.4},
    }
    assert second["threshold_selection"] == {"tau_neg": 0.15, "tau_pos": 0.65}
    grid = next(t for t in card.tables if t.name == "threshold_grid")
    rows = [dict(zip(grid.columns, row, strict=True)) for row in grid.rows]
    tuned = [row for row in rows if row["split"] == "tune queries: for choosing"]
    assert {(row["fold"], row["subset"], row["n"]) for row in tuned} == {
        ("0", "tune of fold 0", 3)
    }
    found = {
        row["metric"]: row["value"]
        for row in tuned
        if (row["tau_neg"], row["tau_pos"]) == (0.1, 0.7)
    }
    assert found["neg_rate"] == pytest.approx(1 / 3)
    assert (found["screening_sensitivity"], found["alert_precision"]) == (1.0, 1.0)
    assert not any(row["deployed"] for row in tuned)
    table = next(t for t in card.tables if t.name == "fold_thresholds")
    splits = {row[table.columns.index("split")] for row in table.rows}
    assert splits == {"tune", "test"}


def test_the_terminal_says_value_spread_interval_subset_and_target() -> None:
    text = score(dataset(boot_b=50), sheet()).summary
    lines = text.splitlines()
    assert lines[0].startswith("evidence-retrieval  model test/model  config given")
    assert "12 queries  6 posts  2 criteria  5 positive (41.67%)" in lines[1]
    auroc = next(line for line in lines if line.startswith("AUROC"))
    assert "+-" in auroc
    assert "[" in auroc
    assert "all 12" in auroc
    assert ">= 0.85" in auroc
    assert "recall@10" in text
    assert "states  NEG 2  UNCERTAIN" in text
    assert any(line.split()[:2] == ["reranked", "retriever"] for line in lines)


def test_a_failed_target_is_told_and_is_no_finding() -> None:
    card = score(dataset(boot_b=20, target_brier=1e-9), sheet())
    brier = next(m for m in card.models[MODEL] if m.path == "brier")
    assert brier.verdict == "fail"
    assert not [finding for finding in card.findings if finding.severity == "error"]


def test_equal_sheets_give_equal_scorecards() -> None:
    first, second = (score(dataset(boot_b=20), sheet()) for _ in range(2))
    assert first.models == second.models
    assert list(first.details) == list(second.details)


PRINT_ALL = """
import hashlib
from jobs.evidence_retrieval.score import score
from tests.jobs.evidence_retrieval.sheets import dataset
from tests.jobs.evidence_retrieval.test_score_scoring_artifacts import sheet
card = score(dataset(boot_b=20), sheet("a/one", "b/two"))
said = repr((card.models, card.tables, card.artifacts, list(card.details)))
print(hashlib.sha256(said.encode()).hexdigest())
"""


def test_hash_seeds_do_not_reach_a_scorecard() -> None:
    said = {
        subprocess.run(
            [sys.executable, "-c", PRINT_ALL],
            cwd=ROOT,
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1")
    }
    assert len(said) == 1


@pytest.mark.parametrize(
    "name", ["../x", "/etc/x", "a/../b/c", "a/b/c/d", ".hidden", "a//b", ""]
)
def test_a_file_never_lands_outside_the_scoring(tmp_path: Path, name: str) -> None:
    card = Scorecard(models={}, summary="", artifacts=(Artifact(name=name),))
    with pytest.raises(ValueError, match="cannot be the name"):
        list(_write_files(tmp_path, card))


def test_headlines_are_few_and_all_metrics_have_words() -> None:
    own = score(dataset(boot_b=0), sheet()).models[MODEL]
    headlines = [metric.path for metric in own if metric.is_headline]
    assert "screening_sensitivity" in headlines
    assert "evidence_recall@K" in headlines
    assert not [path for path in headlines if "~" in path or path.startswith("fold.")]
    assert all(metric.name and metric.meaning for metric in own)


def test_a_final_gate_is_a_file_where_one_was_asked_for() -> None:
    given = replace(sheet(), final_gates='{"format": 1, "gates": []}\n')
    files = {a.name: a.text for a in score(dataset(boot_b=0), given).artifacts}
    assert files["gate_final.json"] == given.final_gates
    without = score(dataset(boot_b=0), sheet()).artifacts
    assert "gate_final.json" not in {each.name for each in without}


def test_precision_of_a_decision_is_about_queries_and_of_a_list_about_sentences() -> (
    None
):
    of_queries = MEASURES.of("criterion.A.1.at_tau.precision")
    of_sentences = MEASURES.of("criterion.A.1.precision@10")
    assert of_queries is not None
    assert of_sentences is not None
    assert "queries" in of_queries.meaning
    assert "sentences" in of_sentences.meaning
    assert of_queries.name != of_sentences.name
