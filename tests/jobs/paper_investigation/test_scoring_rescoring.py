"""Stored answers under other settings than those of the run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from jobs.paper_investigation.data import InvestigationDataset
from jobs.paper_investigation.job import job
from jobs.testing import MemoryAnswers, table_rows
from runner.job import Task
from runner.scorecard import Metric, Scorecard
from tests.jobs.paper_investigation.small_datasets import choice, dataset, study

MODEL = "model"


def under(data: InvestigationDataset, **changes: object) -> InvestigationDataset:
    """The same data under other settings."""
    return replace(data, settings=data.settings.model_copy(update=changes))


def metrics(card: Scorecard) -> dict[str, Metric]:
    return {metric.path: metric for metric in card.models[MODEL]}


def answer(task: Task) -> str:
    if task.stage == "extract":
        return '["rs1", "RS2"]'
    if task.stage == "batch":
        count = (task.context or "").count(":")
        kinds = ["study_param" in key for key in (task.context or "").split(",")]
        lines = [
            f'{n}. {{"p_value": "= 0.03", "significance": "yes"}}'
            if is_study
            else f"{n}. b"
            for n, is_study in enumerate(kinds, start=1)
        ]
        assert len(lines) == count
        return "\n".join(lines)
    if "study_param" in task.key:
        return '{"p_value": "= 0.03", "significance": "yes"}'
    return "b"


@pytest.fixture
def joined() -> InvestigationDataset:
    return dataset(
        {"PMC1": ["rs1", "rs2"], "PMC2": ["rs1"]},
        [
            choice("PMC1", "rs1", "1"),
            choice("PMC1", "rs1, rs2", "2"),
            study("PMC1", "rs2", "1", expected_p_value="= 0.5"),
        ],
    )


def test_answers_the_plan_no_longer_asks_for_are_stale_and_unused(
    joined: InvestigationDataset,
) -> None:
    answers = MemoryAnswers.of_run(job, joined, answer)
    card = job.score(under(joined, variant_link="whole"), answers)
    assert card.stale == 1
    assert card.missing == 0
    assert metrics(card)["pipeline.TOTAL.questions"].value == 2
    assert any(finding.code == "stale" for finding in card.findings)


def test_questions_the_run_never_asked_are_missing_and_not_counted(
    joined: InvestigationDataset,
) -> None:
    answers = MemoryAnswers.of_run(job, under(joined, variant_link="whole"), answer)
    card = job.score(joined, answers)
    assert (card.missing, card.stale) == (1, 0)
    assert metrics(card)["questions_not_asked"].value == 1
    assert metrics(card)["pipeline.TOTAL.missing"].value == 0
    assert metrics(card)["pipeline.TOTAL.questions"].value == 2
    assert any(finding.code == "questions_not_asked" for finding in card.findings)
    unasked = [row["item"] for row in table_rows(card, "skipped") if row["item"]]
    assert "mcq_drug:2" in unasked


def test_paper_whose_questions_were_never_asked_has_no_score() -> None:
    data = dataset({"PMC1": ["rs1", "rs2"]}, [choice("PMC1", "rs1, rs2", "1")])
    answers = MemoryAnswers.of_run(job, under(data, variant_link="whole"), answer)
    card = job.score(data, answers)
    (row,) = table_rows(card, "papers")
    assert (row["paper_score"], row["skip_reason"]) == (None, "questions_not_asked")


def test_variant_recalled_by_a_changed_reading_needs_no_call_for_a_joined_question(
    joined: InvestigationDataset,
) -> None:
    answers = MemoryAnswers.of_run(job, under(joined, variant_case="keep"), answer)
    card = job.score(joined, answers)
    # RS2 is recalled only now: its joined question is answered, its own one is not
    assert card.missing == 1
    uses = {row["variant"]: row["questions"] for row in table_rows(card, "variants")}
    assert uses["rs2"] == 1
    assert metrics(card)["pipeline.TOTAL.links"].value == 3


def test_answers_do_not_depend_on_how_they_were_asked(
    joined: InvestigationDataset,
) -> None:
    alone = MemoryAnswers.of_run(job, joined, answer)
    batched = under(joined, batch_questions=True, batch_size=2)
    together = MemoryAnswers.of_run(job, batched, answer)
    assert {a.task.stage for family in together.held for a in family} == {
        "extract",
        "batch",
    }
    expected = said(job.score(joined, alone))
    assert said(job.score(batched, together)) == expected
    assert said(job.score(joined, together)) == expected
    assert said(job.score(batched, alone)) == expected


def said(card: Scorecard) -> dict[str, float | None]:
    """All metrics but those about single replies, of which a batch has fewer."""
    return {
        path: metric.value
        for path, metric in metrics(card).items()
        if not path.startswith("replies.")
    }


def test_rules_can_change_without_a_call(joined: InvestigationDataset) -> None:
    prose = MemoryAnswers.of_run(
        job,
        joined,
        lambda task: '["rs1"]' if task.stage == "extract" else "The answer is B.",
    )
    ours = metrics(job.score(joined, prose))
    theirs = metrics(job.score(under(joined, letter_rules="clinpgx-qa"), prose))
    assert ours["pipeline.mcq_drug.correct"].value == 2
    assert theirs["pipeline.mcq_drug.correct"].value == 0
    assert ours["avg_paper_score~rules_clinpgx"].value == 0.0


def test_paper_that_left_the_bench_is_skipped_by_that_reason(
    joined: InvestigationDataset,
) -> None:
    answers = MemoryAnswers.of_run(job, joined, answer)
    card = job.score(replace(joined, bench=joined.bench[1:]), answers)
    assert metrics(card)["papers_skipped.not_in_bench"].value == 1


def test_answer_to_a_question_that_left_the_files_is_stale(
    joined: InvestigationDataset,
) -> None:
    answers = MemoryAnswers.of_run(job, joined, answer)
    fewer = {"PMC1": joined.questions["PMC1"][:1]}
    card = job.score(replace(joined, questions=fewer), answers)
    assert card.stale == 2
    assert metrics(card)["pipeline.TOTAL.questions"].value == 1


def test_batch_with_a_question_that_left_the_files_is_stale_as_a_whole(
    joined: InvestigationDataset,
) -> None:
    batched = under(joined, batch_questions=True)
    answers = MemoryAnswers.of_run(job, batched, answer)
    fewer = {"PMC1": joined.questions["PMC1"][:1]}
    card = job.score(replace(batched, questions=fewer), answers)
    assert (card.stale, card.missing) == (2, 1)


def test_question_asked_in_both_ways_counts_in_the_present_one() -> None:
    data = dataset({"PMC1": ["rs1"]}, [choice("PMC1", "rs1", "1")])
    batched = under(data, batch_questions=True)
    (alone,) = MemoryAnswers.of_run(job, data, answer).held
    (together,) = MemoryAnswers.of_run(
        job,
        batched,
        lambda task: '["rs1"]' if task.stage == "extract" else "1. c",
    ).held
    for order in ((alone[1], together[1]), (together[1], alone[1])):
        both = MemoryAnswers.of([(alone[0], *order)])
        for settings, right in ((data, 1), (batched, 0)):
            found = metrics(job.score(settings, both))
            assert found["pipeline.TOTAL.questions"].value == 1
            assert found["pipeline.TOTAL.correct"].value == right


def test_unfinished_runs_are_scored_as_far_as_they_go(
    joined: InvestigationDataset,
) -> None:
    done = MemoryAnswers.of_run(job, joined, answer)
    first, second = done.held
    open_question = replace(first[1], reply=None, parsed=None, is_open=True)
    open_paper = replace(second[0], reply=None, parsed=None, is_open=True)
    partial = replace(done, held=((first[0], open_question, *first[2:]), (open_paper,)))
    found = metrics(job.score(joined, partial))
    nothing_yet = replace(done, held=((first[0], open_question),))
    skipped = table_rows(job.score(joined, nothing_yet), "papers")[0]["skip_reason"]
    assert skipped == "open"
    assert found["papers_skipped.open"].value == 1
    assert found["pipeline.mcq_drug.missing.open"].value == 1
    assert found["papers_scored"].value == 1
