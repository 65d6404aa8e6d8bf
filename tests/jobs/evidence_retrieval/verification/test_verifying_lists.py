"""Stored results of ranking lists: two published runs, and planted mistakes."""

from __future__ import annotations

import copy
import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.evidence_retrieval.verification.definitions import (
    SIFTLOG,
    MetricDefinitions,
    definitions_of,
)
from jobs.evidence_retrieval.verification.verify import SummaryVerification, verify

LISTS = definitions_of(EvidenceSettings(profile="published-lists"))


@pytest.fixture(params=["bge_m3_rrf_top20", "baseline_default_val"])
def run(request: pytest.FixtureRequest, realdata: Path) -> Path:
    """A published run: its rows and its summary."""
    return realdata / "evidence_pipeline" / str(request.param)


def published(run: Path, choices: MetricDefinitions) -> SummaryVerification:
    with (run / "per_query.csv").open(newline="", encoding="utf-8-sig") as file:
        rows = list(csv.DictReader(file))
    return verify(rows, json.loads((run / "summary.json").read_text()), choices=choices)


N = {"bge_m3_rrf_top20": (64, 8), "baseline_default_val": (32, 2)}
"""Figures that a summary holds, and those of them that siftlog defines otherwise."""


@pytest.mark.realdata
def test_a_published_summary_is_equal_to_the_last_digit(run: Path) -> None:
    found = published(run, LISTS)
    assert found.tally == {"equal": N[run.name][0]}
    assert found.largest_difference == 0.0
    assert found.failures == ()
    assert {c.verdict for c in found.comparisons} == {"equal"}


@pytest.mark.realdata
def test_exact_sums_are_off_by_their_rounding_alone(run: Path) -> None:
    found = published(run, replace(LISTS, sums="exact"))
    assert found.tally == {"equal": N[run.name][0]}
    assert found.largest_difference is not None
    assert 0.0 < found.largest_difference < 1e-15


@pytest.mark.realdata
def test_its_average_precision_is_recognised_under_our_own_definitions(
    run: Path,
) -> None:
    found = published(run, SIFTLOG)
    total, others = N[run.name]
    assert found.tally == {"equal": total - others, "other definition": others}
    assert found.failures == ()
    named = [c for c in found.comparisons if c.verdict == "other definition"]
    assert {c.why for c in named} == {"ap_denominator=min"}
    assert {c.path.rpartition(".")[2] for c in named} <= {"map@1", "map@5"}
    by_path = {c.path: c for c in found.comparisons}
    example = by_path.get("reranked.positives_only.map@5")
    if example is not None:
        assert example.stored == 0.606309523809524
        assert example.recomputed == pytest.approx(0.6060317460317461, abs=1e-12)


ROWS = [
    {"post_id": "p", "criterion_id": "A", "gold_ids": gold, "reranked_topk": listed}
    for gold, listed in (("p_1|p_2", "p_2|p_0|p_1"), ("p_0", "p_1|p_0"), ("", "p_0"))
]
BLOCK = {
    "recall@1": 0.25,
    "recall@5": 1.0,
    "mrr@1": 0.5,
    "mrr@5": 0.75,
    "map@1": 0.25,
    "map@5": (5 / 6 + 1 / 2) / 2,
    "ndcg@1": 0.5,
    "queries_total": 3,
    "queries_with_positives": 2,
    "queries_evaluated": 2,
    "skip_no_positives": True,
}
SUMMARY: dict[str, Any] = {"reranked": BLOCK, "eval_split": "test"}


def verified(**changes: Any) -> SummaryVerification:
    return verify(ROWS, {**SUMMARY, "reranked": {**BLOCK, **changes}})


def test_a_summary_that_was_made_by_hand_is_equal() -> None:
    found = verified()
    assert found.tally == {"equal": 7}
    assert found.failures == ()
    assert [c.path for c in found.comparisons if c.kind == "count"] == [
        "reranked.queries_total",
        "reranked.queries_with_positives",
        "reranked.queries_evaluated",
    ]


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        # above recall@1, which it can never be where it divides by all gold
        ({"map@1": 0.5}, "ap_denominator=min"),
        ({"map@5": (5 / 6 + 1 / 2) / 3}, "queries=all"),
        ({"mrr@1": 0.75}, "k=whole list"),
        ({"recall@5": 2 / 3}, "queries=all"),
    ],
)
def test_another_definition_is_recognised(changes: dict[str, float], why: str) -> None:
    found = verified(**changes)
    assert [(c.path, c.why) for c in found.comparisons if c.why] == [
        (f"reranked.{next(iter(changes))}", why)
    ]
    assert found.failures == ()


