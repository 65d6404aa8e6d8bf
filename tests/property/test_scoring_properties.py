"""What holds of every score, whatever models say."""

from __future__ import annotations

import os
import random
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.kit.testing import MemoryAnswers, artifact_texts, table_rows
from jobs.paper_investigation.data import InvestigationDataset
from jobs.paper_investigation.job import job
from runner.job import Task
from runner.scorecard import Metric, Scorecard
from tests.jobs.paper_investigation.small_datasets import choice, dataset

VARIANTS = ("rs1", "RS1", "rs2", "CYP2C9*2", "cyp2c9 *2", "NAT2 slow acetylator")
PAPERS = ("PMC1", "PMC2", "PMC3")
ROUNDS = 1_000 if os.environ.get("SIFTLOG_PROVE") else 100

lists = st.one_of(
    st.lists(st.sampled_from((*VARIANTS, "rs99")), max_size=5).map(
        lambda names: "[" + ", ".join(f'"{name}"' for name in names) + "]"
    ),
    st.sampled_from(("", "none", None)),
)
letters = st.sampled_from(("a", "b", "Answer: B", "a b", "", None))


@st.composite
def runs(draw: st.DrawFn) -> tuple[InvestigationDataset, dict[str, str | None]]:
    """A small dataset, and what each of two models says to each of its tasks."""
    bench = {
        pmcid: draw(st.lists(st.sampled_from(VARIANTS), min_size=1, max_size=4))
        for pmcid in PAPERS
    }
    questions = [
        choice(pmcid, ", ".join(names), f"{pmcid}{number}")
        for pmcid in PAPERS
        for number, names in enumerate(
            draw(st.lists(st.lists(st.sampled_from(VARIANTS), min_size=1), max_size=4))
        )
    ]
    data = dataset(
        bench,
        questions,
        boot_b=20,
        variant_case=draw(st.sampled_from(("fold", "keep"))),
        variant_link=draw(st.sampled_from(("split", "whole"))),
        max_questions_per_variant=draw(st.integers(0, 2)),
    )
    said = {
        f"{model} {key}": draw(strategy)
        for model in ("one", "two")
        for keys, strategy in (
            (PAPERS, lists),
            ([f"{q.pmcid}/{q.key}" for q in questions], letters),
        )
        for key in keys
    }
    return data, said


def scored(data: InvestigationDataset, said: dict[str, str | None]) -> Scorecard:
    def answer(task: Task) -> str | None:
        return said[f"{task.model} {task.key}"]

    answers = MemoryAnswers.of_run(job, data, answer, ("one", "two"))
    return job.score(data, answers)


def metrics(card: Scorecard, model: str) -> dict[str, Metric]:
    return {metric.path: metric for metric in card.models[model]}


def number(value: object) -> float:
    assert isinstance(value, int | float)
    return float(value)


@settings(max_examples=ROUNDS)
@given(runs())
def test_a_score_never_exceeds_recall(
    run: tuple[InvestigationDataset, dict[str, str | None]],
) -> None:
    card = scored(*run)
    for row in table_rows(card, "papers"):
        if row["paper_score"] is not None:
            assert row["variant_recall"] is not None
            assert number(row["paper_score"]) <= number(row["variant_recall"]) + 1e-12
    for model in card.models:
        found = metrics(card, model)
        score, recall = found["avg_paper_score"], found["avg_variant_recall"]
        if score.value is not None and recall.value is not None:
            assert score.value <= recall.value + 1e-12


@settings(max_examples=ROUNDS)
@given(runs())
def test_every_planned_question_is_answered_missing_or_of_no_scored_paper(
    run: tuple[InvestigationDataset, dict[str, str | None]],
) -> None:
    card = scored(*run)
    assert (card.missing, card.stale) == (0, 0)
    for model in card.models:
        found = metrics(card, model)
        rows = [r for r in table_rows(card, "questions") if r["model"] == model]
        answered = found["pipeline.TOTAL.questions"].value
        missing = found["pipeline.TOTAL.missing"].value
        assert answered is not None
        assert missing is not None
        assert len(rows) == answered + missing
        keys = [(row["pmcid"], row["question_id"]) for row in rows]
        assert len(set(keys)) == len(keys)
        links = sum(number(row["links"]) for row in rows if row["missing"] is None)
        assert links == found["pipeline.TOTAL.links"].value


@settings(max_examples=ROUNDS)
@given(runs(), st.randoms(use_true_random=False))
def test_the_order_of_papers_changes_no_digit(
    run: tuple[InvestigationDataset, dict[str, str | None]], chance: random.Random
) -> None:
    data, said = run
    bench = list(data.bench)
    chance.shuffle(bench)
    forward, shuffled = (
        scored(data, said),
        scored(replace(data, bench=tuple(bench)), said),
    )
    assert forward.models == shuffled.models
    assert table_rows(forward, "pairs") == table_rows(shuffled, "pairs")


@settings(max_examples=ROUNDS)
@given(runs())
def test_the_parts_of_each_difference_add_up(
    run: tuple[InvestigationDataset, dict[str, str | None]],
) -> None:
    (pair,) = table_rows(scored(*run), "pairs")
    if pair["papers"]:
        parts = number(pair["recall_part"]) + number(pair["accuracy_part"])
        assert abs(parts - number(pair["avg_paper_score_difference"])) < 1e-12


@settings(max_examples=ROUNDS)
@given(runs())
def test_scoring_again_gives_the_same_bytes(
    run: tuple[InvestigationDataset, dict[str, str | None]],
) -> None:
    first, second = scored(*run), scored(*run)
    assert first.models == second.models
    assert first.summary == second.summary
    assert first.findings == second.findings
    assert artifact_texts(first) == artifact_texts(second)
