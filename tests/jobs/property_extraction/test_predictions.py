"""What a run's answers come to, paper by paper, and what is not among them."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.kit.testing import MemoryAnswers
from jobs.property_extraction.data import PropertyDataset
from jobs.property_extraction.job import job
from jobs.property_extraction.predictions import (
    PaperOutcome,
    PaperState,
    ReplicatePredictions,
    RunPredictions,
    consensus,
    run_predictions,
)
from jobs.property_extraction.rows import (
    ROWS_STAGE,
    ImportedRow,
    Prediction,
    text_of_rows,
)
from jobs.property_extraction.settings import PropertySettings
from runner.errors import UsageError
from runner.job import ImportedAnswer, Task, TaskSpec
from runner.messages import Reply
from tests.jobs.property_extraction.property_runs import dataset

PARAGRAPH = "The energy gap of the compound is 1.02 meV at zero field, we find.\n\n"


def said(*numbers: str, **fields: Any) -> str:
    return json.dumps(
        {
            "properties": [
                {"property": "gap", "value": each, **fields} for each in numbers
            ]
        }
    )


def papers(folder: Path, *texts: str, **settings: Any) -> PropertyDataset:
    """Papers P1 and so on, and a true value of one that has no text."""
    named = {f"P{number}": text for number, text in enumerate(texts, start=1)}
    return dataset(folder, named, **settings)


def gathered(
    own: PropertyDataset, replies: dict[str, str | Reply | None]
) -> RunPredictions:
    """Replies by key; None: the task failed. What is not named finds no value."""

    def answer(task: Task) -> str | Reply | None:
        return replies.get(task.key, said())

    return run_predictions(own, MemoryAnswers.of_run(job, own, answer))


def outcomes(sheet: RunPredictions) -> dict[str, tuple[str, str]]:
    (own,) = sheet.predicted
    return {
        refno: (str(each.state), each.reason) for refno, each in own.outcomes.items()
    }


def test_each_paper_is_scored_failed_or_skipped(tmp_path: Path) -> None:
    own = papers(tmp_path, PARAGRAPH, PARAGRAPH, PARAGRAPH, "", "x")
    cut = Reply(text=said("3")[:-4], finish_reason="length")
    sheet = gathered(own, {"P1": said("1", "2"), "P2": None, "P3": cut})
    assert outcomes(sheet) == {
        "P1": ("scored", ""),
        "P2": ("failed", "ServerError"),
        "P3": ("failed", "truncated"),
        "P4": ("skipped", "empty_text"),
        "P5": ("scored", ""),
        "P9": ("skipped", "no_text"),
    }
    (found,) = sheet.predicted
    assert [(row.row, row.refno, row.value) for row in found.predictions] == [
        (1, "P1", "1"),
        (2, "P1", "2"),
    ]
    assert (sheet.missing, sheet.stale) == (0, 0)


def test_a_piece_that_is_lacking_decides_for_its_paper(tmp_path: Path) -> None:
    pieces = {"max_chars": 80, "chunk_overlap": 10}
    own = papers(tmp_path, PARAGRAPH * 2, PARAGRAPH * 2, **pieces)
    keys = [spec.key for spec in job.plan(own)]
    assert keys == ["P1#1", "P1#2", "P2#1", "P2#2", "P9"]
    replies: dict[str, str | Reply | None] = {
        key: said(str(number)) for number, key in enumerate(keys)
    }
    (whole,) = gathered(own, replies).predicted
    assert [row.value for row in whole.predictions] == ["0", "1", "2", "3"]
    sheet = gathered(own, {**replies, "P1#2": None})
    assert outcomes(sheet)["P1"] == ("failed", "ServerError")
    (found,) = sheet.predicted
    assert {row.refno for row in found.predictions} == {"P2"}


def test_what_was_never_asked_is_open_and_missing(tmp_path: Path) -> None:
    pieces = {"max_chars": 80, "chunk_overlap": 10}
    own = papers(tmp_path, PARAGRAPH * 2, PARAGRAPH, **pieces)
    answers = MemoryAnswers.of_run(job, own, lambda task: said(task.key))
    some = replace(
        answers,
        held=tuple(each for each in answers.held if each[0].task.key == "P1#1"),
    )
    sheet = run_predictions(own, some)
    unsent = {"P9": ("skipped", "no_text")}
    assert outcomes(sheet) == dict.fromkeys(("P1", "P2"), ("open", "")) | unsent
    assert sheet.predicted[0].predictions == ()
    assert sheet.missing == 2


def test_answers_that_the_plan_asks_for_no_more_are_stale(tmp_path: Path) -> None:
    own = papers(tmp_path, PARAGRAPH * 2)
    pieces = own.settings.model_copy(update={"max_chars": 80, "chunk_overlap": 10})
    asked = replace(own, settings=pieces)
    answers = MemoryAnswers.of_run(job, asked, lambda _: said("1"))
    sheet = run_predictions(own, answers)
    assert (sheet.stale, sheet.missing) == (2, 1)
    assert outcomes(sheet)["P1"] == ("open", "")


def test_imported_rows_keep_their_order_and_blank_ones_predict_nothing(
    tmp_path: Path,
) -> None:
    rows = [
        ImportedRow(row=number, name="gap", value=value)
        for number, value in ((4, "4"), (2, "2"), (3, ""))
    ]
    texts = {
        "P2": text_of_rows(rows),
        "P1": text_of_rows([ImportedRow(row=9, name="gap", value="9")]),
    }
    answers = MemoryAnswers.of_import(
        ImportedAnswer(
            spec=TaskSpec(stage=ROWS_STAGE, key=refno),
            model="m",
            replicate=1,
            text=text,
        )
        for refno, text in {**texts, "P3": "no rows"}.items()
    )
    sheet = run_predictions(papers(tmp_path, PARAGRAPH, "", "", PARAGRAPH), answers)
    (found,) = sheet.predicted
    assert [row.value for row in found.predictions] == ["2", "4", "9"]
    assert found.counts["blank"] == 1
    assert outcomes(sheet) == {
        "P1": ("scored", ""),
        "P2": ("scored", ""),
        "P3": ("failed", "unreadable_import"),
    }
    # an import is asked for nothing
    assert sheet.missing == 0


ROW = st.tuples(*map(st.sampled_from, (("P1", "P2"), ("a", "b"), ("1", "2"))))


def test_imported_models_have_as_many_replicates_as_their_files(tmp_path: Path) -> None:
    told = text_of_rows([ImportedRow(row=2, name="gap", value="1")])
    answers = MemoryAnswers.of_import(
        ImportedAnswer(
            spec=TaskSpec(stage=ROWS_STAGE, key="P1"),
            model=model,
            replicate=replicate,
            text=told,
        )
        for model, replicate in (("m", 1), ("m", 2), ("n", 1))
    )
    sheet = run_predictions(papers(tmp_path, PARAGRAPH), answers)
    assert [len(sheet.of(model)) for model in ("m", "n")] == [2, 1]


@given(st.data(), st.lists(st.lists(ROW, max_size=6), min_size=1, max_size=4))
def test_a_consensus_row_is_in_enough_replicates_and_counts_once(
    data: st.DataObject, replicates: list[list[tuple[str, str, str]]]
) -> None:
    least = data.draw(st.integers(1, len(replicates)))
    columns = [
        ReplicatePredictions(
            model="m",
            replicate=number,
            predictions=tuple(
                Prediction(refno=refno, name=name, value=value, row=at)
                for at, (refno, name, value) in enumerate(rows, start=2)
            ),
        )
        for number, rows in enumerate(replicates, start=1)
    ]
    found = [
        (row.refno, row.name, row.value)
        for row in consensus(columns, least).predictions
    ]
    assert len(found) == len(set(found))
    assert set(found) == {
        row
        for row in product(("P1", "P2"), ("a", "b"), ("1", "2"))
        if sum(row in rows for rows in replicates) >= least
    }


@given(st.data(), st.lists(st.sampled_from(list(PaperState)), min_size=1, max_size=4))
def test_a_paper_of_a_consensus_was_read_often_enough(
    data: st.DataObject, states: list[PaperState]
) -> None:
    least = data.draw(st.integers(1, len(states)))
    columns = [
        ReplicatePredictions(
            model="m",
            replicate=number,
            predictions=(),
            outcomes={"P1": PaperOutcome(state=state)},
        )
        for number, state in enumerate(states, start=1)
    ]
    found = consensus(columns, least).outcomes["P1"].state
    read = Counter(states)[PaperState.SCORED]
    is_scored = read >= least or read == len(states)
    assert (found is PaperState.SCORED) == is_scored


def test_a_consensus_of_more_replicates_than_there_are_is_refused() -> None:
    alone = ReplicatePredictions(model="m", replicate=1, predictions=())
    with pytest.raises(UsageError, match=r"m has 1 replicate .*--replicates 2"):
        consensus([alone], 2)


def test_a_consensus_asks_as_often_as_it_needs() -> None:
    asked = (
        PropertySettings(consensus=3),
        PropertySettings(),
        PropertySettings(mode="verify", consensus=3),
    )
    assert [job.replicates(each) for each in asked] == [3, 1, 1]
