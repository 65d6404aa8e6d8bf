"""What a request would come to, before anybody asks."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from store.control import preview_open_tasks, preview_retry, preview_sentence
from store.database import open_reader
from store.errors import NoSuchName, QueryError
from store.events import BatchItem, BatchPrepared, Entry, TaskFailed, batch_bytes
from tests.store.logs import written
from tests.store.samples import (
    RUN_STARTED,
    completed,
    failed,
    plan,
    reply,
    started,
    task,
)

COURSE = (
    [RUN_STARTED],
    [plan([task(1), task(2), task(3), task(4, model="m-small"), task(5)])],
    [started(1), reply(1, b"one", cost_usd=0.25), completed(1)],
    [started(2), reply(2, b"two", cost_usd=0.75), completed(2, unparsed="truncated")],
    [started(3), failed(3, retry_in_s=None)],
    [TaskFailed(task=3, attempt=1, error="Overloaded")],
    [started(4)],
)


def test_open_tasks_and_calls_in_flight_are_counted_by_stage_and_model(
    tmp_path: Path,
) -> None:
    with open_reader(written(tmp_path / "log.db", *COURSE)) as reader:
        whole = preview_open_tasks(reader)
        large = preview_open_tasks(reader, "ask", "m-large")
        with pytest.raises(NoSuchName, match="there is no stage 'judge' here: use ask"):
            preview_open_tasks(reader, stage="judge")
        with pytest.raises(NoSuchName, match="use m-large, m-small"):
            preview_open_tasks(reader, model="m")
    assert (whole.tasks, whole.in_flight, whole.spent_usd) == (2, 1, 1.0)
    assert (large.tasks, large.in_flight) == (1, 0)


def test_calls_in_batches_are_not_said_to_finish(tmp_path: Path) -> None:
    prepared = BatchPrepared(batch="k", model="m-large", form="openai", requests=1)
    sent = [
        Entry(event=prepared, payload=batch_bytes([BatchItem(5, 1, "k-5")])),
        replace(started(5), batched=True),
    ]
    with open_reader(written(tmp_path / "log.db", *COURSE, sent)) as reader:
        whole, small = (
            preview_open_tasks(reader),
            preview_open_tasks(reader, model="m-small"),
        )
    assert (whole.in_flight, whole.batched) == (2, 1)
    assert (small.in_flight, small.batched) == (1, 0)
    assert preview_sentence("drain", {}, whole, "r") == (
        "1 call in flight of r would finish and 1 call in batches of r would stay at "
        "the provider; 0 tasks would stay open for siftlog resume."
    )
    assert preview_sentence("cancel", {}, replace(whole, in_flight=1), "r") == (
        "1 open task of r would be skipped; 1 call in batches would be cancelled at "
        "the provider."
    )
    assert preview_sentence("pause", {}, whole, "r").endswith(
        "1 call in batches would be waited for."
    )
    assert "batches" not in preview_sentence("drain", {}, small, "r")


def test_a_retry_is_priced_at_what_such_tasks_have_cost(tmp_path: Path) -> None:
    with open_reader(written(tmp_path / "log.db", *COURSE)) as reader:
        plain = preview_retry(reader, "")
        every = preview_retry(reader, "state:completed")
        unread = preview_retry(reader, "reason:truncated")
        still_open = preview_retry(reader, "state:open")
        with pytest.raises(QueryError):
            preview_retry(reader, "nonsense:1")
    assert (plain.tasks, plain.usd) == (1, 0.5)
    assert (every.tasks, every.usd) == (2, 1.0)
    assert (unread.tasks, unread.usd) == (1, 0.5)
    assert (still_open.tasks, still_open.usd) == (0, 0.0), "only final tasks"


def test_what_the_cache_answered_does_not_make_a_retry_cheap(tmp_path: Path) -> None:
    found = reply(5, b"five", cost_usd=0.0, cached=True, latency_ms=None)
    cached = started(5), found, completed(5)
    with open_reader(written(tmp_path / "log.db", *COURSE, cached)) as reader:
        assert preview_retry(reader, "state:completed").usd == 1.5


def test_without_a_price_no_cost_is_told(tmp_path: Path) -> None:
    unpriced = started(5), reply(5, b"five", cost_usd=None), completed(5)
    with open_reader(written(tmp_path / "log.db", *COURSE, unpriced)) as reader:
        assert preview_retry(reader, "state:completed").usd is None
        assert preview_open_tasks(reader).spent_usd is None


def test_a_model_that_completed_nothing_makes_the_cost_unknown(tmp_path: Path) -> None:
    lost = [failed(4, retry_in_s=None), TaskFailed(task=4, attempt=1, error="Timeout")]
    with open_reader(written(tmp_path / "log.db", *COURSE, lost)) as reader:
        assert preview_retry(reader, "state:failed").usd is None
        assert preview_retry(reader, "state:failed model:m-large").usd == 0.5


def test_calls_in_flight_are_no_longer_left_in_a_budget(tmp_path: Path) -> None:
    capped = [replace(RUN_STARTED, budget_usd=2.0)]
    sent = [replace(started(5), worst_usd=0.25)]
    path = written(tmp_path / "log.db", capped, *COURSE[1:], sent)
    with open_reader(path) as reader:
        assert preview_open_tasks(reader).budget_left_usd == 2.0 - 1.0 - 0.25


def test_answers_of_the_response_cache_do_not_make_a_retry_cheap(
    tmp_path: Path,
) -> None:
    hit = {"cost_usd": 0.0, "cached": True, "latency_ms": None}
    found = [started(5), reply(5, b"five", **hit), completed(5)]
    only = [started(4), reply(4, b"four", **hit), completed(4)]
    with open_reader(written(tmp_path / "a.db", *COURSE, found)) as reader:
        assert preview_retry(reader, "state:completed").usd == 3 * 0.5
    with open_reader(written(tmp_path / "b.db", *COURSE[:-1], only)) as reader:
        assert preview_retry(reader, "model:m-small").usd is None
