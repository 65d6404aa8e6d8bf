"""Minutes joined into buckets, in which nothing is lost; limits as they were seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from store.database import open_reader
from store.events import LimitObserved
from store.read.history import (
    heartbeat_us,
    limits_observed,
    minute_buckets,
    running_now,
    sent_before,
)
from store.read.live import minutes
from store.read.status import status
from store.tables import last_seq
from tests.store.logs import COURSE, edit, written
from tests.store.memory_log import START_US

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
