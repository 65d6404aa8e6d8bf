"""One paper at a time: recall, question accuracy, score, and why there is none."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from jobs.kit.testing import MemoryAnswers, table_rows
from jobs.paper_investigation.data import InvestigationDataset
from jobs.paper_investigation.job import job
from runner.job import Task
from runner.messages import Reply
from runner.scorecard import Cell, Scorecard
from tests.jobs.paper_investigation.small_datasets import choice, dataset, study

Replies = Mapping[str, str | Reply | None]


def answering(replies: Replies) -> Callable[[Task], str | Reply | None]:
    """Replies by the task's key."""
    return lambda task: replies[task.key]


def scored(data: InvestigationDataset, replies: Replies) -> Scorecard:
    return job.score(data, MemoryAnswers.of_run(job, data, answering(replies)))


def value(card: Scorecard, path: str) -> float | None:
    (metrics,) = card.models.values()
    (found,) = (metric for metric in metrics if metric.path == path)
    return found.value


def paths(card: Scorecard) -> set[str]:
    (metrics,) = card.models.values()
    return {metric.path for metric in metrics}


def paper(card: Scorecard) -> dict[str, Cell]:
    (row,) = table_rows(card, "papers")
    return row


def test_score_is_recall_times_the_mean_accuracy_of_recalled_variants() -> None:
    data = dataset(
        {"PMC1": ["rs1", "rs2", "rs3", "rs4"]},
        [choice("PMC1", "rs1", str(n)) for n in range(4)]
        + [choice("PMC1", "rs2", str(n)) for n in range(4, 6)],
    )
    replies = {
        "PMC1": '["rs1", "rs2", "rs9"]',
        **{f"PMC1/mcq_drug:{n}": "b" for n in (0, 1, 2, 4)},
        **{f"PMC1/mcq_drug:{n}": "a" for n in (3, 5)},
    }
    row = paper(scored(data, replies))
    assert row["variant_recall"] == 0.5
    assert row["precision"] == 2 / 3
    assert row["f1"] == 4 / 7
    assert row["question_accuracy"] == (0.75 + 0.5) / 2
    assert row["pooled_accuracy"] == 4 / 6
    assert row["paper_score"] == 0.5 * 0.625


def test_joined_question_is_asked_and_counted_once_but_serves_both_variants() -> None:
    data = dataset({"PMC1": ["rs1", "rs2"]}, [choice("PMC1", "rs1, rs2", "1")])
    asked: list[str] = []

    def answer(task: Task) -> str:
        asked.append(task.key)
        return '["rs1", "rs2"]' if task.stage == "extract" else "b"

    card = job.score(data, MemoryAnswers.of_run(job, data, answer))
    assert asked == ["PMC1", "PMC1/mcq_drug:1"]
    assert value(card, "pipeline.TOTAL.questions") == 1
    assert value(card, "pipeline.TOTAL.links") == 2
    assert [row["questions"] for row in table_rows(card, "variants")] == [1, 1]
    assert paper(card)["paper_score"] == 1.0


def test_recalled_variant_without_questions_is_out_of_the_mean() -> None:
    data = dataset({"PMC1": ["rs1", "rs2"]}, [choice("PMC1", "rs1", "1")])
    card = scored(data, {"PMC1": '["rs1", "rs2"]', "PMC1/mcq_drug:1": "b"})
    assert paper(card)["question_accuracy"] == 1.0
    assert paper(card)["paper_score"] == 1.0
    assert value(card, "recalled_without_questions") == 1
    assert ("variant", "rs2", "no_questions") in skips(card)


def test_paper_whose_recalled_variants_have_no_questions_scores_zero() -> None:
    data = dataset({"PMC1": ["rs1", "rs2"]}, [choice("PMC1", "rs2", "1")])
    card = scored(data, {"PMC1": '["rs1"]'})
    assert paper(card)["paper_score"] == 0.0
    assert paper(card)["question_accuracy"] is None
    assert value(card, "papers_scored") == 1
    assert value(card, "avg_question_acc") is None
    assert value(card, "avg_paper_score") == 0.0
    assert ("question", "mcq_drug:1", "not_recalled") in skips(card)


def test_empty_list_is_recall_zero_and_no_failure() -> None:
    card = scored(dataset({"PMC1": ["rs1"]}), {"PMC1": "[]"})
    row = paper(card)
    assert (row["variant_recall"], row["paper_score"]) == (0.0, 0.0)
    assert row["precision"] is None
    assert row["f1"] == 0.0
    assert value(card, "papers_scored") == 1