@pytest.mark.parametrize(
    "changes",
    [
        {"recall@1": 1.0, "recall@5": 0.25},  # two columns swapped
        {"mrr@5": 0.7500001},
        {"ndcg@1": "0.4"},
        {"recall@5": None},
        {"queries_total": 4},
        {"queries_evaluated": 3},  # means by another denominator than they say
    ],
)
def test_a_planted_mistake_fails(changes: dict[str, Any]) -> None:
    found = verified(**changes)
    differing = [c.path for c in found.comparisons if c.verdict == "differs"]
    assert differing == [f"reranked.{key}" for key in changes]
    (sentence,) = found.failures
    assert f"; {len(changes) - 1} more differ (see verification.csv)." in sentence


def test_a_block_says_itself_which_queries_it_divides_by() -> None:
    every = {
        **{key: value * 2 / 3 for key, value in BLOCK.items() if "@" in key},
        "queries_total": 3,
        "queries_with_positives": 2,
        "queries_evaluated": 3,
        "skip_no_positives": False,
    }
    assert verify(ROWS, {"reranked": every}).tally == {"equal": 7}
    both = {"reranked": {"positives_only": BLOCK, "all_queries": every}}
    found = verify(ROWS, both)
    assert (found.tally, found.failures) == ({"equal": 14}, ())
    found = verify(ROWS, {"reranked": {"all_queries": BLOCK}})
    by_path = {c.path: (c.verdict, c.why) for c in found.comparisons}
    assert by_path["reranked.all_queries.recall@5"] == (
        "other definition",
        "queries=positives",
    )


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (
            lambda s: s.pop("reranked"),
            "The rows have reranked lists and the summary has no block reranked.",
        ),
        (
            lambda s: s["reranked"].clear(),
            "The summary's block reranked is missing or holds no figure.",
        ),
        (
            lambda s: s.update(reranked={"positives_only": s["reranked"]}),
            "The summary's block reranked.all_queries is missing or holds no figure.",
        ),
    ],
)
def test_a_block_that_should_be_there_fails_where_it_is_not(
    change: Callable[[dict[str, Any]], object], sentence: str
) -> None:
    summary = copy.deepcopy(SUMMARY)
    change(summary)
    assert sentence in verify(ROWS, summary).failures


@pytest.mark.parametrize(
    "summary",
    [
        {},
        {"accuracy": 0.9, "loss": {"train": 0.1}},
        {"retriever": BLOCK},
        {"reranked": {"recall_at_1": 0.25}},
        {"reranked": 0.25},
        {"fold_results": [{"test_metrics": {"ne_gate": {"auroc": 0.9}}}]},
        {"aggregated_metrics": {"ne_gate.auroc": {"mean": 0.9}}},
    ],
)
def test_a_file_of_other_keys_does_not_pass(summary: dict[str, Any]) -> None:
    found = verify(ROWS, summary)
    assert found.compared == 0
    assert found.failures[0].startswith("No number of the stored summary could be ")
    assert {c.verdict for c in found.figures} <= {"unknown key", "not computable"}


def test_an_unknown_key_is_listed_and_does_not_fail() -> None:
    found = verified(**{"gain@5": 3.0, "recall@0": 1.0, "recall@five": 1.0})
    unknown = [c.path for c in found.comparisons if c.verdict == "unknown key"]
    assert unknown == ["reranked.gain@5", "reranked.recall@0", "reranked.recall@five"]
    assert found.failures == ()
    assert found.summary.startswith("7 numbers compared, 7 equal, 3 unknown key; ")


def test_the_tolerance_is_what_is_asked_for() -> None:
    summary = {"reranked": {**BLOCK, "mrr@5": 0.7501}}
    assert verify(ROWS, summary).failures
    assert verify(ROWS, summary, tolerance=1e-3).failures == ()


def test_a_blank_gold_cell_is_no_gold_at_all() -> None:
    rows = [{**ROWS[2], "reranked_topk": ""}]
    summary = {"reranked": {"recall@5": None, "queries_with_positives": 0}}
    assert {c.verdict for c in verify(rows, summary).comparisons} == {"equal"}
