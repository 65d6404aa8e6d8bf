"""Whatever happens to a list, nothing moves under the cursor.

What is said about a list is true while it grows and after it has.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.query import parse_query
from store.read.tasks import TaskListStep, TaskOrder
from tui.widgets.scrolling import CursorMove, PageRequest, Pages, Viewport
from tui.widgets.task_list import TaskList


def _read(pages: Pages[str], first: int, last: int, *, is_upward: bool = False) -> int:
    """Answer all that is asked for; say how many pages that were."""
    count = 0
    while ask := pages.next_request(first, last, is_upward=is_upward):
        assert pages.put(ask, {number: f"row {number}" for number in ask.numbers})
        count += 1
    return count


def _pages(count: int, *, size: int = 10, kept: int = 4) -> Pages[str]:
    pages: Pages[str] = Pages(size=size, max_pages=kept)
    pages.relist(range(1, count + 1))
    return pages


def test_what_is_in_view_is_read_first_and_then_what_comes_next() -> None:
    pages = _pages(100)
    asked = []
    while ask := pages.next_request(15, 25):
        asked.append(ask.page)
        pages.put(ask, {})
    assert asked == [1, 2, 3]
    upward = pages.next_request(15, 25, is_upward=True)
    assert upward is not None
    assert upward.page == 0


def test_both_ends_are_read_ahead_once_the_list_is_whole() -> None:
    pages = _pages(100, kept=8)
    pages.is_growing = True
    assert [ask.page for ask in _asks(pages, 45, 50)] == [4, 5, 0]
    pages.is_growing = False
    assert [ask.page for ask in _asks(pages, 45, 50)] == [9]


def _asks(pages: Pages[str], first: int, last: int) -> list[PageRequest]:
    """Answer all that is asked for."""
    asks = []
    while ask := pages.next_request(first, last):
        asks.append(ask)
        pages.put(ask, {})
    return asks


def test_a_row_is_there_once_it_has_been_read() -> None:
    pages = _pages(25)
    ask = pages.next_request(20, 25)
    assert ask is not None
    assert pages.row(24) is None
    pages.put(ask, {number: f"row {number}" for number in ask.numbers})
    assert pages.row(24) == "row 25"
    assert pages.row(25) is None
    assert pages.row(0) is None


def test_a_row_that_is_not_found_stays_unknown() -> None:
    pages = _pages(2)
    ask = pages.next_request(0, 2)
    assert ask is not None
    pages.put(ask, {1: "row 1"})
    assert (pages.row(0), pages.row(1)) == ("row 1", None)
    assert pages.next_request(0, 2) is None


def test_only_one_page_is_asked_for_at_a_time() -> None:
    pages = _pages(100)
    ask = pages.next_request(5, 15)
    assert ask is not None
    assert pages.next_request(5, 15) is None
    pages.give_up(ask)
    assert pages.next_request(5, 15) is not None


def test_a_page_that_has_gone_by_is_not_waited_for() -> None:
    pages = _pages(100)
    passed = pages.next_request(0, 10)
    assert passed is not None
    seen = pages.next_request(50, 60)
    assert seen is not None
    assert seen.page == 5
    assert not pages.put(passed, {1: "row 1"})
    pages.give_up(passed)
    assert pages.put(seen, {51: "row 51"})
    assert (pages.row(0), pages.row(50)) == (None, "row 51")


def test_what_is_read_ahead_is_waited_for_where_nothing_in_view_is_missing() -> None:
    pages = _pages(100)
    first = pages.next_request(0, 10)
    assert first is not None
    pages.put(first, {})
    ahead = pages.next_request(0, 10)
    assert ahead is not None
    assert ahead.page == 1
    assert pages.next_request(0, 10) is None


def test_an_answer_to_another_list_is_dropped() -> None:
    pages = _pages(10)
    ask = pages.next_request(0, 10)
    assert ask is not None
    pages.relist(range(100, 110))
    assert not pages.put(ask, {1: "row 1"})
    assert pages.row(0) is None
    _read(pages, 0, 10)
    assert pages.row(0) == "row 100"


def test_an_old_answer_to_a_page_that_grew_is_dropped() -> None:
    pages = _pages(5)
    ask = pages.next_request(0, 10)
    assert ask is not None
    pages.extend([6, 7])
    assert not pages.put(ask, {})
    _read(pages, 0, 10)
    assert pages.row(6) == "row 7"


def test_a_page_that_grew_is_shown_as_far_as_it_was_known() -> None:
    pages = _pages(5)
    _read(pages, 0, 10)
    pages.extend([6])
    assert (pages.row(4), pages.row(5)) == ("row 5", None)
    assert _read(pages, 0, 10) == 1
    assert pages.row(5) == "row 6"


def test_expired_rows_are_shown_until_the_new_ones_come() -> None:
    pages = _pages(10)
    _read(pages, 0, 10)
    pages.expire()
    assert pages.row(3) == "row 4"
    ask = pages.next_request(0, 10)
    assert ask is not None
    pages.put(ask, dict.fromkeys(ask.numbers, "new"))
    assert pages.row(3) == "new"


def test_nothing_is_asked_of_an_empty_list() -> None:
    assert Pages[str]().next_request(0, 40) is None
    pages = _pages(0)
    pages.extend(())
    assert pages.next_request(0, 40) is None


@given(st.lists(st.tuples(st.integers(0, 999), st.booleans()), max_size=60))
def test_memory_is_bounded_and_the_view_is_always_whole(
    visits: list[tuple[int, bool]],
) -> None:
    pages = _pages(1_000)
    for top, is_upward in visits:
        _read(pages, top, top + 15, is_upward=is_upward)
        last = min(1_000, top + 15)
        assert [pages.row(at) for at in range(top, last)] == [
            f"row {at + 1}" for at in range(top, last)
        ]
        assert len(pages._pages) <= 4


MOVES = st.sampled_from(CursorMove)
HEIGHT = 7


@given(st.lists(MOVES, max_size=50), st.integers(1, 100), st.integers(1, 30))
def test_the_cursor_is_always_a_row_in_view(
    moves: list[CursorMove], count: int, height: int
) -> None:
    viewport = Viewport()
    for move in moves:
        viewport = viewport.moved(move, count, height)
        assert 0 <= viewport.cursor < count
        assert viewport.top <= viewport.cursor < viewport.top + height
        assert 0 <= viewport.top <= max(0, count - height)


def _bigger(numbers: Sequence[int], added: set[int]) -> list[int]:
    return sorted({*numbers, *added})


@given(st.lists(MOVES | st.sets(st.integers(0, 500), min_size=1), max_size=30))
def test_no_insertion_moves_the_row_under_the_cursor(
    course: list[CursorMove | set[int]],
) -> None:
    numbers: list[int] = list(range(100, 140))
    viewport = Viewport()
    for step in course:
        if isinstance(step, CursorMove):
            viewport = viewport.moved(step, len(numbers), HEIGHT)
            continue
        before, line = numbers[viewport.cursor], viewport.cursor - viewport.top
        new = _bigger(numbers, step)
        viewport = viewport.relisted(numbers, new, HEIGHT)
        assert new[viewport.cursor] == before
        if line <= viewport.cursor <= len(new) - HEIGHT + line:
            assert viewport.cursor - viewport.top == line
        numbers = new


@given(st.lists(st.integers(0, 99), unique=True, min_size=1), st.data())
def test_growing_at_the_end_moves_nothing(more: list[int], data: st.DataObject) -> None:
    pages = _pages(30)
    at = data.draw(st.integers(0, 29))
    _read(pages, at, at + 1)
    held = pages.row(at)
    pages.extend(more)
    assert pages.numbers[at] == at + 1
    assert pages.row(at) == held == f"row {at + 1}"
    assert len(pages) == 30 + len(more)


@pytest.mark.parametrize(
    ("move", "viewport"),
    [
        (CursorMove.DOWN, Viewport(21, 15)),
        (CursorMove.UP, Viewport(19, 15)),
        (CursorMove.HALF_DOWN, Viewport(23, 17)),
        (CursorMove.HALF_UP, Viewport(17, 15)),
        (CursorMove.PAGE_DOWN, Viewport(26, 20)),
        (CursorMove.PAGE_UP, Viewport(14, 14)),
        (CursorMove.FIRST, Viewport(0, 0)),
        (CursorMove.LAST, Viewport(99, 93)),
    ],
)
def test_every_key_moves_the_cursor_and_scrolls_as_little_as_it_can(
    move: CursorMove, viewport: Viewport
) -> None:
    assert Viewport(20, 15).moved(move, 100, HEIGHT) == viewport


def test_a_row_that_is_gone_leaves_the_cursor_where_it_is() -> None:
    assert Viewport(5, 2).relisted(
        range(10), [0, 1, 2, 3, 4, 6, 7, 8, 9], 4
    ) == Viewport(5, 2)
    assert Viewport(5, 2).relisted(range(10), [1, 2], 4) == Viewport(1, 0)
    assert Viewport(5, 2).relisted(range(10), [], 4) == Viewport(0, 0)
    assert Viewport().relisted([], range(3), 4) == Viewport()


def test_asks_follow_each_other_without_gaps() -> None:
    pages = _pages(35)
    asks: list[PageRequest] = []
    while ask := pages.next_request(0, 35):
        asks.append(ask)
        pages.put(ask, {})
    assert [ask.page for ask in asks] == [0, 1, 2, 3]
    assert [list(pages.positions(ask)) for ask in asks[2:]] == [
        list(range(20, 30)),
        list(range(30, 35)),
    ]
    assert all(a.numbers[-1] + 1 == b.numbers[0] for a, b in pairwise(asks))


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
        ({"listed_n": 3}, ""),
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