def test_failed_question_is_missing_and_not_wrong() -> None:
    data = dataset(
        {"PMC1": ["rs1"]}, [choice("PMC1", "rs1", "1"), choice("PMC1", "rs1", "2")]
    )
    replies: Replies = {
        "PMC1": '["rs1"]',
        "PMC1/mcq_drug:1": "b",
        "PMC1/mcq_drug:2": None,
    }
    card = scored(data, replies)
    assert paper(card)["paper_score"] == 1.0
    assert value(card, "pipeline.TOTAL.questions") == 1
    assert value(card, "pipeline.TOTAL.missing") == 1
    assert value(card, "pipeline.mcq_drug.missing.ServerError") == 1
    assert value(card, "avg_paper_score~missing_as_wrong") == 0.5
    assert "missing as wrong" in card.summary


def test_metrics_after_a_retry_are_those_of_a_run_that_never_failed() -> None:
    data = dataset(
        {"PMC1": ["rs1"]}, [choice("PMC1", "rs1", "1"), choice("PMC1", "rs1", "2")]
    )
    replies = {"PMC1": '["rs1"]', "PMC1/mcq_drug:1": "b", "PMC1/mcq_drug:2": "a"}
    card = scored(data, replies)
    assert paper(card)["paper_score"] == 0.5
    assert "avg_paper_score~missing_as_wrong" not in paths(card)
    assert "missing as wrong" not in card.summary


def test_paper_without_a_single_reply_to_its_questions_has_no_score() -> None:
    data = dataset({"PMC1": ["rs1"]}, [choice("PMC1", "rs1", "1")])
    card = scored(data, {"PMC1": '["rs1"]', "PMC1/mcq_drug:1": None})
    row = paper(card)
    assert (row["paper_score"], row["skip_reason"]) == (None, "questions_failed")
    assert value(card, "papers_skipped.questions_failed") == 1
    assert value(card, "avg_paper_score") is None
    assert value(card, "avg_paper_score~missing_as_wrong") == 0.0


@pytest.mark.parametrize(
    ("reply", "rule"),
    [
        ("", "empty_reply"),
        ("I cannot say.", "no_letter"),
        (Reply(text="The ans", finish_reason="length"), "truncated"),
    ],
)
def test_reply_that_cannot_be_read_is_wrong(reply: str | Reply, rule: str) -> None:
    data = dataset({"PMC1": ["rs1"]}, [choice("PMC1", "rs1", "1")])
    card = scored(data, {"PMC1": '["rs1"]', "PMC1/mcq_drug:1": reply})
    assert paper(card)["paper_score"] == 0.0
    assert value(card, "pipeline.TOTAL.unparsed") == 1
    assert value(card, f"replies.question.unparsed.{rule}") == 1


def test_each_skip_reason_is_counted_apart_and_nothing_crashes_without_scores() -> None:
    data = dataset(
        {"PMC1": ["rs1"], "PMC2": ["rs2"], "PMC3": ["rs3"]},
        texts={"PMC2": "text", "PMC3": "text"},
    )
    card = scored(data, {"PMC2": "no list here", "PMC3": None})
    assert value(card, "papers_scored") == 0
    assert value(card, "papers_skipped") == 3
    for reason in ("no_paper_text", "extraction_unparsed", "extraction_failed"):
        assert value(card, f"papers_skipped.{reason}") == 1
    for path in ("avg_variant_recall", "avg_question_acc", "avg_paper_score"):
        assert value(card, path) is None
    assert value(card, "avg_paper_score~parse_failures_as_zero") == 0.0
    assert value(card, "avg_paper_score~skipped_as_zero") == 0.0
    assert ("paper", "PMC2", "extraction_unparsed") in skips(card)
    assert "no paper text 1" in card.summary


def test_unparsed_papers_as_zero_leave_other_skips_out() -> None:
    data = dataset(
        {"PMC1": ["rs1"], "PMC2": ["rs2"], "PMC3": ["rs3"]},
        [choice("PMC1", "rs1", "1")],
        texts={"PMC1": "text", "PMC2": "text"},
    )
    replies = {"PMC1": '["rs1"]', "PMC1/mcq_drug:1": "b", "PMC2": "none"}
    card = scored(data, replies)
    assert value(card, "avg_paper_score") == 1.0
    assert value(card, "avg_paper_score~parse_failures_as_zero") == 1 / 2
    assert value(card, "avg_paper_score~skipped_as_zero") == 1 / 3


