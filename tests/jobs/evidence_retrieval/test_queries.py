"""Each form is recognised, read, and refused with file, line, column and next step.

Files that a scoring writes can be imported, and say what they said.
"""

from __future__ import annotations

import gzip
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from jobs.evidence_retrieval.inputs import load
from jobs.evidence_retrieval.queries import (
    SCORED,
    UNJUDGED,
    UNKNOWN,
    UNSCORED,
    Predictions,
    ScoringInput,
)
from jobs.evidence_retrieval.score import score
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.testing import artifact_texts, table_rows
from runner.errors import DatasetError, UsageError
from tests.jobs.evidence_retrieval.given_files import (
    CLEAN,
    SAMPLE,
    changed,
    imported,
    ranked,
    read,
    write_csv,
    write_jsonl,
)

LISTS = (
    {
        "post_id": "p_1",
        "criterion_id": "A.10",
        "gold_ids": "",
        "retriever_topk": "p_1_1|p_1_0",
        "reranked_topk": "p_1_0|p_1_1",
    },
    {
        "post_id": "p_1",
        "criterion_id": "A.2",
        "gold_ids": "p_1_0|p_1_0|p_1_7",
        "retriever_topk": "p_1_1|p_1_0",
        "reranked_topk": "",
    },
)


def test_blank_gold_is_a_negative_and_no_gold_of_the_name_nothing(
    tmp_path: Path,
) -> None:
    sheet = imported(write_csv(tmp_path / "e.csv", LISTS))
    queries = sheet.queries
    assert queries.criteria == ("A.2", "A.10")
    assert queries.y.tolist() == [1, 0]
    assert queries.gold == [("p_1_0", "p_1_7"), ()]


def test_lists_keep_their_names_and_the_last_is_what_a_reader_sees(
    tmp_path: Path,
) -> None:
    rows = [{**row, "mine_topk": "p_1_1"} for row in LISTS]
    sheet = imported(write_csv(tmp_path / "e.csv", rows), model="lab/one")
    (said,) = sheet.predictions
    assert (said.model, said.config, said.final) == ("lab/one", "given", "mine")
    assert said.lists == {
        "retriever": [("p_1_1", "p_1_0"), ("p_1_1", "p_1_0")],
        "reranked": [(), ("p_1_0", "p_1_1")],
        "mine": [("p_1_1",), ("p_1_1",)],
    }
    assert said.prob is None
    assert list(said.status) == [SCORED, SCORED]


def test_predictions_become_columns_with_blank_as_not_known(tmp_path: Path) -> None:
    rows = [
        dict(row) for row in changed(1, p4_prob_calibrated="", has_evidence_gold="")
    ]
    rows[3]["p4_prob_calibrated"] = ""
    rows[0]["tau_pos"] = "inf"
    sheet = imported(write_csv(tmp_path / "l.csv", rows))
    (said,) = sheet.predictions
    assert list(said.status) == [SCORED, UNJUDGED, SCORED, UNSCORED]
    assert said.prob is not None
    assert said.tau_pos is not None
    assert said.k is not None
    np.testing.assert_equal(said.prob, [0.9, np.nan, 0.5, np.nan])
    assert said.tau_pos.tolist() == [math.inf, 0.8, 0.81, 0.81]
    assert said.k.tolist() == [2, 0, 3, 2]
    assert sheet.queries.y.tolist() == [1, UNKNOWN, 1, 0]
    assert sheet.queries.folds == ("0", "1")
    np.testing.assert_equal(said.stated_values["mrr"], [1.0, np.nan, 0.5, np.nan])


def test_raw_probability_is_used_and_said_where_there_is_no_calibrated_one(
    tmp_path: Path,
) -> None:
    columns = [name for name in CLEAN[0] if name != "p4_prob_calibrated"]
    sheet = imported(write_csv(tmp_path / "l.csv", CLEAN, columns))
    assert sheet.predictions[0].prob is not None
    assert sheet.predictions[0].prob.tolist() == [0.8, 0.1, 0.5, 0.2]
    assert [f.code for f in sheet.findings] == ["raw_probability"]


def test_another_column_can_be_the_probability(tmp_path: Path) -> None:
    rows = [{**row, "mine": 0.25} for row in CLEAN]
    path = write_csv(tmp_path / "l.csv", rows)
    (said,) = imported(path, prob="mine").predictions
    assert said.prob is not None
    assert set(said.prob.tolist()) == {0.25}
    (said,) = imported(path, prob="p4_prob_raw").predictions
    assert said.prob is not None
    assert said.prob[0] == 0.8
    with pytest.raises(DatasetError, match=r"no column yours among .*--prob"):
        imported(path, prob="yours")


