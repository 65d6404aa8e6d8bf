"""The latest answers, read from a log's end step by step."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.database import LogReader, open_reader
from store.events import Entry, Event
from store.read import history
from store.read.history import AnswerTail, nearest_rank
from tests.store.logs import written
from tests.store.samples import RUN_STARTED, failed, plan_first, reply, started

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
