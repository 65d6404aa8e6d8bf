"""What the job gives to comparisons: the items that its own metrics are made of."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from jobs.metrics import mean, ratio
from jobs.paper_investigation.data import InvestigationDataset
from jobs.paper_investigation.job import job
from jobs.testing import MemoryAnswers
from runner.job import Task
from runner.scorecard import ItemValues, Scorecard
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
