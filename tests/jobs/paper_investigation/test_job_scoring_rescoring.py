"""Stored answers under other settings than those of the run.

Summaries as people read them.
"""

from __future__ import annotations

import re

import pytest

from jobs.kit.testing import MemoryAnswers, artifact_texts, table_rows
from jobs.paper_investigation.data import InvestigationDataset
from jobs.paper_investigation.job import job
from runner.job import Task
from runner.scorecard import Metric, Scorecard
from tests.jobs.paper_investigation.small_datasets import choice, dataset, study
from tests.replacing import replace

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


SUMMARY = "model_paper_investigation_summary.txt"


def scored(data: InvestigationDataset, **replies: str) -> Scorecard:
    """Scores with each paper's reply given by id; questions are answered by b."""
    return job.score(
        data,
        MemoryAnswers.of_run(job, data, lambda task: replies.get(task.key, "b")),
    )


def test_own_form_of_an_investigation_summary() -> None:
    data = dataset(
        {"PMC1": ["rs1"], "PMC2": ["rs1"], "PMC3": ["rs1"]},
        [choice("PMC1", "rs1", "1")],
        texts={"PMC1": "text", "PMC2": "text"},
    )
    card = scored(data, PMC1='["rs1"]', PMC2="none")
    assert artifact_texts(card)[SUMMARY] == (
        f"{'=' * 64}\n"
        "Paper Investigation Results  |  model=model\n"
        f"{'=' * 64}\n"
        "\n"
        "  Papers scored:        1\n"
        "  Papers skipped:       2  (no paper text 1, too long 0, unparsed extraction"
        " 1, failed call 0)\n"
        "\n"
        "  Avg Variant Recall:   1.000\n"
        "  Avg Question Acc:     1.000  (across recalled variants only; 1 papers)\n"
        "  Avg Paper Score:      1.000  (recall x question_acc)\n"
        "                        0.500  (unparsed papers as 0)\n"
        "                        0.333  (all skipped papers as 0)\n"
        "\n"
        "By pipeline breakdown:\n"
        "  Pipeline              Questions    Correct   Accuracy\n"
        "  -------------------- ---------- ---------- ----------\n"
        "  mcq_variant                   0          0       n/a\n"
        "  mcq_drug                      1          1     1.000\n"
        "  mcq_phenotype                 0          0       n/a\n"
        "  study_param                   0          0       n/a\n"
        "  -------------------- ---------- ---------- ----------\n"
        "  TOTAL                         1          1     1.000\n"
        "\n"
        "WORST PAPERS (by paper_score):\n"
        "  [1] PMC1  recall=1.000  q_acc=1.000  score=1.000\n"
        "\n"
        "BEST PAPERS (by paper_score):\n"
        "  [1] PMC1  recall=1.000  q_acc=1.000  score=1.000\n"
        "\n"
        "Eval results saved to model_paper_investigation_eval_results.jsonl\n"
    )


def test_ties_in_worst_and_best_go_by_id_or_under_the_old_profile_by_file() -> None:
    bench = {f"PMC{n}": ["rs1"] for n in (5, 4, 3, 2, 1)}
    lists = dict.fromkeys(bench, "[]")
    own = artifact_texts(scored(dataset(bench), **lists))[SUMMARY]
    assert re.findall(r"\] (PMC\d)", own) == ["PMC1", "PMC2", "PMC3"] * 2
    old = artifact_texts(scored(dataset(bench, profile="clinpgx-qa"), **lists))[SUMMARY]
    assert re.findall(r"\] (PMC\d)", old) == [
        *("PMC5", "PMC4", "PMC3"),
        *("PMC3", "PMC2", "PMC1"),
    ]


def test_no_examples_are_shown_if_none_are_wanted() -> None:
    data = dataset({"PMC1": ["rs1"]}, n_examples=0)
    assert "[1]" not in artifact_texts(scored(data, PMC1="[]"))[SUMMARY]


def test_terminal_text_names_profile_changes() -> None:
    data = dataset({"PMC1": ["rs1"]}, profile="clinpgx-qa", variant_link="split")
    title = scored(data, PMC1="[]").summary.splitlines()[0]
    assert title == (
        "Paper investigation  profile clinpgx-qa, changed: variant_link=split  "
        "keep case, split links, batched calls"
    )


