"""A list of tasks holds every one of them once, in the order that it names."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from store.database import open_reader
from store.events import Entry, Event
from store.query import parse_query
from store.read.tasks import TaskOrder, changed_tasks, list_tasks, tasks
from store.tables import last_seq
from tests.store.logs import COURSE, written
from tests.store.samples import RUN_STARTED, completed, plan_first, started
from tests.store.samples import reply as answer


def _whole(
    conn: sqlite3.Connection, expression: str, order: TaskOrder, limit: int
) -> list[int]:
    query = parse_query(expression)
    step = list_tasks(conn, query, order, limit=limit)
    numbers = list(step.numbers)
    while step.after is not None:
        step = list_tasks(conn, query, order, after=step.after, limit=limit)
        numbers += step.numbers
    return numbers


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
@pytest.mark.parametrize("expression", ["", "stage:ask", "-state:skipped", "item:none"])
def test_a_list_by_number_is_what_the_filter_lets_through(
    path: Path, expression: str, limit: int
) -> None:
    with open_reader(written(path, *COURSE)) as reader:
        found = _whole(reader, expression, TaskOrder.NUMBER, limit)
        rows = tasks(reader, parse_query(expression))
    assert found == [row.task for row in rows]


@pytest.mark.parametrize("limit", [1, 2, 100])
def test_the_newest_first_is_what_changed_last(path: Path, limit: int) -> None:
    with open_reader(written(path, *COURSE)) as reader:
        found = _whole(reader, "-state:skipped", TaskOrder.NEWEST, limit)
        rows = tasks(reader, parse_query("-state:skipped"))
    newest = sorted(rows, key=lambda row: (row.updated_seq, row.task), reverse=True)
    assert found == [row.task for row in newest]


def test_a_top_list_begins_with_the_most(path: Path) -> None:
    with open_reader(written(path, *COURSE)) as reader:
        assert _whole(reader, "", TaskOrder.DEAREST, 1) == [3, 1]
        assert _whole(reader, "", TaskOrder.MOST_TRIED, 1) == [2, 3, 1, 5]
        assert set(_whole(reader, "", TaskOrder.SLOWEST, 1)) == {1, 3}


def test_a_plain_list_of_any_length_holds_no_numbers_in_memory(path: Path) -> None:
    course = ([RUN_STARTED], [plan_first(5_000)])
    with open_reader(written(path, *course)) as reader:
        step = list_tasks(reader, parse_query(""))
    assert step.numbers == range(1, 5_001)
    assert (step.after, step.seq) == (None, 2)


def test_what_changed_since_a_list_was_read_can_be_asked(path: Path) -> None:
    done: list[Entry | Event] = [started(2), answer(2, b"two"), completed(2)]
    log = written(path, [RUN_STARTED], [plan_first(3)], done)
    with open_reader(log) as reader:
        assert changed_tasks(reader, parse_query(""), 2) == [2]
        assert changed_tasks(reader, parse_query("state:queued"), 2) == []
        assert changed_tasks(reader, parse_query(""), last_seq(reader)) == []
        assert changed_tasks(reader, parse_query(""), 0, limit=1) == [1]
