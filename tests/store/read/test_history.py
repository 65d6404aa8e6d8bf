"""The latest answers, read from a log's end step by step.

The filter of events lets through what it says, in steps of any length. Minutes joined
into buckets, in which nothing is lost; limits as they were seen.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.database import LogReader, open_reader
from store.errors import QueryError
from store.events import (
    AttemptAnswered,
    AttemptFailed,
    Entry,
    Event,
    LimitObserved,
    RecordedEvent,
    RunDrained,
    TaskCompleted,
    TaskFailed,
)
from store.fold import MARKED
from store.query import EVENT_KEYS, parse_event_query
from store.read import history
from store.read.history import (
    AnswerTail,
    CompletionTail,
    SeqRange,
    find_events,
    heartbeat_us,
    limits_observed,
    minute_buckets,
    nearest_rank,
    running_now,
    sent_before,
)
from store.read.live import minutes
from store.read.status import status
from store.read.tasks import events
from store.tables import last_seq
from tests.store.logs import COURSE, edit, written
from tests.store.memory_log import START_US
from tests.store.samples import (
    RUN_STARTED,
    completed,
    failed,
    plan_first,
    reply,
    started,
)

CALLS = 30


def _call(number: int) -> list[Entry | Event]:
    """A call of *number* times 10 ms; every fifth fails once before."""
    if number % 5:
        return [started(number), reply(number, b"x", latency_ms=10.0 * number)]
    again = reply(number, b"x", 2, latency_ms=10.0 * number)
    return [started(number), failed(number), started(number, 2), again]


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LogReader]:
    path: Path = tmp_path_factory.mktemp("answers") / "log.db"
    calls = [_call(number) for number in range(1, CALLS)]
    cached = [reply(CALLS, b"found", latency_ms=1.0, cached=True)]
    with open_reader(
        written(path, [RUN_STARTED], [plan_first(CALLS)], *calls, cached)
    ) as opened:
        yield opened


def test_latencies_are_those_of_real_answers(reader: LogReader) -> None:
    said = AnswerTail().read(reader)
    (model,) = said.models
    assert (said.n, model.n, model.model) == (CALLS - 1, CALLS - 1, "m-large")
    assert (model.p50_ms, model.p95_ms, model.p99_ms) == (150.0, 280.0, 290.0)
    assert said.seconds > 0


def test_the_same_failure_is_counted_as_long_as_no_other_comes(
    reader: LogReader,
) -> None:
    failure = AnswerTail().read(reader).failure
    assert failure is not None
    assert (failure.n, failure.task, failure.error) == (5, 25, "Overloaded")


def test_nothing_new_changes_nothing(reader: LogReader) -> None:
    tail = AnswerTail()
    assert tail.read(reader) == tail.read(reader)


def test_of_a_long_log_only_the_end_is_read(
    reader: LogReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "FIRST_READ", 5)
    said = AnswerTail().read(reader)
    assert [model.p99_ms for model in said.models] == [290.0]
    assert said.n < 5


def _done(number: int) -> list[Entry | Event]:
    return [started(number), reply(number, b"x"), completed(number)]


def test_completions_are_counted_once_whenever_they_are_read(tmp_path: Path) -> None:
    path = tmp_path / "log.db"
    first = [_done(number) for number in range(1, CALLS // 2)]
    with open_reader(written(path, [RUN_STARTED], [plan_first(CALLS)], *first)) as log:
        tail = CompletionTail()
        seen = tail.read(log)
        assert tail.read(log) is seen
        assert sum(row.n for row in seen.seconds) == CALLS // 2 - 1
        assert seen.since_us == START_US
        assert [row.second for row in seen.seconds] == sorted(
            {row.second for row in seen.seconds}
        )
        whole = {row.t: row.succeeded for row in minutes(log, 0)}
        assert sum(whole.values()) == sum(row.n for row in seen.seconds)


def test_of_many_completions_only_the_last_are_read_and_it_says_since_when(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.db"
    done = [_done(number) for number in range(1, CALLS)]
    monkeypatch.setattr(history, "COMPLETIONS_READ", 9)
    with open_reader(written(path, [RUN_STARTED], [plan_first(CALLS)], *done)) as log:
        seen = CompletionTail().read(log)
        assert sum(row.n for row in seen.seconds) == 3
        assert START_US < seen.since_us <= seen.seconds[0].second * 1_000_000 + 10**6


def test_seconds_that_are_long_ago_are_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "log.db"
    done = [_done(number) for number in range(1, CALLS)]
    with open_reader(written(path, [RUN_STARTED], [plan_first(CALLS)], *done)) as log:
        whole = CompletionTail().read(log)
        monkeypatch.setattr(history, "COMPLETIONS_SPAN_S", 0)
        seen = CompletionTail().read(log)
    assert seen.seconds == whole.seconds[-1:]
    assert seen.since_us == seen.seconds[0].second * 1_000_000


def test_latencies_have_a_course_that_changes_once_a_part() -> None:
    answers = [(START_US + n * 100_000, "m", float(n)) for n in range(600)]
    course = history._latency_course(answers, None)
    assert course is not None
    # the first and the last part are not whole
    assert (course.width, len(course.p50_ms)) == (1, 58)
    assert course.first == START_US // 1_000_000 + 1
    assert (course.p50_ms[0], course.p95_ms[0]) == (14.0, 19.0)
    assert history._latency_course(answers[3:], course) is course
    later = [*answers, (START_US + 60_000_000, "m", 7.0)]
    assert history._latency_course(later, course) is not course
    assert history._latency_course(answers[:15], None) is None


@given(
    values=st.lists(st.integers(1, 99), min_size=1), share=st.sampled_from([0.5, 0.95])
)
def test_a_percentile_is_a_value_that_so_many_do_not_exceed(
    values: list[int], share: float
) -> None:
    ordered = sorted(map(float, values))
    found = nearest_rank(ordered, share)
    assert found in ordered
    assert sum(value <= found for value in ordered) >= share * len(ordered)
    assert sum(value < found for value in ordered) < share * len(ordered)


Holds = Callable[[RecordedEvent], bool]
HOSTILE = 'so "quoted" \\ 100% _done\n漢字'
UNITS = (
    *COURSE[:-1],
    [failed(5, error="Timeout", message=HOSTILE)],
    [LimitObserved(model="m-small", concurrency=1, in_flight=0)],
    COURSE[-1],
)
STAGES = {1: "ask", 2: "ask", 3: "ask", 4: "ask", 5: "judge"}


def _task(recorded: RecordedEvent) -> int | None:
    return getattr(recorded.event, "task", None)


def _failure(recorded: RecordedEvent, error: str) -> bool:
    event = recorded.event
    return isinstance(event, AttemptFailed | TaskFailed) and event.error == error


#: What a filter says, and the same said in Python.
FILTERS: dict[str, Holds] = {
    "": lambda _: True,
    "kind:attempt_failed": lambda r: r.kind == "attempt_failed",
    "kind:run_*": lambda r: r.kind.startswith("run_"),
    "kind:command_* kind:run_*": lambda _: False,
    "-kind:attempt_* -kind:task*": lambda r: (
        not r.kind.startswith(("attempt_", "task"))
    ),
    "kind:run_* operator": lambda r: (
        isinstance(r.event, RunDrained) or (r.kind == "run_paused")
    ),
    "task:2": lambda r: _task(r) == 2,
    "task:T-0000003 kind:attempt_answered": lambda r: (
        _task(r) == 3 and isinstance(r.event, AttemptAnswered)
    ),
    "-task:2": lambda r: _task(r) != 2,
    "stage:judge": lambda r: STAGES.get(_task(r) or 0) == "judge",
    "model:m-small": lambda r: (
        _task(r) == 3 or getattr(r.event, "model", None) == "m-small"
    ),
    "item:item-1": lambda r: _task(r) == 1,
    "err:Overloaded": lambda r: _failure(r, "Overloaded"),
    "err:Timeout": lambda r: _failure(r, "Timeout"),
    "err:*": lambda r: isinstance(r.event, AttemptFailed | TaskFailed),
    "reason:truncated": lambda r: (
        isinstance(r.event, TaskCompleted) and r.event.unparsed == "truncated"
    ),
    "reason:no_list": lambda r: getattr(r.event, "reask", None) == "no_list",
    "busy": lambda r: getattr(r.event, "message", "") == "the endpoint is too busy",
    '"so "': lambda r: getattr(r.event, "message", "") == HOSTILE,
    "\\": lambda r: getattr(r.event, "message", "") == HOSTILE,
    "100% 漢字": lambda r: getattr(r.event, "message", "") == HOSTILE,
    "503": lambda r: getattr(r.event, "status", 0) == 503,
    # the name of a fact, and the value of none
    "retry_in_s": lambda _: False,
    "drained": lambda r: isinstance(r.event, RunDrained),
    "T-0000005": lambda r: _task(r) == 5,
}


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return written(tmp_path_factory.mktemp("log") / "log.db", *UNITS)


def _found(
    conn: LogReader,
    expression: str,
    stretch: SeqRange,
    limit: int,
    *,
    is_backward: bool,
) -> list[int]:
    """Everything that a search finds, step by step."""
    query = parse_event_query(expression)
    seqs: list[int] = []
    rest = stretch
    while len(rest):
        found = find_events(conn, query, rest, limit=limit, is_backward=is_backward)
        assert len(found.rest) < len(rest)
        assert len(found.events) <= limit
        here = [each.seq for each in found.events]
        assert here == sorted(here)
        seqs = [*here, *seqs] if is_backward else [*seqs, *here]
        rest = found.rest
    return seqs


@pytest.mark.parametrize("expression", FILTERS)
def test_what_is_found_is_what_the_filter_says(log: Path, expression: str) -> None:
    with open_reader(log) as conn:
        every = events(conn)
        fits = [each.seq for each in every if FILTERS[expression](each)]
        whole = SeqRange(1, last_seq(conn))
        for is_backward in (True, False):
            found = _found(conn, expression, whole, 100, is_backward=is_backward)
            assert found == fits


@given(
    st.sampled_from(sorted(FILTERS)),
    st.tuples(st.integers(1, 40), st.integers(0, 40)),
    st.tuples(st.integers(1, 7), st.integers(1, 9)),
    st.booleans(),
)
def test_steps_of_any_length_leave_nothing_out_and_find_nothing_twice(
    log: Path, expression: str, part: tuple[int, int], step: tuple[int, int], back: bool
) -> None:
    stretch = SeqRange(part[0], part[0] + part[1])
    limit, span = step
    with open_reader(log) as conn, pytest.MonkeyPatch.context() as patch:
        whole = SeqRange(1, last_seq(conn))
        every = _found(conn, expression, whole, 100, is_backward=False)
        patch.setattr(history, "SPAN", span)
        found = _found(conn, expression, stretch, limit, is_backward=back)
    assert found == [seq for seq in every if stretch.first <= seq <= stretch.last]


def test_a_step_ends_though_nothing_was_found(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "SPAN", 10)
    query = parse_event_query("err:Nothing")
    with open_reader(log) as conn:
        back = find_events(conn, query, SeqRange(1, 30), limit=5, is_backward=True)
        assert (back.events, back.rest) == ((), SeqRange(1, 20))
        on = find_events(conn, query, SeqRange(1, 30), limit=5, is_backward=False)
        assert (on.events, on.rest) == ((), SeqRange(11, 30))
        rare = parse_event_query("kind:run_finished")
        marked = find_events(conn, rare, SeqRange(1, 30), limit=5, is_backward=True)
        assert not len(marked.rest)
        task = find_events(
            conn,
            parse_event_query("task:2"),
            SeqRange(1, 30),
            limit=9,
            is_backward=True,
        )
        assert not len(task.rest)


@pytest.mark.parametrize(
    ("expression", "position", "said"),
    [
        ("kind:atempt", 5, "there is no kind 'atempt': did you mean 'attempt_failed'?"),
        ("busy knd:x", 5, "there is no key 'knd': did you mean 'kind'?"),
        ("task:first", 5, "write task:41882"),
        ("err>5", 3, "err is no number: write err:VALUE"),
        ('stage:"two words', 6, "a quote is not closed"),
        ("kind:", 5, "a value is missing here"),
    ],
)
def test_what_cannot_be_read_is_said_with_its_position(
    expression: str, position: int, said: str
) -> None:
    with pytest.raises(QueryError, match=re.escape(said)) as raised:
        parse_event_query(expression)
    assert raised.value.position == position


@given(st.text(max_size=40))
def test_anything_can_be_typed(text: str) -> None:
    position = 0
    try:
        assert parse_event_query(text).condition()
    except QueryError as error:
        position = error.position
    assert 0 <= position <= len(text)


def test_kinds_and_the_task_say_where_an_index_leads() -> None:
    assert parse_event_query("kind:run_*").kinds <= MARKED
    assert parse_event_query("-kind:attempt_*").kinds > MARKED
    assert parse_event_query("task:7 kind:run_*").task == 7
    assert parse_event_query("-task:7").task is None
    assert set(EVENT_KEYS) >= {"kind", "task", "err"}


MINUTE = START_US // 60_000_000


@pytest.fixture
def spread(path: Path) -> Path:
    """A log whose minutes are three times as many, in later ones too."""
    written(path, *COURSE)
    again = "INSERT INTO minute SELECT stage, model, t + {}, started, succeeded, failed"
    rest = ", retried, tokens_in, tokens_out, cost_pico FROM minute WHERE t = {}"
    edit(path, *(again.format(by) + rest.format(MINUTE) for by in (1, 7)))
    return path


@pytest.mark.parametrize("width", [1, 2, 5, 1440])
@pytest.mark.parametrize("model", [None, "m-large", "m-small"])
def test_buckets_hold_all_that_their_minutes_do(
    spread: Path, width: int, model: str | None
) -> None:
    with open_reader(spread) as reader:
        rows = [row for row in minutes(reader, 0) if model in {None, row.model}]
        found = minute_buckets(reader, 0, MINUTE + 99, width=width, model=model)
    assert [each.number for each in found] == sorted({row.t // width for row in rows})
    for bucket in found:
        inside = [row for row in rows if row.t // width == bucket.number]
        for name in ("started", "succeeded", "failed", "retried", "tokens_in"):
            assert getattr(bucket, name) == sum(getattr(row, name) for row in inside)
        cost = sum(row.cost_usd for row in inside)
        assert bucket.cost_usd == pytest.approx(cost)


def test_only_the_minutes_that_are_asked_for_are_read(spread: Path) -> None:
    with open_reader(spread) as reader:
        found = minute_buckets(reader, MINUTE + 1, MINUTE + 7, width=1, model=None)
    assert [each.number for each in found] == [MINUTE + 1]


def test_what_was_started_and_has_no_outcome_is_under_way(path: Path) -> None:
    with open_reader(written(path, *COURSE[:7])) as reader:
        for model in (None, "m-large", "m-small"):
            sent = sent_before(reader, MINUTE + 1, model)
            assert sent == running_now(reader, model)
        assert sent_before(reader, MINUTE, None) == 0
        assert running_now(reader, None) == status(reader).tasks.running > 0


def test_limits_are_read_between_two_events(path: Path) -> None:
    observed = LimitObserved(model="m-large", concurrency=8, in_flight=0)
    with open_reader(written(path, *COURSE[:3], [observed], *COURSE[3:])) as reader:
        end = last_seq(reader)
        (seen,) = limits_observed(reader, 0, end)
        assert (seen.model, seen.concurrency) == ("m-large", 8)
        assert list(limits_observed(reader, end, end + 9)) == []
        assert heartbeat_us(reader) is not None
