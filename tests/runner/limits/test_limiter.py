"""The minute limits hold in every window, and waste little."""

from __future__ import annotations

from bisect import bisect_left

from hypothesis import given
from hypothesis import strategies as st

from runner.limits.limiter import Endpoint, Limiter, Limits


def _departures(
    limiter: Limiter, tokens: list[int], lateness: float
) -> list[tuple[float, int]]:
    """Send everything as early as the limiter allows, each wake-up a little late."""
    now = 0.0
    sent = []
    for amount in tokens:
        when = limiter.ready_at(now, amount)
        assert when is not None
        if when > now:
            now = when + lateness
            assert limiter.ready_at(now, amount) <= now
        limiter.acquire(now, amount)
        limiter.release(amount, amount)
        sent.append((now, amount))
    return sent


def _busiest_minute(sent: list[tuple[float, int]]) -> tuple[int, int]:
    """Most requests and most tokens in any window of 60 s."""
    times = [at for at, _ in sent]
    most = most_tokens = 0
    for i, (at, _) in enumerate(sent):
        end = bisect_left(times, at + 60.0)
        most = max(most, end - i)
        most_tokens = max(most_tokens, sum(amount for _, amount in sent[i:end]))
    return most, most_tokens


@given(rpm=st.integers(1, 600), lateness=st.sampled_from([0.0, 0.003, 0.2]))
def test_no_minute_holds_more_requests_than_allowed(rpm: int, lateness: float) -> None:
    limiter = Limiter(Limits(concurrency=9, rpm=rpm), Endpoint("x"))
    sent = _departures(limiter, [1] * (2 * rpm + 5), lateness)
    assert _busiest_minute(sent)[0] <= rpm


@given(
    tpm=st.integers(1_200, 100_000),
    shares=st.lists(st.floats(0.001, 0.08), min_size=30, max_size=120),
)
def test_no_minute_holds_more_tokens_than_allowed(
    tpm: int, shares: list[float]
) -> None:
    limiter = Limiter(Limits(concurrency=9, tpm=tpm), Endpoint("x"))
    amounts = [max(1, int(share * tpm)) for share in shares]
    assert _busiest_minute(_departures(limiter, amounts, 0.0))[1] <= tpm


def test_the_allowed_rate_is_used_although_timers_are_late() -> None:
    limiter = Limiter(Limits(concurrency=9, rpm=3000), Endpoint("x"))
    sent = _departures(limiter, [1] * 9000, 0.002)
    assert sent[-1][0] < 9000 / 3000 * 60 * 1.03


def test_a_request_larger_than_the_bucket_goes_once_the_bucket_is_full() -> None:
    limiter = Limiter(Limits(concurrency=9, tpm=1200), Endpoint("x"))
    assert limiter.ready_at(0.0, 5000) == 0.0
    limiter.acquire(0.0, 5000)
    later = limiter.ready_at(0.0, 100)
    assert later is not None
    assert later > 200.0


def test_what_a_reservation_did_not_need_comes_back() -> None:
    limiter = Limiter(Limits(concurrency=9, tpm=1200), Endpoint("x"))
    limiter.acquire(0.0, 100)
    assert limiter.ready_at(0.0, 100) > 0.0
    limiter.release(100, 0)
    assert limiter.ready_at(0.0, 100) == 0.0


def test_a_pause_holds_everybody_at_the_endpoint_and_is_never_shortened() -> None:
    endpoint = Endpoint("x")
    one = Limiter(Limits(concurrency=1), endpoint)
    other = Limiter(Limits(concurrency=1), endpoint)
    endpoint.pause(10.0)
    endpoint.pause(5.0)
    assert one.ready_at(0.0, 0) == other.ready_at(0.0, 0) == 10.0


def test_slots_are_counted() -> None:
    limiter = Limiter(Limits(concurrency=2), Endpoint("x"))
    limiter.acquire(0.0, 0)
    assert limiter.has_slot
    limiter.acquire(0.0, 0)
    assert not limiter.has_slot
    limiter.release(0, None)
    assert limiter.statistics().in_flight == 1


@given(rpm=st.integers(1, 600), processes=st.integers(1, 9), calls=st.integers(1, 300))
def test_processes_that_share_limits_keep_to_them_together(
    rpm: int, processes: int, calls: int
) -> None:
    limits = Limits(concurrency=calls, rpm=rpm, tpm=10 * rpm, processes=processes)
    own = limits.per_process
    assert own.per_process == own
    assert own.concurrency * processes <= max(calls, processes)
    # each is as busy as it may be
    sent = _departures(
        Limiter(limits, Endpoint("x")), [1] * (rpm // processes + 5), 0.0
    )
    assert _busiest_minute(sent)[0] * processes <= max(rpm, processes)