def test_further_models_have_their_own_probabilities_and_may_miss_queries(
    tmp_path: Path,
) -> None:
    rows = [{**row, "prob_b": "" if i == 2 else 0.1 * i} for i, row in enumerate(CLEAN)]
    lists = write_jsonl(tmp_path / "b.jsonl", ranked(CLEAN[:2]))
    sheet = imported(write_csv(tmp_path / "l.csv", rows), rankings=(f"b={lists}",))
    assert sheet.models == ("imported", "b")
    first, second = sheet.predictions
    assert first.lists == {}
    assert list(second.status) == [SCORED, SCORED, UNSCORED, SCORED]
    assert second.lists["ranking"][2:] == [(), ()]
    assert second.state is None
    assert [(f.code, f.n) for f in sheet.findings] == [("no_list", 1)]


def test_ragged_rows_are_refused_unless_they_are_allowed_and_counted(
    realdata: Path,
) -> None:
    path = realdata / SAMPLE
    with pytest.raises(
        DatasetError, match=r"line 3: 15 fields where the header has 16 .*allow-ragged"
    ):
        read(path)
    assert imported(path, allow_ragged=True).sizes["ragged_rows"] == 8


@pytest.mark.parametrize(
    ("place", "cells", "message"),
    [
        (1, {"p4_prob_raw": 1.2}, r"l\.csv line 3: p4_prob_raw is '1\.2' \(a probab"),
        (1, {"p4_prob_raw": "nan"}, r"line 3: p4_prob_raw is 'nan' \(a number is"),
        (1, {"p4_prob_calibrated": "inf"}, r"line 3: p4_prob_calibrated is 'inf'"),
        (1, {"state": "NO"}, r"line 3: state is 'NO' \(one of NEG, UNCERTAIN, POS"),
        (1, {"has_evidence_gold": 2}, r"line 3: has_evidence_gold is '2' \(0 or 1"),
        (
            1,
            {"criterion_id": "A.1"},
            r"line 3: post p_1 and criterion A\.1 occur at l\.csv line 2 already \(",
        ),
        (1, {"fold_id": 1}, r"line 3: fold_id is 1, but post p_1 is in fold 0 already"),
        (1, {"tau_neg": 0.9}, r"line 3: tau_neg 0\.9 is above tau_pos 0\.8 \(were"),
        (1, {"selected_k": -1}, r"line 3: selected_k is -1 \(a whole number from 0"),
        (1, {"selected_k": 1.5}, r"line 3: selected_k is '1\.5' \(a whole number"),
        (1, {"criterion_id": "A/2"}, r"line 3: criterion_id 'A/2' contains '/'"),
        (
            0,
            {"gold_sent_uids": "p_1"},
            r"line 2: gold_sent_uids holds 'p_1', no sentence of p_1 by its id",
        ),
        (2, {"gold_sent_uids": "p_1_2"}, r"line 4: .* 'p_1_2', no sentence of p by"),
    ],
)
def test_row_that_is_off_is_refused_with_line_column_and_what_to_do(
    tmp_path: Path, place: int, cells: Mapping[str, object], message: str
) -> None:
    with pytest.raises(DatasetError, match=message):
        read(write_csv(tmp_path / "l.csv", changed(place, **cells)))


def test_sentence_p_1_belongs_to_post_p_and_p_1_0_to_post_p_1(tmp_path: Path) -> None:
    """The last underscore separates, whatever the posts are called."""
    sheet = imported(write_csv(tmp_path / "l.csv", CLEAN))
    assert sheet.queries.gold == [("p_1_0",), (), ("p_1", "p_3"), ()]


def test_sentence_file_says_whose_a_sentence_is_whatever_its_id(
    tmp_path: Path,
) -> None:
    sentences = write_jsonl(
        tmp_path / "s.jsonl",
        [
            {"post_id": "p_1", "sid": 0, "sent_uid": "x", "text": "One."},
            {"post_id": "p", "sid": 0, "sent_uid": "p_1", "text": "Two."},
            {"post_id": "p", "sid": 1, "sent_uid": "p_3", "text": "Three."},
        ],
    )
    rows = changed(0, gold_sent_uids="x")
    columns = [name for name in CLEAN[0] if name != "n_candidates"]
    sheet = imported(write_csv(tmp_path / "l.csv", rows, columns), sentences=sentences)
    assert sheet.queries.pool.tolist() == [1, 1, 2, 2]
    settings = EvidenceSettings(sentences=sentences)
    with pytest.raises(DatasetError, match=r"'p_1_0', no sentence of p_1 in --sent"):
        read(write_csv(tmp_path / "l.csv", CLEAN), settings=settings)


