"""The retry table: every class of failure has one bounded decision."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner import errors as e
from runner.engine.failure_policy import MAX_ATTEMPTS, RETRY_RULES, decide_retry

LEAVES = e.AttemptError.__subclasses__()


def _decide(error: e.AttemptError, **changes: float) -> object:
    given = {"same": 1, "tries": 1, "elapsed_s": 0, "deadline_s": 3600, "chance": 0.5}
    return decide_retry(error, **{**given, **changes})


def test_every_class_of_failure_stands_in_the_table() -> None:
    assert set(RETRY_RULES) == set(LEAVES)


@pytest.mark.parametrize("leaf", LEAVES)
def test_every_class_of_failure_says_what_it_is(leaf: type[e.AttemptError]) -> None:
    assert leaf.__doc__
    assert leaf.__doc__ != e.AttemptError.__doc__


@pytest.mark.parametrize(
    "final", [e.BadRequest, e.ContextTooLong, e.ContentFiltered, e.BudgetExceeded]
)
def test_what_cannot_get_better_is_never_repeated(final: type[e.AttemptError]) -> None:
    assert _decide(final("no")).retry_in_s is None


def test_retry_after_is_obeyed_and_pauses_the_endpoint() -> None:
    decision = _decide(e.RateLimited("slow down", retry_after_s=7.0), chance=0.0)
    assert decision.retry_in_s == 7.0
    assert decision.pause_endpoint_s == 7.0


def test_backoff_doubles_up_to_its_cap() -> None:
    delays = [
        _decide(e.ServerError("broken"), same=n, chance=1.0).retry_in_s
        for n in range(1, 8)
    ]
    assert delays == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0]


@pytest.mark.parametrize("leaf", LEAVES)
def test_an_outage_of_any_length_is_a_decision(leaf: type[e.AttemptError]) -> None:
    decision = _decide(leaf("again"), same=100_000, chance=0.999)
    assert decision.retry_in_s is None or decision.retry_in_s <= RETRY_RULES[leaf].cap_s


def test_a_wrong_key_stops_the_endpoint_and_blames_no_task() -> None:
    decision = _decide(e.AuthFailed("401"))
    assert decision.retry_in_s == 0.0


@given(
    leaf=st.sampled_from(LEAVES),
    same=st.integers(1, 40),
    tries=st.integers(1, 60),
    elapsed=st.floats(0, 1e5),
    chance=st.floats(0, 1, exclude_max=True),
)
def test_retries_are_bounded_by_class_by_task_and_by_deadline(
    leaf: type[e.AttemptError], same: int, tries: int, elapsed: float, chance: float
) -> None:
    decision = decide_retry(
        leaf("failed"),
        same=same,
        attempts=tries,
        elapsed_s=elapsed,
        deadline_s=3600.0,
        chance=chance,
    )
    if decision.retry_in_s is not None and not RETRY_RULES[leaf].stops_endpoint:
        assert same < RETRY_RULES[leaf].max_attempts
        assert tries < MAX_ATTEMPTS
        assert elapsed + decision.retry_in_s <= 3600.0
