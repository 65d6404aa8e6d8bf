"""Flat replies: one a line, in any order, gathered by paper."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from jobs.paper_investigation.settings import InvestigationSettings
from runner.errors import DatasetError, UsageError
from tests.jobs.paper_investigation.imports import CHOICE, metrics, read, scored, write


@pytest.fixture
def inputs(tmp_path: Path) -> InvestigationSettings:
    bench = write(
        tmp_path / "bench.jsonl",
        {"pmcid": "PMC1", "variants": ["rs1", "rs2"]},
        {"pmcid": "PMC2", "variants": ["rs1"]},
    )
    unanswered = {k: v for k, v in CHOICE.items() if k not in {"response", "model"}}
    questions = write(
        tmp_path / "drug.jsonl",
        {**unanswered, "variant": "rs1"},
        {**unanswered, "variant": "rs2", "question_id": 8},
    )
    return InvestigationSettings(bench=bench, mcq_drug=questions)


def flat(tmp_path: Path, *rows: Mapping[str, Any]) -> Path:
    return write(tmp_path / "r.jsonl", *({"model": "lab/one", **row} for row in rows))


EXTRACT = {"kind": "extract", "pmcid": "PMC1", "response": '["rs1"]'}


ASKED = {"kind": "question", "source_pipeline": "mcq_drug", "response": "b"}


def test_flat_replies_are_gathered_by_paper_whatever_their_order(
    tmp_path: Path, inputs: InvestigationSettings
) -> None:
    path = flat(
        tmp_path,
        {**ASKED, "question_id": 7},
        {**EXTRACT, "pmcid": "PMC2"},
        EXTRACT,
    )
    answers = read(path, settings=inputs)
    assert [(a.spec.key, a.descends) for a in answers] == [
        ("PMC1", False),
        ("PMC1/mcq_drug:7", True),
        ("PMC2", False),
    ]
    card = scored(path, settings=inputs)
    assert metrics(card)["pipeline.mcq_drug.correct"].value == 1
    assert metrics(card)["avg_variant_recall"].value == 0.75


def test_flat_reply_nobody_asked_for_is_kept_and_counted_unused(
    tmp_path: Path, inputs: InvestigationSettings
) -> None:
    rows = [EXTRACT, {**ASKED, "question_id": 7}, {**ASKED, "question_id": 8}]
    card = scored(flat(tmp_path, *rows), settings=inputs)
    (found,) = (f for f in card.findings if f.code == "unused")
    assert found.n == 1
    assert card.stale == 1


def test_flat_replies_may_be_cut_or_have_failed(
    tmp_path: Path, inputs: InvestigationSettings
) -> None:
    rows = [
        {**EXTRACT, "response": '["rs1", "rs2"]'},
        {**ASKED, "question_id": 7, "response": "", "finish_reason": "length"},
        {**ASKED, "question_id": 8, "response": None, "error": "Timeout"},
    ]
    card = scored(flat(tmp_path, *rows), settings=inputs)
    found = metrics(card)
    assert found["replies.cut"].value == 1
    assert found["replies.question.unparsed.truncated"].value == 1
    assert found["pipeline.mcq_drug.missing.Timeout"].value == 1


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([EXTRACT, {**ASKED, "question_id": 9}], r"question mcq_drug:9 is unknown"),
        ([{**EXTRACT, "pmcid": "PMC9"}], r"PMC9 is not in the bench"),
        ([EXTRACT, EXTRACT], r"line 2: lab/one answers about PMC1 on line 1 already"),
        ([{**ASKED, "question_id": 7}], r"has no extract line for PMC1"),
        ([{**EXTRACT, "kind": "guess"}], r"kind is 'guess' \(one of extract, question"),
        (
            [EXTRACT, {**ASKED, "question_id": 7}, {**ASKED, "question_id": 7}],
            r"answers PMC1/mcq_drug:7 already",
        ),
    ],
)
def test_faults_of_flat_replies(
    tmp_path: Path,
    inputs: InvestigationSettings,
    rows: list[dict[str, Any]],
    message: str,
) -> None:
    with pytest.raises(DatasetError, match=message):
        read(flat(tmp_path, *rows), settings=inputs)


def test_flat_replies_need_the_bench_they_answer(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--bench"):
        read(flat(tmp_path, EXTRACT))


def test_flat_answers_to_questions_alone_need_no_bench(
    tmp_path: Path, inputs: InvestigationSettings
) -> None:
    alone = inputs.model_copy(update={"mode": "questions", "bench": None})
    path = flat(tmp_path, {**ASKED, "question_id": 7})
    answer, other = read(path, settings=alone)
    assert not answer.descends
    assert (other.spec.key, other.spec.skip) == ("PMC1/mcq_drug:8", "not_in_file")
    card = scored(path, settings=alone)
    assert metrics(card)["pipeline.TOTAL.accuracy"].value == 1.0


def test_papers_of_the_bench_that_a_file_lacks_stay_in_the_counts(
    tmp_path: Path, inputs: InvestigationSettings
) -> None:
    path = flat(tmp_path, {**EXTRACT, "pmcid": "PMC2", "response": '["rs1"]'})
    answers = read(path, settings=inputs)
    assert [(own.spec.key, own.spec.skip) for own in answers] == [
        ("PMC2", None),
        ("PMC1", "not_in_file"),
    ]
    assert answers[1].notes == (
        "lab/one: the files lack 1 paper of 2 (PMC1); counted as skipped, not_in_file.",
    )
    card = scored(path, settings=inputs)
    found = metrics(card)
    assert found["papers_scored"].value == 1
    assert found["papers_skipped"].value == 1
    assert found["papers_skipped.not_in_file"].value == 1
    assert found["avg_variant_recall"].value == 1.0
    assert "not in file 1" in card.summary


def test_papers_that_a_file_of_records_lacks_bring_the_truth_of_the_bench(
    tmp_path: Path, inputs: InvestigationSettings
) -> None:
    record = {
        "pmcid": "PMC2",
        "model": "lab/one",
        "ground_truth_variants": ["rs1"],
        "predicted_variants": ["rs1"],
        "variant_results": {},
    }
    path = write(tmp_path / "r.jsonl", record)
    assert len(read(path)) == 1
    found = metrics(scored(path, settings=inputs))
    assert found["papers_skipped.not_in_file"].value == 1
    variants = {"pmcid": "PMC2", "model": "m", "ground_truth": ["rs1"]}
    path = write(tmp_path / "v.jsonl", {**variants, "predicted": ["rs1"]})
    found = metrics(scored(path, settings=inputs))
    assert found["papers_skipped.not_in_file"].value == 1


def test_the_advice_to_import_questions_alone_works(
    tmp_path: Path, inputs: InvestigationSettings
) -> None:
    """A file may hold extractions of some papers and questions of all."""
    rows = [{**EXTRACT, "pmcid": "PMC2"}, {**ASKED, "question_id": 7}]
    path = flat(tmp_path, *rows)
    with pytest.raises(DatasetError, match="import with --set mode=questions"):
        read(path, settings=inputs)
    answers = read(path, settings=inputs.model_copy(update={"mode": "questions"}))
    assert [own.spec.key for own in answers if own.text is not None] == [
        "PMC1/mcq_drug:7"
    ]
    assert "1 extract line not used" in answers[0].notes[0]


def test_replies_may_stand_in_a_list_that_is_spread_over_lines(
    tmp_path: Path, inputs: InvestigationSettings
) -> None:
    rows = [{**EXTRACT, "model": "é"}, {**ASKED, "question_id": 7, "model": "é"}]
    path = tmp_path / "r.json"
    text = json.dumps(rows, indent=2, ensure_ascii=False)
    path.write_text("\ufeff\n" + text, "utf-8")
    one, two, _ = read(path, settings=inputs)
    assert (one.model, one.text, two.text) == ("é", '["rs1"]', "b")
    path.write_text(text[:-20], "utf-8")
    with pytest.raises(DatasetError, match=r"r\.json line \d+, column \d+: not valid"):
        read(path, settings=inputs)


def test_keys_called_otherwise_are_mapped_at_every_depth(
    tmp_path: Path, inputs: InvestigationSettings
) -> None:
    path = write(
        tmp_path / "r.jsonl",
        {"llm": "m", "kind": "extract", "paper": "PMC1", "answer": '["rs1"]'},
    )
    with pytest.raises(DatasetError, match=r"fits no known format .*found: llm, kind"):
        read(path, settings=inputs)
    pairs = ("llm=model", "paper=pmcid", "answer=response")
    first, *_ = read(path, settings=inputs.model_copy(update={"map": pairs}))
    assert (first.model, first.spec.key, first.text) == ("m", "PMC1", '["rs1"]')
    with pytest.raises(UsageError, match=r"no file has a column papr .*nearest: paper"):
        read(path, settings=inputs.model_copy(update={"map": ("papr=pmcid",)}))
    record = {
        "pmcid": "PMC1",
        "model": "m",
        "ground_truth_variants": ["rs1"],
        "predicted_variants": ["rs1"],
        "variant_results": {
            "rs1": {
                "responses": [
                    {
                        "source_pipeline": "mcq_drug",
                        "reply": "b",
                        "expected_answer": "b",
                    }
                ]
            }
        },
    }
    path = write(tmp_path / "i.jsonl", record)
    *_, last = read(path, settings=InvestigationSettings(map=("reply=model_response",)))
    assert last.text == "b"


def test_recorded_replies_are_flat_ones_with_stage_and_key(
    tmp_path: Path, inputs: InvestigationSettings
) -> None:
    """The form that `--model recorded:FILE` reads."""
    rows = [
        {"stage": "extract", "key": "PMC1", "response": '["rs1"]'},
        {"stage": "question", "key": "PMC1/mcq_drug:7", "response": "b"},
        {"stage": "extract", "key": "PMC2", "response": "[]"},
    ]
    plain = [EXTRACT, {**ASKED, "question_id": 7}, {**EXTRACT, "pmcid": "PMC2"}]
    plain[2] = {**plain[2], "response": "[]"}
    recorded, usual = (
        read(flat(tmp_path, *own), settings=inputs) for own in (rows, plain)
    )
    assert recorded == usual
    with pytest.raises(DatasetError, match="kind is 'judge'"):
        read(flat(tmp_path, {**rows[0], "stage": "judge"}), settings=inputs)