@pytest.mark.parametrize("cell", ["p_1_0|p_1_0", "p_1_0||p_1_1"])
def test_list_that_names_a_sentence_twice_or_none_is_refused(
    tmp_path: Path, cell: str
) -> None:
    rows = [{**LISTS[0], "retriever_topk": cell}]
    with pytest.raises(
        DatasetError, match=r"e\.csv line 2: retriever_topk (lists|hol)"
    ):
        read(write_csv(tmp_path / "e.csv", rows))


def test_equal_scores_keep_the_order_that_was_given(tmp_path: Path) -> None:
    rows = [
        {**row, "sent_uids": ["p_2", "p_0", "p_1"], "scores": [0.5, 0.5, 0.5]}
        for row in ranked(CLEAN[2:3])
    ]
    sheet = imported(write_jsonl(tmp_path / "r.jsonl", rows))
    (said,) = sheet.predictions
    assert said.lists == {"ranking": [("p_2", "p_0", "p_1")]}
    assert said.score is not None
    assert said.score.tolist() == [0.5]
    assert sheet.findings == ()
    assert sheet.queries.y.tolist() == [UNKNOWN]


def test_scores_that_rise_are_told_and_those_that_miss_are_refused(
    tmp_path: Path,
) -> None:
    rows = [{**row, "scores": [1, 2, 3, 4]} for row in ranked(CLEAN)]
    sheet = imported(write_jsonl(tmp_path / "r.jsonl", rows))
    assert [(f.code, f.n) for f in sheet.findings] == [("scores_contradict_order", 4)]
    rows = [{**row, "scores": [1]} for row in ranked(CLEAN)]
    with pytest.raises(DatasetError, match=r"line 1: 1 scores for 4 sent_uids"):
        read(write_jsonl(tmp_path / "r.jsonl", rows))


def test_trec_files_name_post_and_criterion_in_their_query_ids(tmp_path: Path) -> None:
    qrels, run = tmp_path / "qrels.txt", tmp_path / "run.txt"
    qrels.write_text("p|A.1 0 p_1 1\np|A.1 0 p_2 0\n", "utf-8")
    run.write_text(
        "p|A.1 Q0 p_0 1 2 t\np|A.1 Q0 p_1 2 1 t\n"
        "p|A.2 Q0 p_1 1 1 t\nq|A.1 Q0 q_1 1 1 t\n"
    )
    sheet = imported(qrels=qrels, run=run)
    assert sheet.queries.posts == ("p", "q")
    assert sheet.queries.y.tolist() == [1, 0, UNKNOWN]
    assert sheet.predictions[0].lists["ranking"][0] == ("p_0", "p_1")
    assert imported(run, qrels).predictions == sheet.predictions
    with pytest.raises(DatasetError, match=r"query p\|A\.1: .* with '#' .*--qid-sep"):
        imported(qrels=qrels, run=run, qid_sep="#")


def test_percent_encoded_ids_of_trec_files_are_read_back(tmp_path: Path) -> None:
    run = tmp_path / "run.txt"
    run.write_text("p%20q|A.1 Q0 p%20q_0 1 1 t\n")
    sheet = imported(run, escape_ids=True)
    assert sheet.queries.posts == ("p q",)
    assert sheet.predictions[0].lists["ranking"] == [("p q_0",)]


def test_run_whose_ranks_contradict_its_scores_is_told(tmp_path: Path) -> None:
    run = tmp_path / "run.txt"
    run.write_text("p|A.1 Q0 p_0 1 1 t\np|A.1 Q0 p_1 2 2 t\n")
    sheet = imported(run)
    (finding,) = sheet.findings
    assert (finding.code, finding.example) == ("ranks_contradict_scores", "p|A.1")
    assert sheet.predictions[0].lists["ranking"] == [("p_1", "p_0")]


def test_run_that_is_no_run_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "run.txt"
    path.write_text("p|A.1 Q0 p_0 1 2\n")
    with pytest.raises(DatasetError, match=r"run\.txt, line 1: 5 fields"):
        imported(run=path)
    with pytest.raises(DatasetError, match="No such file or directory"):
        imported(run=tmp_path / "none.txt")


def test_packed_files_are_read_too(tmp_path: Path) -> None:
    plain = write_csv(tmp_path / "l.csv", CLEAN)
    packed = tmp_path / "l.csv.gz"
    packed.write_bytes(gzip.compress(plain.read_bytes()))
    assert read(packed) == read(plain)


def test_file_of_no_form_is_refused_with_all_forms(tmp_path: Path) -> None:
    path = write_csv(tmp_path / "x.csv", [{"post_id": "p", "text": "a"}])
    with pytest.raises(DatasetError, match=r"fits no known format .*predictions: CSV"):
        read(path)
    with pytest.raises(DatasetError, match="column 'criterion_id' is missing"):
        read(path, form="lists")


def test_nothing_to_import_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--per-query"):
        read()
    with pytest.raises(UsageError, match="no replicates"):
        read(tmp_path / "x.csv", replicates={tmp_path / "x.csv": 2})


