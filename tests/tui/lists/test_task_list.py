"""What is said about a list is true while it grows and after it has."""

from __future__ import annotations

from array import array

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.query import parse_query
from store.read.tasks import TaskListStep, TaskOrder
from tui.widgets.task_list import TaskList

QUERY = parse_query("state:failed")


def _list(**changed: object) -> TaskList:
    fields: dict[str, object] = {"query": QUERY, "total": 1_000}
    return TaskList(**(fields | changed))  # type: ignore[arg-type]


def test_a_list_says_that_it_is_not_whole_yet() -> None:
    begun = _list().stepped(TaskListStep(numbers=range(200), after=(0, 200), seq=7))
    assert begun.heading == "≥ 200 of 1,000 · by number"
    whole = begun.stepped(TaskListStep(numbers=range(101), after=None, seq=9))
    assert whole.heading == "301 of 1,000 · by number"
    assert whole.seq == 7


def test_a_top_list_says_what_it_is() -> None:
    assert _list(order=TaskOrder.SLOWEST).heading == "top 1,000 by latency of 1,000"


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"found": 3}, ""),
        ({}, "Looking for tasks …"),
        (
            {"is_whole": True, "expression": "state:failed"},
            "No task fits state:failed: x clears the filter, / changes it.",
        ),
        (
            {"is_whole": True, "order": TaskOrder.DEAREST},
            "No task has a figure to sort by yet: s chooses another order.",
        ),
        (
            {"is_whole": True},
            "No task is planned yet: they appear here as soon as they are.",
        ),
    ],
)
def test_an_empty_list_says_why_and_what_to_do(
    changed: dict[str, object], sentence: str
) -> None:
    assert _list(**changed).emptiness == sentence


@given(st.sets(st.integers(1, 60)), st.lists(st.sets(st.integers(1, 60)), max_size=4))
def test_what_is_new_is_what_the_list_does_not_hold(
    listed: set[int], looks: list[set[int]]
) -> None:
    state = _list(is_whole=True)
    numbers = array("q", sorted(listed))
    for changed in looks:
        state = state.changed(changed, numbers)
    assert state.new == set().union(*looks) - listed


def test_in_a_sorted_list_whatever_changed_may_stand_elsewhere() -> None:
    state = _list(is_whole=True, order=TaskOrder.NEWEST).changed(
        [1, 2], array("q", [1])
    )
    assert state.news == "2 changed, press r"


def test_news_are_counted_up_to_a_bound_and_only_of_a_whole_list() -> None:
    many = _list(is_whole=True).changed(range(1_500), ())
    assert many.news == "≥ 1,500 new, press r"
    known = _list(is_whole=True).changed(range(1, 1_002), range(1, 1_001))
    assert known.news == "≥ 1 new, press r"
    assert _list(is_whole=True).changed([4], range(1, 3)).news == "1 new, press r"
    assert not _list().changed([4], ()).news
    assert not _list(is_whole=True).news
