"""What an imported task carries: written, read back, united."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.evidence_retrieval.data import EvidenceDataset
from jobs.evidence_retrieval.import_records import (
    ImportedPrediction,
    QueryTruth,
    decode_prediction,
    decode_truth,
    encode,
    merge_answers,
    read_prediction,
)
from jobs.evidence_retrieval.settings import EvidenceSettings
from runner.job import Task
from runner.messages import ParseFailure, Reply
from runner.scorecard import Finding

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
    assert decode_prediction(text).tau_pos == math.inf


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