def test_failed_extraction_is_unparsed_under_the_old_profile() -> None:
    data = dataset({"PMC1": ["rs1"]}, profile="clinpgx-qa")
    card = scored(data, {"PMC1": None})
    assert value(card, "papers_skipped.extraction_unparsed") == 1
    assert value(card, "replies.extract.unparsed.empty_reply") == 1


def test_folding_two_spellings_shrinks_the_truth_and_is_reported() -> None:
    data = dataset({"PMC1": ["rs1", "RS1", "rs2"]})
    card = scored(data, {"PMC1": '["Rs1"]'})
    assert paper(card)["truth_variants"] == 2
    assert value(card, "avg_variant_recall") == 1 / 2
    assert value(card, "truth_merged") == 1
    assert value(card, "avg_variant_recall~case_sensitive") == 0.0


def test_repeated_truth_counts_once_in_the_denominator() -> None:
    data = dataset({"PMC1": ["rs1", "rs1 ", "rs2"]})
    assert paper(scored(data, {"PMC1": '["rs1"]'}))["variant_recall"] == 1 / 2


def test_cap_takes_the_first_questions_before_merging() -> None:
    questions = [choice("PMC1", "rs1", str(n)) for n in range(3)]
    data = dataset(
        {"PMC1": ["rs1", "rs2"]},
        [*questions, choice("PMC1", "rs1, rs2", "9")],
        max_questions_per_variant=2,
    )
    replies = {
        "PMC1": '["rs1", "rs2"]',
        **{f"PMC1/mcq_drug:{n}": "b" for n in (0, 1, 9)},
    }
    card = scored(data, replies)
    assert value(card, "pipeline.TOTAL.questions") == 3
    assert ("question", "mcq_drug:2", "over_cap") in skips(card)


def test_questions_about_missed_variants_stay_outside_the_scores() -> None:
    data = dataset(
        {"PMC1": ["rs1", "rs2"]},
        [choice("PMC1", "rs1", "1"), choice("PMC1", "rs2", "2")],
        ask="all",
    )
    replies = {"PMC1": '["rs1"]', "PMC1/mcq_drug:1": "b", "PMC1/mcq_drug:2": "a"}
    card = scored(data, replies)
    assert paper(card)["paper_score"] == 0.5
    assert value(card, "pipeline.TOTAL.questions") == 1
    assert [
        (row["links"], row["correct"]) for row in table_rows(card, "questions")
    ] == [
        (1, True),
        (0, False),
    ]


def test_whole_links_hide_joined_questions_and_say_how_many() -> None:
    data = dataset(
        {"PMC1": ["rs1", "rs2"]},
        [choice("PMC1", "rs1, rs2", "1"), choice("PMC1", "rs1", "2")],
        variant_link="whole",
    )
    card = scored(data, {"PMC1": '["rs1", "rs2"]', "PMC1/mcq_drug:2": "b"})
    assert value(card, "pipeline.TOTAL.questions") == 1
    assert value(card, "questions_hidden") == 1
    assert "questions that whole links hide: model 1" in card.summary


def test_invented_p_values_are_counted_among_readable_answers() -> None:
    swapped = {
        "expected_p_value": "not found",
        "expected_significance": "not found",
        "question_type": "modified_drug",
    }
    questions = [study("PMC1", "rs1", str(n), **swapped) for n in range(3)]
    data = dataset({"PMC1": ["rs1"]}, questions)
    found = '{"p_value": "not found", "significance": "not found"}'
    replies = {
        "PMC1": '["rs1"]',
        "PMC1/study_param:0": found,
        "PMC1/study_param:1": '{"p_value": "0.02", "significance": "yes"}',
        "PMC1/study_param:2": "nothing to read",
    }
    card = scored(data, replies)
    assert value(card, "study_param.modified_drug.not_found") == 1 / 2
    assert value(card, "study_param.modified_drug.invented") == 1 / 2
    assert value(card, "study_param.both.accuracy") == 1 / 3


def skips(card: Scorecard) -> set[tuple[Cell, Cell, Cell]]:
    return {
        (row["level"], row["item"], row["reason"])
        for row in table_rows(card, "skipped")
    }
