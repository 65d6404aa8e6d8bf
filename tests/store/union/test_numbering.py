"""Events of a log with the union's numbers of their tasks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path

import pytest

from store.database import LogReader, open_reader
from store.errors import CorruptLog
from store.fold import TaskEvent
from store.log.integrity import EventRow
from store.union.numbering import TaskNumbers
from tests.store.samples import plan, task
from tests.store.union.union_logs import shard_log, shard_started, union_of

SECOND = 2
"""The part of the log that was merged after the first one."""


@pytest.fixture
def union(tmp_path: Path) -> Iterator[LogReader]:
    """Two logs, a task each: both of them call it 1."""
    logs = [
        shard_log(
            tmp_path,
            f"{i}-2",
            [shard_started(i, 2), plan([task(1, key=f"item-{i}")])],
        )
        for i in range(2)
    ]
    with open_reader(union_of(tmp_path / "union.db", logs)) as reader:
        yield reader


def row(facts: bytes) -> EventRow:
    return EventRow(3, 3, 1, "task_completed", 1, 1, 1, None, 0, 0, facts, None)


@pytest.mark.parametrize("kind", TaskEvent.__args__)
def test_facts_about_one_task_begin_with_its_number(kind: type) -> None:
    assert fields(kind)[0].name == "task"


def test_only_the_number_changes_and_what_a_later_siftlog_knows_stays(
    union: LogReader,
) -> None:
    rest = b',"attempt":1,"unparsed":null,"later":{"task":1}}'
    stored = row(b'{"task":1' + rest)
    task, facts = TaskNumbers(union, SECOND, [stored], tasks=2).of_one(stored, 1)
    assert facts == b'{"task":2' + rest
    assert task == 2


def test_facts_about_another_task_than_their_row_says_are_refused(
    union: LogReader,
) -> None:
    stored = row(b'{"task":12,"attempt":1,"unparsed":null}')
    numbers = TaskNumbers(union, SECOND, [stored], tasks=2)
    with pytest.raises(CorruptLog, match="event 3 of a log is not about task 1, as"):
        numbers.of_one(stored, 1)
