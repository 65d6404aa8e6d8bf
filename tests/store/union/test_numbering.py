"""Events of a log with the union's numbers of their tasks.

What the union of a run's logs says of tasks that one of them has, or several.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from store.database import LogReader, WriterLock, connect, open_reader
from store.errors import CorruptLog, StoreError
from store.events import Entry, Event, RunFinished, TaskCompleted, TasksReopened
from store.fold import TaskEvent
from store.log.integrity import EventRow
from store.read.live import union_progress
from store.read.status import status
from store.read.usage import spending
from store.runs import RunFolder
from store.scoring import families
from store.tables import reply, tasks_numbered
from store.task import TaskState
from store.time_travel import LogPrefix, moment_of
from store.union.numbering import TaskNumbers, find_answers
from store.union.source import LocalLogSource
from store.verify import verify
from tests.nobody import as_nobody, open_to_others
from tests.replacing import replace
from tests.store.logs import edit, written
from tests.store.samples import RUN_STARTED, completed, failed, plan, started, task
from tests.store.samples import reply as answer
from tests.store.union.union_logs import (
    Beginning,
    merge,
    outcome,
    shard_log,
    shard_started,
    union_of,
)

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
    assert kind.__struct_fields__[0] == "task"


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


FINISHED = RunFinished(completed=1, failed=0, skipped=0)
PAID = (answer(1, b"paid", cost_usd=0.25), completed(1))
NAME = ("ask", "item-0", "m-large", 1)


def placed(*places: int) -> Entry:
    """A shard's first-stage tasks, by their places in the whole plan."""
    entry = plan([task(i, key=f"item-{at}") for i, at in enumerate(places, 1)])
    return replace(entry, event=replace(entry.event, places=list(places)))  # type: ignore[type-var]


def adopted(number: int, body: bytes, origin: str) -> tuple[Entry | Event, ...]:
    """What a log records of another's answer."""
    return (
        replace(started(number), adopted=True),
        answer(number, body, cost_usd=0.0, cached=True, adopted=origin),
        TaskCompleted(task=number, attempt=1, adopted=True),
    )


def first_task(reader: LogReader) -> tuple[TaskState, bytes | None, float | None]:
    """State, reply and cost."""
    (row,) = tasks_numbered(reader, [1])
    stored = reply(reader, 1)
    return row.state, stored and stored.body, row.cost_usd


def test_an_answer_counts_once_and_is_paid_as_often_as_it_was(tmp_path: Path) -> None:
    """A log that was lost with its disk comes back after its work was done again."""
    head = (shard_started(0, 1), placed(0))
    lost = shard_log(tmp_path, "a", head, [started(1)], PAID)
    again = shard_log(
        tmp_path,
        "b",
        head,
        [started(1), failed(1)],
        [started(1, 2)],
        [answer(1, b"again", 2, cost_usd=0.5), completed(1, 2)],
        [FINISHED],
    )
    union = union_of(tmp_path / "union.db", [again])
    with open_reader(union) as reader:
        assert first_task(reader) == (TaskState.COMPLETED, b"again", 0.5)
    union_of(union, [lost])
    with open_reader(union) as reader:
        # the lower attempt is the one that counts, whenever it comes
        assert first_task(reader) == (TaskState.COMPLETED, b"paid", 0.75)
        assert spending(reader).spent_usd == 0.75
        stand, seen = union_progress(reader), status(reader)
    assert stand is not None
    assert (stand.repeated, seen.tasks.planned, seen.tasks.completed) == (1, 1, 1)
    assert (seen.attempts.started, seen.attempts.answered) == (3, 2)
    assert seen.signs.phase == "run_finished"


