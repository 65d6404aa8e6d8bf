"""The breaker opens on identical failures only, probes, and gives up in time."""

from __future__ import annotations

import pytest

from runner import errors as e
from runner.limits.breaker import (
    FAILURES_TO_OPEN,
    FAILURES_TO_OPEN_AT_FIRST,
    GIVE_UP_AT_FIRST_S,
    GIVE_UP_S,
    Breaker,
)


def _fail(breaker: Breaker, times: int, now: float = 0.0) -> list[str]:
    said = [breaker.failed(e.ServerError("boom"), now) for _ in range(times)]
    return [sentence for sentence in said if sentence]


def test_an_endpoint_that_never_worked_is_given_up_in_seconds() -> None:
    breaker = Breaker("http://x")
    assert len(_fail(breaker, FAILURES_TO_OPEN_AT_FIRST)) == 1
    assert breaker.is_open
    assert _fail(breaker, 1, now=5.0) == []
    assert len(_fail(breaker, 1, now=GIVE_UP_AT_FIRST_S + 1)) == 1
    assert breaker.stopped == "http://x never answered: ServerError: boom"
    assert breaker.ready_at(99.0, 0) is None


@pytest.mark.parametrize(
    ("statuses", "sentence"),
    [
        ((500,), "answered every request with 500"),
        ((500, 503), "answered every request with 500 or 503"),
        ((None, 500), "answered some requests with 500, and the others not at all"),
        ((200,), "answered every request with a reply that cannot be read"),
        ((None,), "never answered"),
    ],
)
def test_the_sentence_tells_whether_an_endpoint_answered(
    statuses: tuple[int | None, ...], sentence: str
) -> None:
    breaker = Breaker("http://x")
    for number in range(FAILURES_TO_OPEN_AT_FIRST):
        status = statuses[number % len(statuses)]
        breaker.failed(e.ServerError("boom", status=status), 0.0)
    late = GIVE_UP_AT_FIRST_S + 1
    breaker.failed(e.ServerError("boom", status=statuses[-1]), late)
    assert breaker.stopped == f"http://x {sentence}: ServerError: boom"


def test_an_endpoint_that_worked_is_probed_one_at_a_time() -> None:
    breaker = Breaker("http://x")
    breaker.succeeded()
    _fail(breaker, FAILURES_TO_OPEN)
    assert breaker.is_open
    assert breaker.ready_at(0.0, 0) == 1.0
    assert breaker.ready_at(5.0, 1) is None
    _fail(breaker, 1, now=5.0)
    assert breaker.ready_at(5.0, 0) == 6.0
    _fail(breaker, 1, now=6.0)
    assert breaker.ready_at(6.0, 0) == 8.0


def test_one_answer_closes_it() -> None:
    breaker = Breaker("http://x")
    breaker.succeeded()
    _fail(breaker, FAILURES_TO_OPEN)
    breaker.succeeded()
    assert not breaker.is_open
    assert breaker.ready_at(0.0, 99) == 0.0


def test_failures_of_different_kinds_do_not_open_it() -> None:
    breaker = Breaker("http://x")
    breaker.succeeded()
    for _ in range(FAILURES_TO_OPEN):
        breaker.failed(e.ServerError("boom"), 0.0)
        breaker.failed(e.Timeout("late"), 0.0)
    assert not breaker.is_open


def test_rate_limits_never_open_it() -> None:
    breaker = Breaker("http://x")
    for _ in range(10 * FAILURES_TO_OPEN):
        assert breaker.failed(e.RateLimited("429"), 0.0) is None
    assert breaker.stopped is None


def test_a_wrong_key_stops_it_at_the_first_refusal() -> None:
    breaker = Breaker("http://x")
    assert breaker.failed(e.AuthFailed("401 unauthorized"), 0.0)
    assert "refused the key" in (breaker.stopped or "")


def test_an_outage_of_an_hour_needs_a_person() -> None:
    breaker = Breaker("http://x")
    breaker.succeeded()
    _fail(breaker, FAILURES_TO_OPEN)
    _fail(breaker, 1, now=GIVE_UP_S + 1)
    assert "an hour" in (breaker.stopped or "")
