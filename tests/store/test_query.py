"""The filter language: what it lets through, and how it fails."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.database import open_reader
from store.errors import QueryError
from store.events import Event, TaskFailed, TaskSkipped
from store.query import REJECTED, Query, final_tasks_query, parse_query
from store.read.tasks import tasks
from tests.store.logs import written
from tests.store.samples import (
    RUN_STARTED,
    answered,
    completed,
    failed,
    plan,
    plan_first,
    started,
    task,
)

PLAN = [
    task(1, key="PMC1/first"),
    task(2, key="PMC1/second", stage="judge"),
    task(3, key="10%_done", model="m-small"),
    task(4, key="PMC4/fourth"),
    task(5, key="PMC5 two words"),
    task(6, key="PMC6/skipped", skip="no text"),
    task(7, key='odd "quote"'),
]
COURSE: list[Event] = [
    started(1),
    answered(1, latency_ms=6200.0, cost_usd=0.0113),
    completed(1),
    started(2),
    answered(2, latency_ms=80.0, cost_usd=0.5),
    completed(2, unparsed="truncated"),
    started(3),
    failed(3, error="RateLimited"),
    started(3, 2),
    failed(3, 2, error="Timeout", retry_in_s=None),
    TaskFailed(task=3, attempt=2, error="Timeout"),
    started(4),
    failed(4, error="RateLimited"),
    started(5),
    TaskSkipped(task=7, reason="cancelled"),
]


@pytest.fixture(scope="module")
def conn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """A log of tasks in every state."""
    path = tmp_path_factory.mktemp("query") / "log.db"
    with open_reader(written(path, [RUN_STARTED, plan(PLAN)], COURSE)) as reader:
        yield reader


@pytest.mark.parametrize(
    ("expression", "numbers"),
    [
        ("", [1, 2, 3, 4, 5, 6, 7]),
        ("state:completed", [1, 2]),
        ("state:done", [1, 2, 3]),
        ("-state:done", [4, 5, 6, 7]),
        ("state:unparsed", [2]),
        ("-state:unparsed", [1, 3, 4, 5, 6, 7]),
        ("state:completed -state:unparsed", [1]),
        ("state:open", [4, 5]),
        ("state:final", [1, 2, 3, 6, 7]),
        ("-state:final", [4, 5]),
        ("state:waiting", [4]),
        ("state:held", []),
        ("state:skipped", [6, 7]),
        ("STATE:Failed", [3]),
        ("stage:judge", [2]),
        ("-stage:judge", [1, 3, 4, 5, 6, 7]),
        ("stage:*", [1, 2, 3, 4, 5, 6, 7]),
        ("stage:nope", []),
        ("model:m-small", [3]),
        ("item:PMC1", [1, 2]),
        ("item:pmc1 -stage:judge", [1]),
        ("item:%", [3]),
        ("item:_", [3]),
        ("err:RateLimited", [3, 4]),
        ("error:RateLimited", [3, 4]),
        ("-err:RateLimited", [1, 2, 5, 6, 7]),
        ("err:Timeout", [3]),
        ("err:*", [3, 4]),
        ("-err:*", [1, 2, 5, 6, 7]),
        ("-err:Timeout", [1, 2, 4, 5, 6, 7]),
        ("err:Absent", []),
        ("-err:Absent", [1, 2, 3, 4, 5, 6, 7]),
        ("parse:truncated", [2]),
        ("parse:*", [2]),
        ("reason:truncated", [2]),
        ("reason:cancelled", [7]),
        ("reason:Timeout", [3]),
        ("outcome:Timeout", [3]),
        ("outcome:truncated", [2]),
        ("try>1", [3]),
        ('reason:"no text"', [6]),
        ("reason:*", [2, 3, 4, 6, 7]),
        ("latency>5s", [1]),
        ("latency<100ms", [2]),
        ("latency<1", [2]),
        ("latency>0.1m", [1]),
        ("-latency>5s", [2, 3, 4, 5, 6, 7]),
        ("cost>0.01", [1, 2]),
        ("cost>$0.1", [2]),
        ("cost<0.1", [1]),
        ("attempts:2", [3]),
        ("attempts>0", [1, 2, 3, 4, 5]),
        ("attempts<1", [6, 7]),
        ('"two words"', [5]),
        ("words two", [5]),
        ("first", [1]),
        ("PMC1/second", [2]),
        ("T-0000004", [4]),
        ("4", [4]),
        ("task:4", [4]),
        ("task:T-0000004", [4]),
        ("-4", [1, 2, 3, 5, 6, 7]),
        ("  state:done   item:first  ", [1]),
    ],
)
def test_what_a_filter_lets_through(
    conn: sqlite3.Connection, expression: str, numbers: list[int]
) -> None:
    query = parse_query(expression)
    assert [row.task for row in tasks(conn, query)] == numbers


RECOVERED: list[Event] = [
    started(1),
    failed(1, error="MalformedReply", status=200),
    started(1, 2),
    answered(1, 2),
    completed(1, 2),
    started(2),
    answered(2, reask="no_list"),
    started(2, 2),
    answered(2, 2),
    completed(2, 2),
    started(3),
    failed(3, error="RateLimited", status=429),
    started(3, 2),
    answered(3, 2),
    completed(3, 2),
    started(4),
    answered(4),
    completed(4),
    started(5),
    answered(5, reask="no_list"),
    started(6),
    failed(6, error="MalformedReply", status=200, retry_in_s=None),
    TaskFailed(task=6, attempt=1, error="MalformedReply"),
]


def test_an_error_is_that_of_any_attempt_and_a_retry_asks_for_the_last(
    path: Path,
) -> None:
    entries = [RUN_STARTED, plan_first(6)]
    with open_reader(written(path, entries, RECOVERED)) as reader:
        for expression, any_attempt, last in (
            ("err:MalformedReply", [1, 6], [6]),
            ("err:*", [1, 3, 6], [6]),
            ("-err:*", [2, 4, 5], [1, 2, 3, 4]),
            ("reason:no_list", [2, 5], []),
            ("outcome:no_list", [2, 5], []),
            ("reason:*", [1, 2, 3, 5, 6], [6]),
        ):
            listed = tasks(reader, parse_query(expression))
            assert [row.task for row in listed] == any_attempt, expression
            retried = tasks(reader, final_tasks_query(expression))
            assert [row.task for row in retried] == last, expression
        # a reply came, and could not be used: not so after a 429
        rejected = tasks(reader, REJECTED)
        assert [row.task for row in rejected] == [1, 2, 5, 6]


def test_an_error_that_no_attempt_had_is_looked_for_in_no_course(
    conn: sqlite3.Connection,
) -> None:
    steps = {"err:Timeout": 0, "err:Absent": 0}
    for expression in steps:

        def count(of: str = expression) -> int:
            steps[of] += 1
            return 0

        conn.set_progress_handler(count, 1)
        tasks(conn, parse_query(expression))
    conn.set_progress_handler(None, 0)
    assert steps["err:Absent"] < steps["err:Timeout"] / 2


@pytest.mark.parametrize(
    ("expression", "failure"),
    [
        ("", None),
        ("state:failed", None),
        ("-err:Timeout", None),
        ("stage:judge error:Timeout", "Timeout"),
        ("err:*", ""),
        ("outcome:no_list", "no_list"),
        ("parse:truncated", "truncated"),
    ],
)
def test_a_filter_knows_which_failure_it_asks_for(
    expression: str, failure: str | None
) -> None:
    assert parse_query(expression).failure == failure


def test_pages_go_on_after_a_number(conn: sqlite3.Connection) -> None:
    query = parse_query("-stage:judge")
    assert [r.task for r in tasks(conn, query, after=1, limit=2)] == [3, 4]


@pytest.mark.parametrize(
    ("expression", "position", "message"),
    [
        ("state:flying", 6, "no state 'flying'"),
        ("item:x colour:red", 7, "no key 'colour'"),
        ("state>3", 5, "write state:VALUE"),
        ("stage<judge", 5, "write stage:VALUE"),
        ("latency:5s", 8, "latency>5s"),
        ("latency>soon", 8, "latency>5s"),
        ("a cost>much", 7, "cost>0.01"),
        ("attempts>1.5", 9, "attempts>2"),
        ("attempts:²", 9, "attempts>2"),
        ("item:", 5, "value is missing"),
        ("a -", 3, "value is missing"),
        ('item:"open', 5, "quote is not closed"),
        ('item:"a"b', 8, "quote is not closed"),
        ('""', 2, "value is missing"),
        ("item:\udc80", 5, "no text"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_place(
    expression: str, position: int, message: str
) -> None:
    with pytest.raises(QueryError, match=message) as caught:
        parse_query(expression)
    assert caught.value.position == position


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused_with_a_place_inside_it(expression: str) -> None:
    position = 0
    query = Query()
    try:
        query = parse_query(expression)
    except QueryError as error:
        position = error.position
    assert 0 <= position <= len(expression)
    assert query.condition().count("?") == len(query.parameters())


_WORD = st.text(st.characters(exclude_characters='"\0', exclude_categories=["Cs"]))


@given(_WORD.filter(bool))
def test_a_quoted_text_is_looked_for_as_it_stands(word: str) -> None:
    query = parse_query(f'"{word}"')
    (term,) = query.terms
    assert term.fragment == "text"
    with closing(sqlite3.connect(":memory:")) as conn:
        held = f"a{word}b"
        (found,) = conn.execute(
            r"SELECT ? LIKE ? ESCAPE '\'", (held, term.parameters[0])
        ).fetchone()
    assert found


@given(st.lists(st.sampled_from(["state:done", "-err:*", "item:x", "cost>1", '"a b"'])))
def test_terms_are_independent_of_one_another(parts: list[str]) -> None:
    apart = tuple(term for part in parts for term in parse_query(part).terms)
    assert parse_query("  ".join(parts)).terms == apart