def test_the_worst_paper_is_the_one_worth_explaining() -> None:
    data = dataset(
        {"PMC1": ["rs1"], "PMC2": ["rs2"]},
        [choice("PMC1", "rs1", "1"), choice("PMC2", "rs2", "2")],
    )
    card = scored(data, PMC1='["rs1"]', PMC2="[]")
    assert card.worth_explaining == "PMC2"


def test_many_empty_replies_point_at_the_limit_that_reasoning_uses_up() -> None:
    data = dataset({"PMC1": ["rs1"]})
    card = scored(data, PMC1="")
    assert "model: 1 of 1 replies are empty" in card.summary
    assert "max_tokens_reasoning" in card.summary


@pytest.mark.parametrize("mode", ["extract", "questions"])
def test_stand_alone_modes_have_texts_of_their_own(mode: str) -> None:
    data = dataset(
        {"PMC1": ["rs1"]},
        [choice("PMC1", "rs1", "1"), study("PMC1", "rs1", "1")],
        mode=mode,
    )
    card = scored(data, PMC1='["rs1", "rs2"]')
    names = [name for name in artifact_texts(card) if name.endswith(".txt")]
    if mode == "extract":
        assert names == ["model_variant_summary.txt"]
        assert "rsID                 1      1      0" in artifact_texts(card)[names[0]]
        assert "Missed" not in artifact_texts(card)[names[0]]
        missed = artifact_texts(scored(data, PMC1="[]"))[names[0]]
        assert "  Missed: ['rs1']\n" in missed
    else:
        assert names == [
            "model_mcq_drug_summary.txt",
            "model_study_param_summary.txt",
            "baselines.txt",
        ]
        assert "1/1 (100.0%)" in artifact_texts(card)[names[0]]
        assert "JSON parse failures: 1/1 (100.0%)" in artifact_texts(card)[names[1]]


def test_failed_answers_are_no_examples_and_no_failures_of_reading() -> None:
    questions = [choice("PMC1", "rs1", str(n)) for n in range(3)]
    data = dataset({"PMC1": ["rs1"]}, questions, mode="questions")
    answers = MemoryAnswers.of_run(
        job, data, lambda task: None if task.key.endswith("0") else "b", replicates=2
    )
    card = job.score(data, answers)
    text = artifact_texts(card)["model_mcq_drug_summary.txt"]
    assert "2/2 (100.0%)" in text
    assert "Example CORRECT answers (2 randomly chosen)" in text
    assert "Parse failures" not in text


def test_unparsed_papers_add_raw_truth_to_misses_under_the_old_profile_only() -> None:
    bench = {"PMC1": ["rs1"], "PMC2": ["rs2", "rs2", "rs3"]}
    replies = {"PMC1": '["rs1"]', "PMC2": "none"}
    old = scored(dataset(bench, mode="extract", profile="clinpgx-qa"), **replies)
    text = artifact_texts(old)["model_variant_summary.txt"]
    assert "  MICRO-AVG            1      3     0.250\n" in text
    assert "  Macro-avg Recall: 1.000\n" in text
    own = scored(dataset(bench, mode="extract"), **replies)
    text = artifact_texts(own)["model_variant_summary.txt"]
    assert "  MICRO-AVG            1      0      0      1.000" in text
    recalls = {metric.path: metric.value for metric in own.models["model"]}
    assert recalls["class.MICRO-AVG.recall~failures_as_fn"] == 1 / 3


def test_examples_are_drawn_by_seed_and_not_by_file_order() -> None:
    questions = [
        choice("PMC1", "rs1", str(n), sentence=f"no{n} ______") for n in range(20)
    ]

    def drawn(order: int, **settings: object) -> list[str]:
        ordered = questions[::order]
        data = dataset({"PMC1": ["rs1"]}, ordered, mode="questions", **settings)
        text = artifact_texts(job.score(data, MemoryAnswers.of_run(job, data, echo)))
        return re.findall(r"Sentence: (\S+)", text["model_mcq_drug_summary.txt"])

    assert len(drawn(1)) == 5
    assert drawn(-1) == drawn(1)
    assert drawn(1, boot_seed=1) != drawn(1)


def echo(_: Task) -> str:
    return "b"