def test_predictions_need_a_probability(tmp_path: Path) -> None:
    columns = [name for name in CLEAN[0] if not name.startswith("p4_")]
    with pytest.raises(DatasetError, match=r"line 1: no probability among .*--prob"):
        read(write_csv(tmp_path / "l.csv", CLEAN, columns))


def test_columns_that_are_not_used_are_told(tmp_path: Path) -> None:
    rows = [{**row, "colour": "red", "n_gold": 1} for row in CLEAN]
    (finding,) = imported(write_csv(tmp_path / "l.csv", rows)).findings
    assert (finding.code, finding.example) == ("unknown_column", "colour")


def test_columns_called_otherwise_are_mapped(tmp_path: Path) -> None:
    """With semicolons, beside a trec file that has no columns at all."""
    names = {"post_id": "Post", "criterion_id": "Symptom", "p4_prob_raw": "risk"}
    path = tmp_path / "l.csv"
    write_csv(path, CLEAN)
    header, newline, rest = path.read_text("utf-8").partition("\n")
    renamed = ",".join(names.get(name, name) for name in header.strip().split(","))
    path.write_text(renamed + newline + rest, "utf-8")
    path.write_text(path.read_text("utf-8").replace(",", ";"), "utf-8")
    run = tmp_path / "run.txt"
    run.write_text('p_1|A.1 Q0 p_1_0 1 2.5 "tag\n', "utf-8")
    complaint = r"found: .*; Post may be post_id; rankings:"
    with pytest.raises(DatasetError, match=complaint):
        imported(path, run)
    pairs = tuple(f"{old}={new}" for new, old in names.items())
    (mapped,) = imported(path, run, map=pairs).predictions
    plain = write_csv(tmp_path / "plain.csv", CLEAN)
    (usual,) = imported(plain, run).predictions
    assert mapped.prob is not None
    assert usual.prob is not None
    assert mapped.prob.tolist() == usual.prob.tolist()
    assert mapped.lists == usual.lists
    with pytest.raises(UsageError, match=r"no file has a column Pots .*nearest: Post"):
        imported(path, run, map=("Pots=post_id",))


@pytest.fixture
def first(tmp_path: Path) -> ScoringInput:
    """Clean predictions with an unjudged and an unscored query."""
    rows = [dict(row) for row in CLEAN]
    rows[1] |= {"has_evidence_gold": "", "gold_sent_uids": ""}
    rows[3] |= {"p4_prob_calibrated": ""}
    lists = write_jsonl(tmp_path / "r.jsonl", ranked(CLEAN))
    return imported(write_csv(tmp_path / "l.csv", rows), lists)


@pytest.fixture
def files(tmp_path: Path, first: ScoringInput) -> dict[str, Path]:
    """What its scoring writes."""
    card = score(load(EvidenceSettings(boot_b=0)), first)
    folder = tmp_path / "scores"
    folder.mkdir()
    paths = {name: folder / name for name in ("qrels.txt", "rankings.jsonl")}
    paths["run.txt"] = folder / "run.txt"
    texts = artifact_texts(card)
    for name, path in paths.items():
        path.write_text(texts["run.ranking.txt" if name == "run.txt" else name])
    for name in ("per_query", "per_query_lists"):
        rows = [
            {k: "" if cell is None else cell for k, cell in row.items()}
            for row in table_rows(card, name)
        ]
        paths[name] = write_csv(folder / f"{name}.csv", rows)
    return paths


def same_lists(one: Predictions, other: Predictions) -> bool:
    def columns(of: Predictions) -> list[list[Sequence[str]]]:
        return [list(column) for column in of.lists.values()]

    return columns(one) == columns(other)


def test_predictions_and_rankings_come_back(
    first: ScoringInput, files: dict[str, Path]
) -> None:
    again = imported(files["per_query"], files["rankings.jsonl"])
    (one,), (other,) = first.predictions, again.predictions
    for name in ("prob", "prob_raw", "tau_neg", "tau_pos", "k", "state"):
        np.testing.assert_array_equal(getattr(other, name), getattr(one, name))
    assert list(other.status) == list(one.status)
    assert same_lists(one, other)
    np.testing.assert_array_equal(again.queries.y, first.queries.y)
    assert again.queries.gold == first.queries.gold
    assert again.findings == ()


def test_lists_come_back_in_both_forms(
    first: ScoringInput, files: dict[str, Path]
) -> None:
    (one,) = first.predictions
    for again in (
        imported(files["per_query_lists"]),
        imported(files["run.txt"], files["qrels.txt"], escape_ids=True),
    ):
        assert same_lists(one, again.predictions[0])
        assert again.queries.gold == first.queries.gold
