"""What the job gives to comparisons: the items that its own metrics are made of.

Several models, several replicates: what is compared, and what is dropped.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable

import pytest

from jobs.kit.metrics import holm, mcnemar, mean, ratio, round12
from jobs.kit.testing import MemoryAnswers, artifact_texts, table_rows
from jobs.paper_investigation.data import InvestigationDataset
from jobs.paper_investigation.job import job
from runner.job import Task
from runner.messages import Reply
from runner.scorecard import ItemValues, Metric, Scorecard
from tests.jobs.paper_investigation.small_datasets import choice, dataset, study

PAPERS = [f"PMC{n}" for n in range(1, 7)]


def six_papers(**settings: object) -> InvestigationDataset:
    """Two variants a paper; of each a choice and a study question."""
    questions = [
        make(pmcid, variant, f"{pmcid[3:]}{variant[-1]}")
        for pmcid in PAPERS
        for variant in ("rs1", "rs2")
        for make in (choice, study)
    ]
    return dataset({pmcid: ["rs1", "rs2"] for pmcid in PAPERS}, questions, **settings)


def answer(task: Task) -> str | None:
    """Fails on a paper, cannot be read on another, misses, errs and guesses."""
    if task.stage == "extract":
        told = {"PMC1": None, "PMC2": "no list", "PMC3": "[]"}
        return told.get(task.key, '["rs1", "rs2", "rs3"]')
    if "study" in task.key:
        return '{"p_value": "= 0.03", "significance": "no"}'
    if task.key.endswith("62"):
        return None
    return "b" if task.replicate > 1 or task.key.endswith("1") else "a"


def scored(
    data: InvestigationDataset,
    answered: Callable[[Task], str | None] = answer,
    replicates: int = 1,
) -> Scorecard:
    answers = MemoryAnswers.of_run(job, data, answered, ("one", "two"), replicates)
    return job.score(data, answers)


def value(items: ItemValues) -> float | None:
    if items.second is None:
        return mean(items.first)
    above = math.fsum(each or 0.0 for each in items.first)
    return ratio(above, math.fsum(each or 0.0 for each in items.second))


@pytest.mark.parametrize("mode", ["investigate", "extract", "questions"])
@pytest.mark.parametrize("replicates", [1, 2])
def test_metrics_are_the_means_of_the_items_they_are_compared_by(
    mode: str, replicates: int
) -> None:
    card = scored(six_papers(mode=mode), replicates=replicates)
    for model, made in card.comparable.items():
        metrics = {metric.path: metric for metric in card.models[model]}
        for path, make in made.items():
            items = make()
            assert value(items) == pytest.approx(metrics[path].value, abs=1e-15)
            assert metrics[path].definition.startswith(items.definition)
            assert len(set(items.items)) == len(items.items)
            assert {*items.clusters} <= {*PAPERS}
            assert items.cluster == "paper"
            if items.second is None:
                assert len(items.items) == metrics[path].n


def test_a_mode_is_compared_in_what_it_asks() -> None:
    paths = {
        mode: list(scored(six_papers(mode=mode)).comparable["one"])
        for mode in ("investigate", "extract", "questions")
    }
    assert paths["questions"] == [
        "pipeline.mcq_drug.accuracy",
        "pipeline.study_param.accuracy",
        "pipeline.TOTAL.accuracy",
        "study_param.p_value.accuracy",
        "study_param.significance.accuracy",
    ]
    assert "avg_paper_score" not in paths["extract"]
    assert paths["investigate"] == [
        *("avg_variant_recall", "avg_question_acc", "avg_paper_score"),
        *("avg_precision", "avg_f1"),
        *(path for path in paths["extract"] if path.endswith("~micro")),
        "avg_question_acc~questions_pooled",
        *paths["questions"],
    ]


def test_fields_of_a_study_answer_are_compared_apart() -> None:
    made = scored(six_papers()).comparable["one"]
    assert set(made["study_param.p_value.accuracy"]().first) == {1.0}
    assert set(made["study_param.significance.accuracy"]().first) == {0.0}
    assert set(made["pipeline.study_param.accuracy"]().first) == {0.0}


def test_later_replicates_of_a_question_are_items_of_their_own() -> None:
    made = scored(six_papers(mode="questions"), replicates=2).comparable["one"]
    items = made["pipeline.mcq_drug.accuracy"]().items
    assert "PMC1/mcq_drug:11" in items
    assert "PMC1/mcq_drug:11 (replicate 2)" in items


def test_a_model_without_an_answer_has_items_of_nothing() -> None:
    card = scored(
        six_papers(), lambda task: answer(task) if task.model == "one" else None
    )
    assert card.comparable["two"]["avg_paper_score"]().items == []
    assert list(card.comparable["two"]["pipeline.TOTAL.accuracy"]().items) == []


def models_six_papers(**settings: object) -> InvestigationDataset:
    """Two variants a paper, two questions a variant."""
    return dataset(
        {pmcid: ["rs1", "rs2"] for pmcid in PAPERS},
        [
            choice(pmcid, variant, f"{pmcid[3:]}{number}")
            for pmcid in PAPERS
            for variant, numbers in (("rs1", "12"), ("rs2", "34"))
            for number in numbers
        ],
        **settings,
    )


def models_scored(
    data: InvestigationDataset,
    answer: Callable[[Task], str | Reply | None],
    models: tuple[str, ...] = ("strong", "weak"),
    replicates: int = 1,
) -> Scorecard:
    return job.score(data, MemoryAnswers.of_run(job, data, answer, models, replicates))


def strong_and_weak(task: Task) -> str | None:
    """The strong model fails on one paper; the weak one misses a variant, and b."""
    is_strong = task.model == "strong"
    if task.stage == "extract":
        if is_strong and task.key == "PMC6":
            return None
        if not is_strong and task.key == "PMC5":
            return "no list"
        return '["rs1", "rs2"]' if is_strong else '["rs1"]'
    return "b" if is_strong or task.key.endswith("1") else "a"


def metrics(card: Scorecard, model: str) -> dict[str, Metric]:
    return {metric.path: metric for metric in card.models[model]}


def test_pairs_drop_papers_that_one_model_has_alone_and_count_them() -> None:
    (pair,) = table_rows(models_scored(models_six_papers(), strong_and_weak), "pairs")
    assert (pair["model_a"], pair["model_b"]) == ("strong", "weak")
    assert (pair["papers"], pair["papers_only_a"], pair["papers_only_b"]) == (4, 1, 1)
    assert (pair["wins"], pair["losses"], pair["ties"]) == (4, 0, 0)
    assert pair["avg_paper_score_difference"] == 1.0 - 0.5 * 0.5
    assert pair["sign_p"] == mcnemar(4, 0).p


def test_parts_of_a_score_difference_add_up() -> None:
    (pair,) = table_rows(models_scored(models_six_papers(), strong_and_weak), "pairs")
    # (1 - 0.5)(1 + 0.5)/2 by recall, (1 - 0.5)(1 + 0.5)/2 by accuracy
    assert pair["recall_part"] == 0.375
    assert pair["accuracy_part"] == 0.375


def test_mcnemar_counts_questions_that_both_answered() -> None:
    (pair,) = table_rows(models_scored(models_six_papers(), strong_and_weak), "pairs")
    # on four shared papers the weak model is asked two of the four questions
    assert pair["questions"] == 8
    assert pair["mcnemar_p"] == round12(mcnemar(4, 0).p)


def test_holm_corrects_over_all_pairs_of_the_run() -> None:
    def answer(task: Task) -> str:
        if task.stage == "extract":
            return '["rs1", "rs2"]'
        skill = {"a": 9, "b": 3, "c": 1}[task.model]
        return "b" if int(task.key[-1]) <= skill else "a"

    pairs = table_rows(
        models_scored(models_six_papers(), answer, ("a", "b", "c")), "pairs"
    )
    raw = [float(pair["sign_p"] or 0) for pair in pairs]
    assert len(pairs) == 3
    assert [pair["sign_p_holm"] for pair in pairs] == list(holm(raw))


def test_pair_without_a_shared_paper_is_undefined_and_does_not_crash() -> None:
    def answer(task: Task) -> str | None:
        return '["rs1"]' if task.model == "strong" else None

    data = dataset({"PMC1": ["rs1"]})
    (pair,) = table_rows(models_scored(data, answer), "pairs")
    assert pair["papers"] == 0
    assert pair["avg_paper_score_difference"] is None
    assert pair["sign_p"] is None
    assert pair["sign_p_holm"] is None


def test_models_without_a_scored_paper_stand_beside_others() -> None:
    card = models_scored(
        dataset({"PMC1": ["rs1"]}, [choice("PMC1", "rs1", "1")]),
        lambda task: (
            ('["rs1"]' if task.stage == "extract" else "b")
            if task.model == "strong"
            else None
        ),
    )
    assert metrics(card, "strong")["avg_paper_score"].value == 1.0
    assert metrics(card, "weak")["avg_paper_score"].value is None
    assert "n/a" in card.summary


def test_intervals_are_the_same_whatever_the_order_of_papers() -> None:
    forward = models_scored(models_six_papers(), strong_and_weak)
    data = models_six_papers()
    backward = InvestigationDataset(
        settings=data.settings,
        bench=data.bench[::-1],
        papers=data.papers,
        questions=data.questions,
        sentences={},
    )
    for model in ("strong", "weak"):
        assert metrics(forward, model) == metrics(
            models_scored(backward, strong_and_weak), model
        )


def test_one_paper_bounds_little_and_few_have_a_note() -> None:
    one = dataset({"PMC1": ["rs1"]})
    alone = metrics(models_scored(one, lambda _: '["rs1"]', ("m",)), "m")[
        "avg_variant_recall"
    ]
    assert (alone.value, alone.lo, alone.hi) == (1.0, 0.025, 1.0)
    few = metrics(models_scored(models_six_papers(), strong_and_weak), "weak")[
        "avg_paper_score"
    ]
    assert few.lo is not None
    assert few.note == "interval from 5 papers only"


def in_replicates(task: Task) -> str | None:
    """Each replicate fails on another paper; the third also reads worse."""
    if task.stage == "extract":
        if int(task.key[3:]) == task.replicate:
            return None
        return '["rs1", "rs2"]' if task.replicate < 3 else '["rs1", "rs7"]'
    return "b" if task.replicate < 3 or task.key.endswith("1") else "a"


def test_paper_that_fails_in_one_replicate_is_scored_by_the_others() -> None:
    card = models_scored(models_six_papers(), in_replicates, ("m",), replicates=3)
    found = metrics(card, "m")
    assert found["papers_scored"].value == 6
    for replicate in (1, 2, 3):
        assert found[f"replicate.{replicate}.papers_scored"].value == 5
    # of PMC1 and PMC2 one good replicate is left, of PMC3 two, of the others all
    good, bad = 1.0, 0.5 * 0.5
    by_paper = [(good + bad) / 2] * 2 + [good] + [(2 * good + bad) / 3] * 3
    assert found["avg_paper_score"].value == pytest.approx(statistics.fmean(by_paper))


def test_spread_over_replicates() -> None:
    card = models_scored(models_six_papers(), in_replicates, ("m",), replicates=3)
    found = metrics(card, "m")
    assert found["avg_paper_score~sd"].value == pytest.approx(
        statistics.stdev([1.0, 1.0, 0.25])
    )
    # PMC4 to PMC6 were read in all three; their questions ..1 and ..2 were asked thrice
    assert found["replicates.same_answers"].n == 6
    assert found["replicates.same_answers"].value == 1 / 2
    # sets {1, 2} twice and {1, 7} once: Jaccard 1, 1/3, 1/3, or one of them alone
    three, two = [1.0, 1 / 3, 1 / 3], [1 / 3]
    expected = statistics.fmean([*three * 3, *two * 2, 1.0])
    assert found["replicates.jaccard"].value == pytest.approx(expected)


def test_files_of_later_replicates_are_marked() -> None:
    names = artifact_texts(
        models_scored(models_six_papers(), in_replicates, ("m",), replicates=2)
    )
    assert [name for name in names if name.endswith(".txt")] == [
        "m_paper_investigation_summary.txt",
        "m_paper_investigation_summary_r2.txt",
        "baselines.txt",
    ]
    first = names["m_paper_investigation_responses.jsonl"]
    second = names["m_paper_investigation_responses_r2.jsonl"]
    assert '"replicate":1' in first
    assert '"replicate":2' not in first
    assert '"replicate":2' in second
