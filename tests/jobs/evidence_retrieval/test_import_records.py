"""The full-size set, written as predictions and rankings, comes back as it was made.

What an imported task carries: written, read back, united. An import by the command:
recorded in a log, replayed, scored again.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.evidence_retrieval.data import EvidenceDataset
from jobs.evidence_retrieval.import_records import (
    ImportedPrediction,
    QueryTruth,
    decode_truth,
    encode,
    merge_answers,
    read_prediction,
)
from jobs.evidence_retrieval.queries import ScoringInput
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.metrics.classification import auroc
from jobs.kit.metrics.ranking import evaluate, hits
from jobs.kit.metrics.selective import assign, gate_metrics
from runner.job import Task
from runner.messages import ParseFailure, Reply
from runner.scorecard import Finding
from tests.commands import siftlog
from tests.jobs.evidence_retrieval.given_files import (
    CLEAN,
    SAMPLE,
    codes,
    found,
    imported,
    ranked,
    set_a_rankings,
    set_a_rows,
    write_csv,
    write_jsonl,
)
from tests.jobs.kit.metrics.set_a import set_a


@pytest.fixture(scope="module")
def sheet(tmp_path_factory: pytest.TempPathFactory) -> ScoringInput:
    folder, a = tmp_path_factory.mktemp("full"), set_a()
    rows = write_csv(folder / "per_query.csv", set_a_rows(a))
    lists = write_jsonl(folder / "rankings.jsonl", set_a_rankings(a))
    return imported(per_query=rows, rankings=(str(lists),), model="first")


def test_columns_are_the_set(sheet: ScoringInput) -> None:
    a, queries = set_a(), sheet.queries
    first, second = sheet.predictions
    assert (first.model, second.model) == ("first", "second")
    assert first.prob is not None
    assert second.prob is not None
    np.testing.assert_array_equal(first.prob, a.p)
    np.testing.assert_array_equal(second.prob, a.p2)
    np.testing.assert_array_equal(queries.y == 1, a.y)
    np.testing.assert_array_equal(queries.fold, a.fold)
    np.testing.assert_array_equal(queries.pool, a.pool)
    assert len(queries.posts) == 1477
    assert queries.criteria == tuple(f"A.{c}" for c in range(1, 11))
    assert [queries.posts[i] for i in queries.post] == a.post


def test_metrics_of_the_columns_are_the_check_numbers(sheet: ScoringInput) -> None:
    first, second = sheet.predictions
    queries, truth = sheet.queries, sheet.queries.y == 1
    assert first.prob is not None
    assert second.prob is not None
    assert first.tau_neg is not None
    assert first.tau_pos is not None
    assert queries.gold is not None
    assert auroc(truth, first.prob) == pytest.approx(0.8109338369709094, abs=1e-12)
    assert auroc(truth, second.prob) == pytest.approx(0.7247741263776732, abs=1e-12)
    states = assign(first.prob, first.tau_neg, first.tau_pos)
    gate = gate_metrics(truth, states)
    assert gate.counts == {"NEG": 1350, "UNCERTAIN": 12431, "POS": 989}
    at = np.flatnonzero(truth)
    measured = evaluate(
        hits([queries.gold[i] for i in at], [first.lists["ranking"][i] for i in at]),
        (10,),
    )
    mean = float(np.mean(measured["ndcg@10"]))
    assert mean == pytest.approx(0.3985402149582905, abs=1e-12)


def test_nothing_contradicts_itself_in_it(sheet: ScoringInput) -> None:
    assert codes([*sheet.findings, *found(sheet)]) == {}


uids = st.lists(st.text(max_size=5), max_size=4).map(tuple)
shares = st.floats(0, 1)
names = st.text(max_size=5)
optional_shares = st.none() | shares

truths = st.builds(
    QueryTruth,
    gold=st.none() | uids,
    y=st.sampled_from([None, 0, 1]),
    fold=st.none() | st.sampled_from(["", "0", "NA", "007"]),
    pool=st.none() | st.integers(0, 300),
)
predictions = st.builds(
    ImportedPrediction,
    lists=st.dictionaries(names, uids, max_size=2),
    probs=st.dictionaries(names, shares, max_size=2),
    score=st.none() | st.floats(allow_nan=False, allow_infinity=False),
    state=st.sampled_from([None, "NEG", "UNCERTAIN", "POS"]),
    tau_neg=optional_shares,
    tau_pos=optional_shares | st.just(math.inf),
    k=st.none() | st.integers(0, 300),
    stated=st.dictionaries(names, shares, max_size=2),
)

TASK = Task(number=1, stage="given", key="p/A.1", model="m", replicate=1)
DATASET = EvidenceDataset(settings=EvidenceSettings())


@given(truths)
def test_truth_is_read_as_it_was_written(truth: QueryTruth) -> None:
    assert decode_truth(encode(truth)) == truth


@given(predictions)
def test_prediction_is_read_as_it_was_written(said: ImportedPrediction) -> None:
    assert read_prediction(DATASET, TASK, Reply(text=encode(said))) == said


def test_threshold_that_nobody_reaches_is_written_inf_and_read_back() -> None:
    text = encode(ImportedPrediction(tau_neg=0.0, tau_pos=math.inf))
    assert text == '{"tau_neg":0.0,"tau_pos":"inf"}'
    read = read_prediction(DATASET, TASK, Reply(text=text))
    assert isinstance(read, ImportedPrediction)
    assert read.tau_pos == math.inf


def test_what_is_noticed_of_the_files_travels_with_a_query() -> None:
    finding = Finding(code="c", severity="warn", where="f", message="m", n=3)
    assert decode_truth(encode(QueryTruth(noticed=(finding,)))).noticed == (finding,)


@pytest.mark.parametrize("text", ["", "null", "[1]", '{"probs": 1}', "{"])
def test_any_other_reply_is_a_failure_and_no_error(text: str) -> None:
    read = read_prediction(DATASET, TASK, Reply(text=text))
    assert read == ParseFailure(reason="no_prediction")


@given(predictions, predictions)
def test_united_says_all_that_one_of_two_says_and_the_first_counts(
    one: ImportedPrediction, other: ImportedPrediction
) -> None:
    both = merge_answers(one, other)
    assert both.k == (other.k if one.k is None else one.k)
    assert both.lists == {**other.lists, **one.lists}
    assert (
        merge_answers(one, ImportedPrediction())
        == merge_answers(ImportedPrediction(), one)
        == one
    )


def test_gold_that_is_known_to_be_empty_is_not_filled_in() -> None:
    assert merge_answers(QueryTruth(gold=()), QueryTruth(gold=("p_1",))).gold == ()


def scored(run: str, *words: str, cwd: Path) -> dict[str, Any]:
    said: dict[str, Any] = json.loads(
        siftlog("score", run, *words, "--json", cwd=cwd).stdout
    )
    return said


def test_command_imports_by_flags_and_by_place_alike(tmp_path: Path) -> None:
    rows = write_csv(tmp_path / "l.csv", CLEAN)
    lists = write_jsonl(tmp_path / "r.jsonl", ranked(CLEAN))
    flags = ("--per-query", rows, "--rankings", lists, "--rankings", f"b={lists}")
    siftlog("import", "evidence-retrieval", *flags, "--run-id=flags", cwd=tmp_path)
    siftlog("import", "evidence-retrieval", rows, lists, "--run-id=place", cwd=tmp_path)
    by_flags = scored("flags", cwd=tmp_path)["models"]
    by_place = scored("place", cwd=tmp_path)["models"]
    assert list(by_flags) == ["imported", "b"]
    assert list(by_place) == ["imported"]
    assert by_flags["imported"] == by_place["imported"]
    assert by_flags["b"]["metrics"]["recall@1"]["value"] == 0.5


def test_run_is_scored_again_without_the_files_it_came_from(tmp_path: Path) -> None:
    rows = write_csv(tmp_path / "l.csv", CLEAN)
    words = ("import", "evidence-retrieval", "--per-query", rows, "--run-id=r")
    siftlog(*words, cwd=tmp_path)
    first = scored("r", cwd=tmp_path)
    rows.unlink()
    again = scored("r", "--prob=p4_prob_raw", cwd=tmp_path)
    brier = [
        said["models"]["imported"]["metrics"]["brier"]["value"]
        for said in (first, again)
    ]
    assert brier == pytest.approx([0.075625, 0.085])
    failed = siftlog("score", "r", "--prob=none", cwd=tmp_path, check=False)
    assert failed.returncode == 1
    assert "no probability column none (it has: p4_prob_calibrated" in failed.stderr


def test_file_that_is_off_leaves_no_run(tmp_path: Path) -> None:
    rows = write_csv(tmp_path / "l.csv", [*CLEAN, CLEAN[0]])
    words = ("import", "evidence-retrieval", "--per-query", rows)
    failed = siftlog(*words, cwd=tmp_path, check=False)
    assert failed.returncode == 1
    assert "l.csv line 6: post p_1 and criterion A.1 occur at" in failed.stderr
    assert not (tmp_path / "runs").exists()


def test_import_of_nothing_says_what_to_name(tmp_path: Path) -> None:
    failed = siftlog("import", "evidence-retrieval", cwd=tmp_path, check=False)
    assert failed.returncode == 2
    assert "--per-query" in failed.stderr


@pytest.mark.realdata
def test_published_sample_is_refused_unless_ragged_rows_are_allowed(
    tmp_path: Path, realdata: Path
) -> None:
    sample = realdata / SAMPLE
    words = ("import", "evidence-retrieval", "--per-query", sample)
    failed = siftlog(*words, cwd=tmp_path, check=False)
    assert failed.returncode == 1
    assert "line 3: 15 fields where the header has 16" in failed.stderr
    words = ("import", "evidence-retrieval", "--run-id=r", "--allow-ragged", sample)
    siftlog(*words, cwd=tmp_path)
    card = tmp_path / "runs" / "r" / "scores" / "1" / "scorecard.json"
    codes = [finding["code"] for finding in json.loads(card.read_text())["findings"]]
    assert len(codes) == 8
    assert codes[0] == "ragged_rows"
    strict = siftlog("score", "r", "--strict", cwd=tmp_path, check=False)
    assert strict.returncode == 6
