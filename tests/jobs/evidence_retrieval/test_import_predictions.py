"""Several files about one run: put together by query, in whatever order they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from jobs.evidence_retrieval.import_predictions import imported_scoring_input
from jobs.evidence_retrieval.inputs import load
from jobs.evidence_retrieval.score import score
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.testing import MemoryAnswers
from runner.errors import DatasetError
from tests.jobs.evidence_retrieval.given_files import (
    CLEAN,
    Rows,
    imported,
    ranked,
    read,
    write_csv,
    write_jsonl,
)

KEYS = ("post_id", "criterion_id", "has_evidence_gold")


def e_rows(**gold: str) -> Rows:
    """The same queries in format E."""
    return [
        {
            "post_id": row["post_id"],
            "criterion_id": row["criterion_id"],
            "gold_ids": gold.get(str(i), row["gold_sent_uids"]),
            "reranked_topk": f"{row['post_id']}_1|{row['post_id']}_0",
        }
        for i, row in enumerate(CLEAN)
    ]


def test_files_beside_the_first_may_stand_in_any_order(tmp_path: Path) -> None:
    rows = write_csv(tmp_path / "l.csv", CLEAN)
    forth = write_jsonl(tmp_path / "f.jsonl", ranked(CLEAN))
    back = write_jsonl(tmp_path / "b.jsonl", ranked(CLEAN)[::-1])
    assert read(rows, forth) == read(rows, back) == read(back, rows)


def test_predictions_and_lists_of_one_model_meet(tmp_path: Path) -> None:
    files = (
        write_csv(tmp_path / "e.csv", e_rows()),
        write_csv(tmp_path / "l.csv", CLEAN),
        write_jsonl(tmp_path / "r.jsonl", ranked(CLEAN)),
    )
    sheet = imported(*files)
    (said,) = sheet.predictions
    assert list(said.lists) == ["reranked", "ranking"]
    assert said.prob is not None
    assert sheet.findings == ()
    assert len(sheet.queries) == 4


def test_query_of_a_later_file_only_is_kept_as_unjudged(tmp_path: Path) -> None:
    files = (
        write_csv(tmp_path / "l.csv", CLEAN[:3]),
        write_jsonl(tmp_path / "r.jsonl", ranked(CLEAN)),
    )
    sheet = imported(*files)
    assert list(sheet.predictions[0].status) == ["scored"] * 3 + ["unjudged"]
    assert "criteria_differ" not in {f.code for f in sheet.findings}


def test_criteria_that_change_between_files_are_told(tmp_path: Path) -> None:
    other = [{**row, "criterion_id": f"B{row['criterion_id']}"} for row in CLEAN]
    files = (
        write_csv(tmp_path / "l.csv", CLEAN),
        write_jsonl(tmp_path / "r.jsonl", ranked(other)),
    )
    told = [f for f in imported(*files).findings if f.code == "criteria_differ"]
    assert [(f.where, f.n, f.example) for f in told] == [("r.jsonl", 4, "A.1")]


def test_criteria_that_are_not_those_of_the_criteria_file_are_told(
    tmp_path: Path,
) -> None:
    criteria = write_csv(tmp_path / "c.csv", [{"criterion_id": "A.2", "text": "Two."}])
    rows = write_csv(tmp_path / "l.csv", CLEAN)
    sheet = imported(rows, criteria=criteria)
    assert sheet.queries.criteria == ("A.2", "A.1")
    assert [(f.code, f.example) for f in sheet.findings] == [("criteria_differ", "A.1")]


def test_gold_that_differs_between_files_is_told_and_the_first_counts(
    tmp_path: Path,
) -> None:
    files = (
        write_csv(tmp_path / "l.csv", CLEAN),
        write_csv(tmp_path / "e.csv", e_rows(**{"0": "p_1_3"})),
    )
    sheet = imported(*files)
    assert [(f.code, f.where, f.n) for f in sheet.findings] == [
        ("files_disagree", "gold", 1)
    ]
    assert sheet.queries.gold is not None
    assert sheet.queries.gold[0] == ("p_1_0",)


def test_two_files_of_one_model_must_not_say_the_same_thing(tmp_path: Path) -> None:
    rows = write_csv(tmp_path / "l.csv", CLEAN)
    lists = [write_jsonl(tmp_path / f"{n}.jsonl", ranked(CLEAN)) for n in "ab"]
    with pytest.raises(
        DatasetError,
        match=r"b\.jsonl line 1: the list ranking of imported .* at a\.jsonl line 1",
    ):
        read(rows, *lists)
    other = write_csv(tmp_path / "m.csv", CLEAN)
    with pytest.raises(
        DatasetError,
        match=r"m\.csv line 2: p4_prob_raw of imported for .* at l\.csv line 2",
    ):
        read(rows, other)


@pytest.mark.parametrize("model", ["bge", None])
def test_probabilities_and_rankings_of_one_named_model_are_one_answer(
    tmp_path: Path, model: str | None
) -> None:
    """The name of the main model is known before files are joined."""
    rows = write_csv(tmp_path / "l.csv", CLEAN)
    lists = write_jsonl(tmp_path / "r.jsonl", ranked(CLEAN))
    values = {"per_query": rows, "rankings": (f"{model or 'imported'}={lists}",)}
    answers = read(settings=EvidenceSettings.model_validate(values), model=model)
    keys = [(answer.model, answer.spec.key) for answer in answers]
    assert len(keys) == len(set(keys)) == len(CLEAN)
    (said,) = imported(model=model, **values).predictions
    assert said.prob is not None
    assert said.prob.tolist() == [0.9, 0.05, 0.5, 0.2]
    assert said.k is not None
    assert list(said.lists) == ["ranking"]


def test_a_second_state_of_one_model_is_refused_with_both_rows(tmp_path: Path) -> None:
    first = write_csv(tmp_path / "a.csv", CLEAN, (*KEYS, "p4_prob_raw", "state"))
    second = write_csv(tmp_path / "b.csv", CLEAN, (*KEYS, "prob_x", "state"))
    complaint = r"b\.csv line 2: state of imported for .* at a\.csv line 2 already"
    with pytest.raises(DatasetError, match=complaint):
        read(first, second)


def test_a_further_probability_of_the_main_model_keeps_its_other_cells(
    tmp_path: Path,
) -> None:
    rows = [{**row, "prob_bge": 0.3} for row in CLEAN]
    (said,) = imported(write_csv(tmp_path / "l.csv", rows), model="bge").predictions
    assert said.state is not None
    assert said.prob is not None
    assert said.prob[0] == 0.9


def test_two_answers_that_an_earlier_import_wrote_are_read_as_one(
    tmp_path: Path,
) -> None:
    rows = read(write_csv(tmp_path / "l.csv", CLEAN))
    lists = read(write_jsonl(tmp_path / "r.jsonl", ranked(CLEAN)))
    stored = MemoryAnswers.of_import([*rows, *lists])
    sheet = imported_scoring_input(load(EvidenceSettings()), stored)
    assert sheet.predictions[0].prob is not None
    assert [(f.code, f.n) for f in sheet.findings] == [("answers_joined", 4)]


def test_lists_of_named_models_stand_beside_each_other(tmp_path: Path) -> None:
    rows = write_csv(tmp_path / "l.csv", CLEAN)
    lists = write_jsonl(tmp_path / "r.jsonl", ranked(CLEAN))
    named = (str(lists), f"b={lists}", f"c={lists}")
    sheet = imported(per_query=rows, rankings=named, model="lab/one")
    assert sheet.models == ("lab/one", "b", "c")
    assert [said.final for said in sheet.predictions] == ["ranking"] * 3


def test_file_whose_name_holds_an_equals_sign_is_a_file(tmp_path: Path) -> None:
    path = write_jsonl(tmp_path / "k=10.jsonl", ranked(CLEAN))
    assert imported(rankings=(str(path),)).models == ("imported",)


def test_gold_folds_and_pools_may_come_from_the_inputs_of_the_run(
    tmp_path: Path,
) -> None:
    gold = write_csv(
        tmp_path / "gold.csv",
        [
            {
                "post_id": "p",
                "criterion": "A.2",
                "sid": 3,
                "sent_uid": "p_3",
                "groundtruth": 1,
            },
            {
                "post_id": "p",
                "criterion": "A.1",
                "sid": 2,
                "sent_uid": "p_2",
                "groundtruth": 0,
            },
        ],
    )
    sentences = write_jsonl(
        tmp_path / "s.jsonl",
        [
            {"post_id": post, "sid": n, "sent_uid": f"{post}_{n}", "text": "One."}
            for post in ("p_1", "p")
            for n in range(4)
        ],
    )
    folds = write_csv(
        tmp_path / "folds.csv",
        [{"post_id": "p", "fold_id": "b"}, {"post_id": "p_1", "fold_id": "a"}],
    )
    sheet = imported(
        write_jsonl(tmp_path / "r.jsonl", ranked(CLEAN)),
        gold=gold,
        sentences=sentences,
        folds=folds,
    )
    queries = sheet.queries
    assert queries.y.tolist() == [-1, -1, 0, 1]
    assert queries.gold == [(), (), (), ("p_3",)]
    assert queries.pool.tolist() == [4, 4, 4, 4]
    assert [queries.folds[i] for i in queries.fold] == ["a", "a", "b", "b"]


def test_file_without_a_row_is_refused(tmp_path: Path) -> None:
    empty = write_csv(tmp_path / "l.csv", [], list(CLEAN[0]))
    with pytest.raises(DatasetError, match=r"l\.csv: it has no rows"):
        read(empty)


def test_a_rate_of_nothing_that_a_setting_makes_zero_is_no_error(
    tmp_path: Path,
) -> None:
    """A fold without positives: its own counts give no sensitivity."""
    none = {"has_evidence_gold": 0, "gold_sent_uids": ""}
    rows = [{**row, **(none if row["fold_id"] else {})} for row in CLEAN]
    path = write_csv(tmp_path / "l.csv", rows)
    for value in (None, 0.0):
        settings = EvidenceSettings(boot_b=0, k_values=(1, 3), zero_division=value)
        dataset = load(settings)
        answers = MemoryAnswers.of_import(read(path, settings=settings))
        card = score(dataset, imported_scoring_input(dataset, answers))
        (metrics,) = card.models.values()
        found = {own.path: own.value for own in metrics}
        assert found["fold.1.at_tau.sensitivity"] == value
        assert "refuted_by_counts" not in {own.code for own in card.findings}
