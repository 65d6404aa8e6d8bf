"""Flat replies: one a line, in any order, gathered by paper."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from jobs.paper_investigation.settings import Settings
from runner.errors import DatasetError, UsageError
from tests.jobs.paper_investigation.imports import CHOICE, metrics, read, scored, write


@pytest.fixture
def inputs(tmp_path: Path) -> Settings:
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
    return Settings(bench=bench, mcq_drug=questions)


def flat(tmp_path: Path, *rows: Mapping[str, Any]) -> Path:
    return write(tmp_path / "r.jsonl", *({"model": "lab/one", **row} for row in rows))


EXTRACT = {"kind": "extract", "pmcid": "PMC1", "response": '["rs1"]'}


ASKED = {"kind": "question", "source_pipeline": "mcq_drug", "response": "b"}


def test_flat_replies_are_gathered_by_paper_whatever_their_order(
    tmp_path: Path, inputs: Settings
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
    tmp_path: Path, inputs: Settings
) -> None:
    rows = [EXTRACT, {**ASKED, "question_id": 7}, {**ASKED, "question_id": 8}]
    card = scored(flat(tmp_path, *rows), settings=inputs)
    (found,) = (f for f in card.findings if f.code == "unused")
    assert found.n == 1
    assert card.stale == 1


def test_flat_replies_may_be_cut_or_have_failed(
    tmp_path: Path, inputs: Settings
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
        ([{**EXTRACT, "kind": "guess"}], r"kind is 'guess' \(extract or question\)"),
        (
            [EXTRACT, {**ASKED, "question_id": 7}, {**ASKED, "question_id": 7}],
            r"answers PMC1/mcq_drug:7 already",
        ),
    ],
)
def test_faults_of_flat_replies(
    tmp_path: Path, inputs: Settings, rows: list[dict[str, Any]], message: str
) -> None:
    with pytest.raises(DatasetError, match=message):
        read(flat(tmp_path, *rows), settings=inputs)


def test_flat_replies_need_the_bench_they_answer(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--bench"):
        read(flat(tmp_path, EXTRACT))


def test_flat_answers_to_questions_alone_need_no_bench(
    tmp_path: Path, inputs: Settings
) -> None:
    alone = inputs.model_copy(update={"mode": "questions", "bench": None})
    path = flat(tmp_path, {**ASKED, "question_id": 7})
    (answer,) = read(path, settings=alone)
    assert not answer.descends
    card = scored(path, settings=alone)
    assert metrics(card)["pipeline.TOTAL.accuracy"].value == 1.0
