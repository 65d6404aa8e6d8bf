"""trec_eval on the exported files says the same of each query as the scorecard."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.evidence_retrieval.metrics.judged_predictions import block_of
from jobs.evidence_retrieval.score import score
from runner.score.result_files import _write_files
from tests.jobs.evidence_retrieval.sheets import dataset, recorded_sheet, settings

pytestmark = pytest.mark.realdata

KS = (1, 3, 5, 10, 20)
OURS = {
    "recall": "recall",
    "P": "precision",
    "success": "hit",
    "map_cut": "map",
    "ndcg_cut": "ndcg",
}
"""Measures of trec_eval, and what they are called here."""


@pytest.mark.parametrize("run", ["bge_m3_rrf_top20", "baseline_default_val"])
@pytest.mark.parametrize("step", ["retriever", "reranked"])
def test_trec_eval_agrees_query_by_query(
    realdata: Path, tmp_path: Path, run: str, step: str
) -> None:
    trec = pytest.importorskip("pytrec_eval", reason="pytrec-eval is not installed")
    sheet = recorded_sheet(realdata / "evidence_pipeline" / run / "per_query.csv")
    list(_write_files(tmp_path, score(dataset(boot_b=0), sheet)))
    with (tmp_path / "qrels.txt").open() as file:
        qrels = trec.parse_qrel(file)
    with (tmp_path / f"run.{step}.txt").open() as file:
        lists = trec.parse_run(file)
    cuts = ",".join(map(str, KS))
    names = {f"{name}.{cuts}" for name in OURS} | {"recip_rank"}
    theirs = trec.RelevanceEvaluator(qrels, names).evaluate(lists)
    ranked = block_of(sheet.queries, sheet.predictions[0], settings()).lists[step]
    assert len(ranked.rows) == len(theirs)
    for place, i in enumerate(ranked.rows.tolist()):
        post, _, criterion = sheet.queries.key(i).rpartition("/")
        own = theirs[f"{post}|{criterion}"]
        found = {
            f"{name}_{k}": ranked.values[f"{ours}@{k}"][place]
            for name, ours in OURS.items()
            for k in KS
        } | {"recip_rank": ranked.values["mrr"][place]}
        assert found == pytest.approx(own, rel=0, abs=1e-12)