def test_merging_again_and_late_pieces_change_nothing_that_was_said(
    tmp_path: Path,
) -> None:
    logs = [
        shard_log(
            tmp_path, "a", [shard_started(0, 1), placed(0, 1)], [started(1)], PAID
        ),
        shard_log(
            tmp_path, "b", [shard_started(0, 1), placed(1, 0)], [started(2)],
            [answer(2, b"other", cost_usd=0.5)], [completed(2)],
            [started(1), failed(1)],
        ),
    ]  # fmt: skip
    whole = outcome(union_of(tmp_path / "whole.db", logs))
    union = tmp_path / "pieces.db"
    for upto in range(2, 12):
        for log in logs:
            with open_reader(log) as reader:
                merge(union, Beginning(LocalLogSource(reader), upto))
    assert outcome(union) == whole
    with open_reader(union) as reader:
        assert verify(reader).is_sound
        before = status(reader).last_seq
    union_of(union, logs)
    with open_reader(union) as reader:
        assert status(reader).last_seq == before


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_what_was_adopted_is_counted_where_it_was_paid_for(
    tmp_path: Path, order: tuple[int, ...]
) -> None:
    first = shard_log(
        tmp_path, "0-1", [shard_started(0, 1), placed(0)], [started(1)], PAID
    )
    with open_reader(union_of(tmp_path / "known.db", [first])) as reader:
        (found,) = find_answers(reader, [NAME])
        assert find_answers(reader, [("ask", "item-9", "m-large", 1)]) == [None]
    assert found is not None
    assert (found.body, found.request_sha256) == (b"paid", f"{1:032x}{1:032x}")
    second = shard_log(
        tmp_path, "0-2", [shard_started(0, 2), placed(0)],
        adopted(1, found.body, found.origin),
    )  # fmt: skip
    logs = [first, second]
    union = union_of(tmp_path / "union.db", [logs[i] for i in order])
    with open_reader(union) as reader:
        assert first_task(reader) == (TaskState.COMPLETED, b"paid", 0.25)
        seen, stand = status(reader), union_progress(reader)
        (known,) = find_answers(reader, [NAME])
    assert (seen.attempts.started, seen.attempts.answered, seen.attempts.cached) == (
        1,
        1,
        0,
    )
    assert stand is not None
    assert stand.repeated == 0
    assert known == found
    # should the log that paid be gone, the copy is as good, and names it
    with open_reader(union_of(tmp_path / "copy.db", [second])) as reader:
        assert first_task(reader) == (TaskState.COMPLETED, b"paid", 0.0)
        assert [copy and copy.origin for copy in find_answers(reader, [NAME])] == [
            found.origin
        ]


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_calls_of_a_lost_log_may_be_billed(
    tmp_path: Path, order: tuple[int, ...]
) -> None:
    head = (shard_started(0, 1), placed(0))
    calling = replace(started(1), worst_usd=0.125)
    logs = [
        shard_log(tmp_path, "a", head, [calling]),
        shard_log(tmp_path, "b", head, [calling], PAID),
    ]
    with open_reader(union_of(tmp_path / "lost.db", logs[:1])) as reader:
        assert spending(reader).in_flight_usd == 0.125  # it may still be at work
    union = union_of(tmp_path / "union.db", [logs[i] for i in order])
    with open_reader(union) as reader:
        money, seen = spending(reader), status(reader)
    assert (money.spent_usd, money.possible_usd, money.in_flight_usd) == (
        0.25,
        0.125,
        0,
    )
    assert seen.attempts.unknown == 1


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_task_that_a_person_had_asked_again_has_the_later_answer(
    tmp_path: Path, order: tuple[int, ...]
) -> None:
    first = shard_log(
        tmp_path, "0-1", [shard_started(0, 1), placed(0)], [started(1)], PAID
    )
    second = shard_log(
        tmp_path, "0-2", [shard_started(0, 2), placed(0)], adopted(1, b"paid", "w:1"),
        [TasksReopened(tasks=[1], by="a person")],
    )  # fmt: skip
    logs = [first, second]
    union = union_of(tmp_path / "open.db", [logs[i] for i in order])
    with open_reader(union) as reader:
        assert first_task(reader)[:2] == (TaskState.QUEUED, None)
        assert find_answers(reader, [NAME]) == [None]
    asked_again = shard_log(
        tmp_path, "1-2", [shard_started(0, 2), placed(0)], adopted(1, b"paid", "w:1"),
        [TasksReopened(tasks=[1], by="a person")], [started(1, 2)],
        [answer(1, b"better", 2, cost_usd=0.5), completed(1, 2)],
    )  # fmt: skip
    logs[1] = asked_again
    union = union_of(tmp_path / "union.db", [logs[i] for i in order])
    with open_reader(union) as reader:
        assert first_task(reader) == (TaskState.COMPLETED, b"better", 0.75)


def test_families_come_in_the_order_of_the_whole_plan(tmp_path: Path) -> None:
    logs = [
        shard_log(tmp_path, "1-2", [shard_started(1, 2), placed(5, 0, 3)]),
        shard_log(
            tmp_path, "0-2", [shard_started(0, 2), placed(4, 1)],
            [plan([task(3, key="late", stage="judge", root=2)], first=3)],
        ),
    ]  # fmt: skip
    with open_reader(union_of(tmp_path / "union.db", logs)) as reader:
        keys = [row.key for row, _ in families(reader)]
    assert keys == ["item-0", "item-1", "late", "item-3", "item-4", "item-5"]


def test_a_run_has_ended_when_each_of_its_slices_has(tmp_path: Path) -> None:
    half = shard_log(tmp_path, "0-2", [shard_started(0, 2), placed(0)], [FINISHED])
    dead = shard_log(tmp_path, "1-2", [shard_started(1, 2), placed(1)])
    rest = shard_log(tmp_path, "0-1", [shard_started(0, 1), placed(0, 1)], [FINISHED])
    union = union_of(tmp_path / "union.db", [half])
    with open_reader(union) as reader:
        seen, stand = status(reader), union_progress(reader)
    assert seen.signs.phase == "run_drained"
    assert seen.why is not None
    assert "512 of 1024 slices have not been started" in seen.why
    assert stand is not None
    assert str(stand.missing) == "512-1023"
    union_of(union, [dead])
    with open_reader(union) as reader:
        assert status(reader).signs.phase == "run_started"
    union_of(union, [rest])
    with open_reader(union) as reader:
        assert status(reader).signs.phase == "run_finished"


