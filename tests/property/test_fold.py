"""Projections do not depend on how events were batched or when they were folded."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Sequence
from contextlib import closing

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store import tables
from store.database import SQL
from store.errors import IllegalMove
from store.events import (
    AttemptAnswered,
    AttemptFailed,
    AttemptsAbandoned,
    AttemptStarted,
    Entry,
    TaskCompleted,
    TasksPlanned,
)
from store.fold import Fold
from store.fold_state import RunState
from store.statements import script
from store.task import TRANSITIONS, TaskDraft, TaskState, Transition, planned_tasks
from store.verify import TABLES
from tests.store.samples import courses, task

START_US = 1_767_225_600_000_000
#: Eleven seconds, so that a course crosses minutes.
STEP_US = 11_000_000


def _tables() -> sqlite3.Connection:
    conn = sqlite3.connect(":memory:", isolation_level=None)
    for name in ("schema", "projections", "indexes"):
        for statement in script(name):
            conn.execute(statement)
    return conn


def _fold(conn: sqlite3.Connection, entries: Sequence[Entry], seq: int) -> None:
    fold = tables.load_fold(conn, (entry.event for entry in entries))
    for entry in entries:
        seq += 1
        event = entry.event
        manifest = (
            planned_tasks(entry.payload or b"")
            if isinstance(event, TasksPlanned)
            else ()
        )
        fold.apply(seq, START_US + seq * STEP_US, event, manifest)
    tables.write_fold(conn, fold, seq)


def _rows(conn: sqlite3.Connection) -> dict[str, list[tuple[object, ...]]]:
    return {table: conn.execute(SQL[f"rows_{table}"]).fetchall() for table in TABLES}


@given(entries=courses(), data=st.data())
def test_folding_in_any_batches_gives_the_rows_of_one_fold(
    entries: list[Entry], data: st.DataObject
) -> None:
    with closing(_tables()) as whole, closing(_tables()) as split:
        _fold(whole, entries, 0)
        start = 0
        while start < len(entries):
            size = data.draw(st.integers(1, len(entries) - start))
            _fold(split, entries[start : start + size], start)
            start += size
        assert _rows(split) == _rows(whole)


@given(entries=courses())
def test_counts_are_the_tasks_counted(entries: list[Entry]) -> None:
    with closing(_tables()) as conn:
        _fold(conn, entries, 0)
        rows = _rows(conn)
        counted: dict[tuple[object, ...], int] = {}
        for row in rows["task"]:
            key = (row[1], row[2], row[8])
            counted[key] = counted.get(key, 0) + 1
        assert {row[:3]: row[3] for row in rows["counts"] if row[3]} == counted


@given(entries=courses())
def test_reasons_are_those_of_the_tasks_that_have_them_now(
    entries: list[Entry],
) -> None:
    with closing(_tables()) as conn:
        _fold(conn, entries, 0)
        rows = _rows(conn)
        counted: dict[tuple[object, ...], int] = {}
        for row in rows["task"]:
            state, reason = row[8], row[18]
            if reason is not None:
                what = "skip" if state == TaskState.SKIPPED else "parse"
                counted[what, reason] = counted.get((what, reason), 0) + 1
        stored = {row[:2]: row[2] for row in rows["reason"] if row[0] != "re-ask"}
        assert {key: n for key, n in stored.items() if n} == counted


@given(entries=courses())
def test_lanes_are_their_minutes_in_sum(entries: list[Entry]) -> None:
    with closing(_tables()) as conn:
        _fold(conn, entries, 0)
        rows = _rows(conn)
        sums: dict[tuple[object, ...], list[int]] = {}
        for stage, model, _, started, succeeded, _, _, *rest in rows["minute"]:
            lane = sums.setdefault((stage, model), [0] * 5)
            for at, n in enumerate((started, succeeded, *rest)):
                lane[at] += n
        replies: dict[tuple[object, ...], int] = dict.fromkeys(sums, 0)
        for model, stage, _, n in rows["latency_hist"]:
            replies[stage, model] += n
        assert {row[:2]: row[4] for row in rows["lane"]} == replies
        assert {row[:2]: [*row[2:4], *row[5:]] for row in rows["lane"]} == sums


@given(entries=courses())
def test_what_went_wrong_by_the_minute_is_what_went_wrong_in_all(
    entries: list[Entry],
) -> None:
    with closing(_tables()) as conn:
        _fold(conn, entries, 0)
        rows = _rows(conn)
        by_outcome: Counter[object] = Counter()
        for *_, outcome, n, _ in rows["failure"]:
            by_outcome[outcome] += n
        final = sum(row[4] for row in rows["error_class"])
        attempts = sum(row[3] for row in rows["error_class"])
        assert (by_outcome["final"], by_outcome["retried"]) == (final, attempts - final)
        reasked = sum(n for what, _, n in rows["reason"] if what == "re-ask")
        assert by_outcome["re-ask"] == reasked
        unparsed = [
            entry
            for entry in entries
            if isinstance(entry.event, TaskCompleted) and entry.event.unparsed
        ]
        assert by_outcome["unparsed"] == len(unparsed)


@given(entries=courses())
def test_minutes_and_counters_tell_the_same_story(entries: list[Entry]) -> None:
    with closing(_tables()) as conn:
        _fold(conn, entries, 0)
        rows = _rows(conn)
        counters = dict(rows["counter"])
        minutes = [sum(c) for c in list(zip(*rows["minute"], strict=True))[3:]]
        started, succeeded, failed, retried, *sums = minutes or [0] * 7
        events = [type(entry.event).__name__ for entry in entries]
        found, found_after_start = _found(entries)
        assert counters.get("answers_cached", 0) == found
        assert counters.get("attempts_started", 0) == events.count("AttemptStarted")
        # a start that was no request is none of that minute's
        assert started == events.count("AttemptStarted") - found_after_start
        assert succeeded == events.count("TaskCompleted")
        assert failed == events.count("TaskFailed")
        tokens_and_cost = ("tokens_in", "tokens_out", "cost_pico")
        assert sums == [counters.get(name, 0) for name in tokens_and_cost]
        answers = events.count("AttemptAnswered")
        assert sum(row[3] for row in rows["latency_hist"]) == answers - found
        assert sum(row[3] for row in rows["error_class"]) == counters.get(
            "attempts_failed", 0
        )
        again = sum(
            isinstance(entry.event, AttemptFailed)
            and entry.event.retry_in_s is not None
            for entry in entries
        )
        re_asked = sum(n for what, _, n in rows["reason"] if what == "re-ask")
        assert retried == again + re_asked
        unread = [
            row for row in rows["task"] if row[8] == TaskState.COMPLETED and row[18]
        ]
        assert counters.get("tasks_unparsed", 0) == len(unread)
        unknown = sum(row[10] for row in rows["task"])
        assert counters.get("attempts_unknown", 0) == unknown


def _found(entries: list[Entry]) -> tuple[int, int]:
    """Cached answers, and of them those that a recorded start came before."""
    sent: set[int] = set()
    found = after_start = 0
    for entry in entries:
        match entry.event:
            case AttemptStarted(task=number):
                sent.add(number)
            case AttemptAnswered(task=number, cached=cached):
                found += cached
                after_start += cached and number in sent
                sent.discard(number)
            case AttemptFailed(task=number):
                sent.discard(number)
            case AttemptsAbandoned(attempts=attempts):
                sent.difference_update(number for number, _ in attempts)
            case _:
                pass
    return found, after_start


def _draft(state: TaskState) -> TaskDraft:
    draft = TaskDraft.planned(1, task(1), 1)
    draft.state = state
    draft.reply_seq = 1
    return draft


@pytest.mark.parametrize("state", TaskState)
@pytest.mark.parametrize("move", Transition)
def test_what_is_not_in_the_table_is_refused_and_changes_nothing(
    state: TaskState, move: Transition
) -> None:
    draft = _draft(state)
    fold = Fold(run=RunState(), tasks={1: draft})
    if (state, move) in TRANSITIONS:
        fold._move(2, 1, move)
        assert draft.state is TRANSITIONS[state, move]
    else:
        with pytest.raises(IllegalMove, match=f"{state.name.lower()}.*{move.value}"):
            fold._move(2, 1, move)
        assert draft == _draft(state)
        assert not fold.counts
