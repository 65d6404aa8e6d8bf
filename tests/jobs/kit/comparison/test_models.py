"""Two rankings of a recorded run: the known differences, intervals and p-values."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from jobs.kit.comparison.models import ComparedModels, ComparisonOptions, compare_models
from jobs.kit.metrics import evaluate, hits
from runner.scorecard import ItemValues
from tests.jobs.evidence_retrieval.known_numbers import GAPS
from tests.jobs.kit.comparison.item_columns import side

pytestmark = pytest.mark.realdata

METRICS = ("recall@10", "ndcg@10", "mrr", "map@10", "hit@10")


def ranked(rows: list[dict[str, str]], column: str) -> dict[str, ItemValues]:
    """Every query as an item; those without evidence have no value."""
    gold = [row["gold_ids"].split("|") if row["gold_ids"] else [] for row in rows]
    lists = [row[column].split("|") for row in rows]
    values = evaluate(hits(gold, lists), (10,))
    keys = [f"{row['post_id']}/{row['criterion_id']}" for row in rows]
    posts = [row["post_id"] for row in rows]
    return {
        path: ItemValues(
            kind="mean",
            items=keys,
            clusters=posts,
            cluster="post",
            first=[None if np.isnan(v) else float(v) for v in values[path]],
            definition=path,
        )
        for path in METRICS
    }


def compared(realdata: Path, name: str) -> ComparedModels:
    (path,) = (realdata / "evidence_pipeline").rglob(f"{name}/per_query.csv")
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    sides = [side(ranked(rows, f"{which}_topk")) for which in ("retriever", "reranked")]
    (match,) = compare_models(
        [(sides[0], sides[1])], (), ComparisonOptions(form="percentile")
    )
    return match


@pytest.mark.parametrize("run", GAPS)
def test_reranked_minus_retriever(realdata: Path, run: str) -> None:
    match = compared(realdata, run)
    found = {each.path: each for each in match.compared}
    for path, (difference, ends, p) in GAPS[run].items():
        gap, own = found[path].gap, found[path].p_values.primary
        assert gap.value == pytest.approx(difference, abs=1e-12)
        assert own is not None
        assert (own.name, own.p) == ("sign flips by post", pytest.approx(p, rel=1e-11))
        if ends is not None:
            assert (gap.interval.lo, gap.interval.hi) == pytest.approx(ends, rel=1e-10)
        assert found[path].verdict == "undecided"
    assert [each.p_holm for each in match.compared] == [1.0] * 5
    assert {each.overlap.n for each in match.compared} == {140}