def test_the_past_of_a_union_is_what_it_said_then(tmp_path: Path) -> None:
    logs = [
        shard_log(
            tmp_path, "0-2", [shard_started(0, 2), placed(0)], [started(1)], PAID
        ),
        shard_log(
            tmp_path, "1-2", [shard_started(1, 2), placed(0)], [started(1)], PAID
        ),
    ]
    union = union_of(tmp_path / "union.db", logs[:1])
    before = outcome(union)
    with open_reader(union) as reader:
        seq = status(reader).last_seq
    union_of(union, logs[1:])
    assert outcome(union) != before
    with LogPrefix(union) as prefix, open_reader(union) as reader:
        prefix.move_to(moment_of(reader, seq))
        with prefix.open_reader() as past:
            assert first_task(past)[0] is TaskState.COMPLETED
            assert status(past).attempts.started == 1
        prefix.move_to(moment_of(reader, status(reader).last_seq))
        with prefix.open_reader() as present:
            assert status(present).attempts.started == 2


def test_a_log_that_was_changed_since_is_refused(tmp_path: Path) -> None:
    head = (shard_started(0, 1), placed(0))
    log = shard_log(tmp_path, "0-1", head)
    forked = tmp_path / "log.copy.db"
    shutil.copyfile(log, forked)
    union = union_of(tmp_path / "union.db", [log])
    edit(log, "DROP TRIGGER chain_no_update", "UPDATE chain SET h = zeroblob(32)")
    with pytest.raises(CorruptLog, match="do not follow those that were merged"):
        union_of(tmp_path / "fresh.db", [log])
    union_of(union, [forked])
    with open_reader(union) as reader:
        assert verify(reader).is_sound
    other = written(tmp_path / "log.other.db", [replace(RUN_STARTED, run_id="r2")])
    edit(other, "UPDATE run SET run_id = 'r2'")
    with pytest.raises(StoreError, match="there is one of run 'r2'"):
        union_of(union, [other])


def test_readers_of_a_split_run_merge_first_and_one_at_a_time(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    shard_log(tmp_path, "0-2", [shard_started(0, 2), placed(0)], [started(1)], PAID)
    said = folder.refresh()
    assert said is not None
    assert (said.logs, said.events) == (1, 5)
    shard_log(tmp_path, "1-2", [shard_started(1, 2), placed(1)], [FINISHED])
    lock = WriterLock(folder.lock)
    lock.acquire()
    assert folder.refresh() is None
    assert not folder.is_alive()
    lock.release()
    said = folder.refresh()
    assert said is not None
    assert (said.logs, said.events) == (2, 3)
    lock.acquire()  # a look that finds nothing new needs none
    said = folder.refresh()
    lock.release()
    assert said is not None
    assert (said.logs, said.events) == (2, 0)
    with folder.open_reader() as reader:
        assert status(reader).tasks.planned == 2


def test_the_log_of_an_unsplit_run_is_not_merged_into(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    written(folder.log, [RUN_STARTED])
    shard_log(tmp_path, "0-2", [shard_started(0, 2)])
    with pytest.raises(StoreError, match="the log of a run that is not split"):
        folder.refresh()


def test_a_merge_that_is_cut_off_goes_on_where_it_was(tmp_path: Path) -> None:
    log = shard_log(
        tmp_path, "0-1", [shard_started(0, 1), placed(0)], [started(1)], PAID
    )
    union = tmp_path / "union.db"
    with open_reader(log) as reader:
        merge(union, Beginning(LocalLogSource(reader), 3))
    with closing(connect(union)) as conn:
        conn.execute("PRAGMA user_version = 7")  # as a crash leaves a WAL behind
    whole = outcome(union_of(tmp_path / "whole.db", [log]))
    assert outcome(union_of(union, [log])) == whole


def test_a_folder_that_may_only_be_read_is_seen_as_it_was_left(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    folder = RunFolder(tmp_path_factory.mktemp("shown") / "r1")
    folder.path.mkdir()
    shard_log(folder.path, "0-2", [shard_started(0, 2), placed(0)])
    unseen = RunFolder(folder.path.parent / "r2")
    unseen.path.mkdir()
    shard_log(unseen.path, "0-2", [shard_started(0, 2), placed(0)])
    folder.refresh()
    shard_log(folder.path, "1-2", [shard_started(1, 2), placed(1)])
    for each in (folder, unseen):
        open_to_others(each.path)

    def look() -> None:
        if folder.refresh() is not None:
            raise AssertionError
        with folder.open_reader() as reader:
            if status(reader).tasks.planned != 1:
                raise AssertionError
        with pytest.raises(StoreError, match="cannot be merged there"):
            unseen.refresh()

    assert as_nobody(look) == 0
