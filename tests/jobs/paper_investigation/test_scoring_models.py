"""Several models, several replicates: what is compared, and what is dropped."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import pytest

from jobs.metrics import holm, mcnemar, round12
from jobs.paper_investigation.data import InvestigationDataset
from jobs.paper_investigation.job import job
from jobs.testing import MemoryAnswers, artifact_texts, table_rows
from runner.job import Task
from runner.messages import Reply
from runner.scorecard import Metric, Scorecard
from tests.jobs.paper_investigation.small_datasets import choice, dataset

PAPERS = [f"PMC{n}" for n in range(1, 7)]


def six_papers(**settings: object) -> InvestigationDataset:
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


def scored(
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
    (pair,) = table_rows(scored(six_papers(), strong_and_weak), "pairs")
    assert (pair["model_a"], pair["model_b"]) == ("strong", "weak")
    assert (pair["papers"], pair["papers_only_a"], pair["papers_only_b"]) == (4, 1, 1)
    assert (pair["wins"], pair["losses"], pair["ties"]) == (4, 0, 0)
    assert pair["avg_paper_score_difference"] == 1.0 - 0.5 * 0.5
    assert pair["sign_p"] == mcnemar(4, 0).p


def test_parts_of_a_score_difference_add_up() -> None:
    (pair,) = table_rows(scored(six_papers(), strong_and_weak), "pairs")
    # (1 - 0.5)(1 + 0.5)/2 by recall, (1 - 0.5)(1 + 0.5)/2 by accuracy
    assert pair["recall_part"] == 0.375
    assert pair["accuracy_part"] == 0.375


def test_mcnemar_counts_questions_that_both_answered() -> None:
    (pair,) = table_rows(scored(six_papers(), strong_and_weak), "pairs")
    # on four shared papers the weak model is asked two of the four questions
    assert pair["questions"] == 8
    assert pair["mcnemar_p"] == round12(mcnemar(4, 0).p)


def test_holm_corrects_over_all_pairs_of_the_run() -> None:
    def answer(task: Task) -> str:
        if task.stage == "extract":
            return '["rs1", "rs2"]'
        skill = {"a": 9, "b": 3, "c": 1}[task.model]
        return "b" if int(task.key[-1]) <= skill else "a"

    pairs = table_rows(scored(six_papers(), answer, ("a", "b", "c")), "pairs")
    raw = [float(pair["sign_p"] or 0) for pair in pairs]
    assert len(pairs) == 3
    assert [pair["sign_p_holm"] for pair in pairs] == list(holm(raw))


def test_pair_without_a_shared_paper_is_undefined_and_does_not_crash() -> None:
    def answer(task: Task) -> str | None:
        return '["rs1"]' if task.model == "strong" else None

    data = dataset({"PMC1": ["rs1"]})
    (pair,) = table_rows(scored(data, answer), "pairs")
    assert pair["papers"] == 0
    assert pair["avg_paper_score_difference"] is None
    assert pair["sign_p"] is None
    assert pair["sign_p_holm"] is None


def test_models_without_a_scored_paper_stand_beside_others() -> None:
    card = scored(
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
    forward = scored(six_papers(), strong_and_weak)
    data = six_papers()
    backward = InvestigationDataset(
        settings=data.settings,
        bench=data.bench[::-1],
        papers=data.papers,
        questions=data.questions,
        sentences={},
    )
    for model in ("strong", "weak"):
        assert metrics(forward, model) == metrics(
            scored(backward, strong_and_weak), model
        )


def test_one_paper_bounds_little_and_few_have_a_note() -> None:
    one = dataset({"PMC1": ["rs1"]})
    alone = metrics(scored(one, lambda _: '["rs1"]', ("m",)), "m")["avg_variant_recall"]
    assert (alone.value, alone.lo, alone.hi) == (1.0, 0.025, 1.0)
    few = metrics(scored(six_papers(), strong_and_weak), "weak")["avg_paper_score"]
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
    card = scored(six_papers(), in_replicates, ("m",), replicates=3)
    found = metrics(card, "m")
    assert found["papers_scored"].value == 6
    for replicate in (1, 2, 3):
        assert found[f"replicate.{replicate}.papers_scored"].value == 5
    # of PMC1 and PMC2 one good replicate is left, of PMC3 two, of the others all
    good, bad = 1.0, 0.5 * 0.5
    by_paper = [(good + bad) / 2] * 2 + [good] + [(2 * good + bad) / 3] * 3
    assert found["avg_paper_score"].value == pytest.approx(statistics.fmean(by_paper))


def test_spread_over_replicates() -> None:
    card = scored(six_papers(), in_replicates, ("m",), replicates=3)
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
    names = artifact_texts(scored(six_papers(), in_replicates, ("m",), replicates=2))
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
