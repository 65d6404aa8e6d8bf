"""No view ever reads the whole of a run: every query goes by an index."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing

import pytest

from store.database import SQL
from store.query import parse_event_query, parse_query
from store.statements import script

#: Queries of `status`, `tasks` and the log, each with parameters of the right number.
PLANNED: dict[str, tuple[object, ...]] = {
    "first_event": (),
    "run_header": (),
    "run_state": (),
    "heartbeat": (),
    "counters": (),
    "counts": (),
    "ended_items": ("read",),
    "minutes": (9,),
    "completed_by_minute": (),
    "running_now": (None,),
    "limits_observed": (9, 99),
    "model_latencies": (),
    "next_retries": (),
    "oldest_in_flight": (5,),
    "outcomes": (0, 9),
    "completions": (0, 9),
    "lane_costs": (),
    "error_classes": (),
    "failures": (9,),
    "model_calls": (),
    "model_costs": (),
    "usage": (),
    "reasons": (),
    "latencies": (),
    "marked": ("scoring_recorded", 0, -1),
    "last_marked": ("scoring_recorded",),
    "marks_back": ("run_paused", 1, 9, 10),
    "marks_on": ("run_paused", 1, 9, 10),
    "planned_upto": (9,),
    "task_events": (1,),
    "roots": (0, 99, 10),
    "descendants": ("[1, 2]", 99),
    "roots_of_model": ("m-large", 0, 10),
    "descendants_of": ("[1, 2]",),
    "attempts_of": ("[1, 2]",),
    "replies": ("[1]",),
    "drafts": ("[1, 2]",),
    "open_tasks": ("ask", "m-large", 0, 10),
    "final_tasks": ("ask", "m-large", 0, 10),
    "family": (1,),
    "group": ("ask", "m-large", 1, "g"),
    "group_is_open": ("ask", "m-large", 1, "g"),
    "unread_answers": (0, 10),
    "sent_attempts": (),
    "sent_starts": (),
    "reply": (1,),
    "started": (1,),
    "events": (0, 10),
    "event_times": ("[1, 2]",),
    "payload": (1,),
    "last_seq": (),
    "part": (b"",),
}


@pytest.fixture(scope="module")
def large() -> Iterator[sqlite3.Connection]:
    """Tables that are large enough for an index to matter, without their content."""
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as conn:
        for name in ("schema", "projections", "indexes"):
            for statement in script(name):
                conn.execute(statement)
        yield conn


def _plan(conn: sqlite3.Connection, sql: str, parameters: Sequence[object]) -> str:
    rows = conn.execute(f"EXPLAIN QUERY PLAN {sql}", parameters).fetchall()
    return "\n".join(row[3] for row in rows)


@pytest.mark.parametrize("name", sorted(PLANNED))
def test_no_view_reads_all_events_or_all_tasks(
    large: sqlite3.Connection, name: str
) -> None:
    plan_ = _plan(large, SQL[name], PLANNED[name])
    for table in ("event", "e", "task", "t", "body", "b", "mark", "m", "blob"):
        for line in plan_.splitlines():
            is_scan = line.startswith(f"SCAN {table}") and (
                len(line) == len(f"SCAN {table}") or line[len(f"SCAN {table}")] == " "
            )
            assert not is_scan, plan_


def test_open_tasks_are_one_read_by_key_in_order(large: sqlite3.Connection) -> None:
    found = _plan(large, SQL["open_tasks"], PLANNED["open_tasks"])
    assert "task_open (stage=? AND model=? AND task>?)" in found
    assert "TEMP B-TREE" not in found


def test_attempts_under_way_are_found_without_looking_at_others(
    large: sqlite3.Connection,
) -> None:
    for name in ("sent_attempts", "unread_answers"):
        found = _plan(large, SQL[name], PLANNED[name])
        assert "task_state (state=?" in found
        assert "TEMP B-TREE" not in found
    # the oldest of them are sorted out, as many as are under way
    found = _plan(large, SQL["oldest_in_flight"], PLANNED["oldest_in_flight"])
    assert "task_state (state=?" in found
    found = _plan(large, "SELECT * FROM in_flight", ())
    assert "task_state (state=?" in found


def test_the_last_minutes_are_read_without_the_earlier_ones(
    large: sqlite3.Connection,
) -> None:
    found = _plan(large, SQL["minutes"], PLANNED["minutes"])
    assert "USING INDEX minute_t (t>?)" in found


def test_new_completions_are_read_without_the_earlier_ones(
    large: sqlite3.Connection,
) -> None:
    found = _plan(large, SQL["completions"], (100, 200))
    assert "task_updated (updated_seq>? AND updated_seq<?)" in found


@pytest.mark.parametrize(
    "expression",
    ["", "state:failed", "err:Timeout", "stage:judge model:m", "item:x", "cost>1"],
)
def test_a_page_of_tasks_goes_on_by_key(
    large: sqlite3.Connection, expression: str
) -> None:
    query = parse_query(expression)
    sql = SQL["tasks_page"].format(query.condition())
    found = _plan(large, sql, (0, *query.parameters(), 10))
    assert "SEARCH t USING" in found
    assert "TEMP B-TREE" not in found


@pytest.mark.parametrize("expression", ["", "state:failed", "err:Timeout", "item:x"])
def test_a_list_of_tasks_goes_on_by_key(
    large: sqlite3.Connection, expression: str
) -> None:
    query = parse_query(expression)
    sql = SQL["numbers"].format(query.condition())
    found = _plan(large, sql, (0, *query.parameters(), 10))
    assert "SEARCH t USING" in found
    assert "TEMP B-TREE" not in found


def test_the_newest_tasks_are_read_in_the_order_of_their_index(
    large: sqlite3.Connection,
) -> None:
    found = _plan(large, SQL["numbers_newest"].format("TRUE"), (9, 9, 10))
    assert "task_updated (updated_seq<?)" in found
    assert "TEMP B-TREE" not in found


def test_what_changed_is_found_without_looking_at_the_rest(
    large: sqlite3.Connection,
) -> None:
    query = parse_query("item:x")
    sql = SQL["numbers_changed"].format(query.condition())
    found = _plan(large, sql, (0, *query.parameters(), 10))
    assert "task_updated (updated_seq>?)" in found
    assert "TEMP B-TREE" not in found


@pytest.mark.parametrize(
    "expression",
    [
        "",
        "kind:attempt_failed",
        "err:Timeout reason:x -stage:judge",
        "model:m item:x task:7",
        '"some words"',
    ],
)
def test_events_are_searched_by_key_whatever_the_filter(
    large: sqlite3.Connection, expression: str
) -> None:
    query = parse_event_query(expression)
    for name in ("events_back", "events_on"):
        sql = SQL[name].format(query.condition())
        found = _plan(large, sql, (1, 9, *query.parameters(), 10))
        first, *_ = found.splitlines()
        assert first == "SEARCH e USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)"
        assert "USE TEMP B-TREE FOR ORDER BY" not in found
        assert "SCAN t" not in found
    sql = SQL["events_named"].format(query.condition())
    found = _plan(large, sql, ("[1]", *query.parameters()))
    assert "SEARCH e USING INTEGER PRIMARY KEY (rowid=?)" in found
    assert "SCAN e" not in found.replace("SCAN json_each", "")
