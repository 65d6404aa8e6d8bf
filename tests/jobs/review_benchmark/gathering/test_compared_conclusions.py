"""Answers that compare a conclusion: used, missed, or about another one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from jobs.review_benchmark.asking import comparing
from jobs.review_benchmark.asking.request import carried_said
from jobs.review_benchmark.dataset import Dataset
from jobs.review_benchmark.gathering.compared import Truths, compared
from jobs.review_benchmark.rebuilt import Concluded
from jobs.review_benchmark.settings import Settings
from runner.job import Answer, TaskSpec
from runner.messages import Vectors
from tests.jobs.review_benchmark.small_review import REVIEW, answer, task

REVIEWS = tuple(replace(REVIEW, id=f"CD{n}", conclusion=f"No. {n}.") for n in range(4))
SAID = Concluded(text="It helps.")
VERDICTS: Mapping[str, str | None] = {
    "same": '{"similarity": 90, "direction": "same"}',
    "unread": "Quite alike.",
    "failed": None,
}


def data(verdict: str) -> Dataset:
    settings = {"verdict": verdict, "null_pairs": 3}
    return Dataset(settings=Settings.model_validate(settings), reviews=REVIEWS)


def asked(dataset: Dataset, said: str = SAID.text) -> list[TaskSpec]:
    return list(comparing.compared(dataset, REVIEWS[0], said, "m/x"))


@given(
    st.lists(st.sampled_from(["none", *VERDICTS]), min_size=4, max_size=4),
    st.integers(0, 4),
)
def test_each_answer_of_a_judge_is_used_once_or_counted(
    given_: list[str], others: int
) -> None:
    dataset = data("judge")
    specs = asked(dataset)
    family = [
        answer(dataset, spec, VERDICTS[kind])
        for spec, kind in zip(specs, given_, strict=True)
        if kind != "none"
    ]
    earlier = asked(dataset, "It harms.")[:others]
    family += [answer(dataset, spec, VERDICTS["same"]) for spec in earlier]
    found = compared(dataset, REVIEWS[0], "m/x", SAID, family)
    assert (found.missing, found.stale) == (given_.count("none"), others)
    assert set(found.concluded.judged) == {
        carried_said(spec.context).truth
        for spec, kind in zip(specs, given_, strict=True)
        if kind == "same"
    }
    # what is said of its own authors alone is why there is no verdict
    reasons = {"none": "open", "unread": "no_similarity", "failed": "server_error"}
    assert found.concluded.failure == reasons.get(given_[0], "")


def test_without_a_conclusion_every_comparison_is_of_another_one() -> None:
    dataset = data("judge")
    family = [answer(dataset, spec, VERDICTS["same"]) for spec in asked(dataset)]
    nothing = Concluded(failure="nothing_included")
    found = compared(dataset, REVIEWS[0], "m/x", nothing, family)
    assert (found.concluded, found.missing, found.stale) == (nothing, 0, 4)


def test_vectors_are_taken_from_whoever_has_a_readable_one() -> None:
    dataset = data("embedding")
    (spec,) = asked(dataset)
    own = vector(spec, [1.0, 2.0])
    assert compared(dataset, REVIEWS[0], "m/x", SAID, [own]).concluded.vector == (
        1.0,
        2.0,
    )
    truths = Truths(dataset=dataset, replicates=2)
    first, second, *_ = comparing.truths(dataset)
    for each in (
        vector(first, []),
        vector(first, [3.0]),
        vector(second, [4.0]),
        vector(second, [5.0]),
        vector(replace(first, key="CD0#earlier"), [6.0]),
    ):
        truths.add([each])
    assert truths.vectors == {"CD0": (3.0,), "CD1": (4.0,)}
    # four truths twice, of which four answers are there
    assert (truths.missing, truths.stale) == (4, 1)


def vector(spec: TaskSpec, numbers: list[float]) -> Answer:
    return Answer(task=task(spec), reply=Vectors.of([numbers]))
