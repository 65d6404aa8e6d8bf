"""What is decided between two models by the documents that both have finished."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.kit.comparison.sequential import decide
from runner.errors import UsageError
from runner.run.early_stopping import FinishedItems
from runner.scorecard import Comparable, ItemValues
from store.results import StoppingRule

ACCURACY = StoppingRule(metric="accuracy")


def given_values(
    papers: Sequence[Sequence[float | None]],
    *,
    kind: Literal["mean", "ratio"] = "mean",
    lower_is_better: bool = False,
) -> Comparable:
    """A model's values: papers of questions."""
    items = [f"p{p}/q{q}" for p, own in enumerate(papers) for q in range(len(own))]
    values = ItemValues(
        kind=kind,
        items=items,
        clusters=[item.partition("/")[0] for item in items],
        cluster="paper",
        first=[value for own in papers for value in own],
        second=[1.0] * len(items) if kind == "ratio" else None,
        definition="accuracy@1",
        lower_is_better=lower_is_better,
    )
    return {"accuracy": lambda: values}


def keys(papers: int) -> tuple[str, ...]:
    return tuple(f"p{p}" for p in range(papers))


WRONG, RIGHT = given_values([[0.0, 0.0]] * 40), given_values([[1.0, 1.0]] * 40)


@pytest.mark.parametrize(
    ("a", "b", "standing"),
    [
        (WRONG, RIGHT, "better"),
        (RIGHT, WRONG, "worse"),
        (RIGHT, RIGHT, "undecided"),
    ],
)
def test_whoever_is_right_is_better(
    a: Comparable, b: Comparable, standing: str
) -> None:
    look = decide(a, b, FinishedItems(keys=keys(40), is_whole=True), ACCURACY)
    assert look.verdict == standing


def test_where_lower_is_better_the_higher_is_worse() -> None:
    a = given_values([[0.0]] * 40, lower_is_better=True)
    b = given_values([[1.0]] * 40, lower_is_better=True)
    finished = FinishedItems(keys=keys(40), is_whole=True)
    assert decide(a, b, finished, ACCURACY).verdict == "worse"
    assert decide(b, a, finished, ACCURACY).verdict == "better"


def test_with_a_margin_equal_models_are_told_to_be_close() -> None:
    some = given_values([[1.0]] * 400)
    margin = StoppingRule(metric="accuracy", margin=0.1)
    look = decide(some, some, FinishedItems(keys=keys(400), is_whole=True), margin)
    assert look.verdict == "close"
    assert -0.1 < look.lo <= 0 <= look.hi < 0.1


@given(st.integers(0, 40), st.integers(0, 40))
def test_a_decision_is_the_same_however_late_one_looks(one: int, other: int) -> None:
    looks = [
        decide(WRONG, RIGHT, FinishedItems(keys=keys(n), is_whole=False), ACCURACY)
        for n in (one, other)
    ]
    decided = [look for look in looks if look.verdict != "undecided"]
    assert len({(d.clusters, d.lo, d.hi, d.difference) for d in decided}) <= 1


def test_the_last_document_waits_until_its_items_are_known_to_be_all() -> None:
    open_, whole = (
        decide(WRONG, RIGHT, FinishedItems(keys=keys(3), is_whole=is_whole), ACCURACY)
        for is_whole in (False, True)
    )
    assert (open_.clusters, whole.clusters) == (2, 3)


def test_documents_come_in_the_order_of_the_plan_and_others_are_left_out() -> None:
    a, b = given_values([[0.0]] * 5), given_values([[0.0], [1.0], [1.0], [0.0], [1.0]])
    finished = FinishedItems(keys=("p3", "p0/q0", "p0/q1", "nothing"), is_whole=True)
    look = decide(a, b, finished, ACCURACY)
    assert (look.clusters, look.difference) == (2, 0.0)


def test_a_paper_of_many_questions_weighs_as_much_as_one_of_few() -> None:
    a = given_values([[0.0] * 9, [0.0]])
    b = given_values([[1.0] * 9, [0.0]])
    look = decide(a, b, FinishedItems(keys=keys(2), is_whole=True), ACCURACY)
    assert look.difference == 0.5


def test_a_question_without_a_value_on_one_side_says_nothing() -> None:
    a, b = given_values([[0.0, None], [None]]), given_values([[1.0, 0.0], [1.0]])
    look = decide(a, b, FinishedItems(keys=keys(2), is_whole=True), ACCURACY)
    assert (look.clusters, look.difference) == (1, 1.0)


def test_documents_that_lie_scattered_in_the_plan_are_refused() -> None:
    finished = FinishedItems(keys=("p0/q0", "p1/q0", "p0/q1"), is_whole=False)
    with pytest.raises(UsageError, match="p0 are not contiguous"):
        decide(WRONG, RIGHT, finished, ACCURACY)


def test_what_cannot_be_watched_is_refused_with_what_can() -> None:
    nothing = FinishedItems(keys=(), is_whole=False)
    with pytest.raises(UsageError, match="these can: accuracy"):
        decide(WRONG, RIGHT, nothing, StoppingRule(metric="speed"))
    ratio = given_values([[1.0]], kind="ratio")
    with pytest.raises(UsageError, match="these can: none"):
        decide(ratio, ratio, nothing, ACCURACY)
    far = given_values([[7.0]])
    with pytest.raises(UsageError, match="outside of 0 to 1"):
        decide(far, far, nothing, ACCURACY)
