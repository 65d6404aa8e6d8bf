"""When a learned limit is tried upwards; on a number as clock."""

from __future__ import annotations

from runner.limits.learned_rate import QUIET_REQUESTS, QUIET_S, SEVERAL, UpwardSteps


def _steps(
    climb: UpwardSteps, seconds: float, *, start: float, rate: float
) -> list[float]:
    times = [start + i / rate for i in range(int(seconds * rate))]
    return [step for step in map(climb.sent, times) if step]


def test_a_limit_rests_before_it_is_tried_upwards_in_growing_steps() -> None:
    climb = UpwardSteps()
    climb.rest(0.0)
    assert _steps(climb, QUIET_S - 1, start=0.0, rate=100) == []
    assert _steps(climb, 17.0, start=QUIET_S - 1, rate=100) == [0.05, 0.1, 0.2, 0.4]


def test_few_requests_are_no_rest_however_long_they_take() -> None:
    climb = UpwardSteps()
    climb.rest(0.0)
    assert _steps(climb, QUIET_REQUESTS - 2, start=0.0, rate=1) == []


def test_an_estimate_of_short_standing_is_tried_sooner() -> None:
    climb = UpwardSteps()
    climb.rest(0.0, 2.0, 100)
    assert _steps(climb, 3.0, start=0.0, rate=100) == [0.05]


def test_a_limit_that_does_not_matter_is_not_raised() -> None:
    climb = UpwardSteps()
    climb.rest(0.0)
    climb.slack()
    assert _steps(climb, QUIET_S + 4, start=0.0, rate=100) == []
    assert _steps(climb, 5.0, start=QUIET_S + 4, rate=100) == [0.05]


def test_refusals_after_steps_are_explained_and_others_are_in_vain() -> None:
    climb = UpwardSteps()
    climb.rest(0.0)
    assert len(_steps(climb, QUIET_S + 7, start=0.0, rate=100)) == 2
    found = []
    for _ in range(4):
        climb.refused()
        found.append(climb.in_vain)
    assert found == [0, 0, 1, 2]


def test_a_new_measure_explains_nothing_that_comes_after_it() -> None:
    climb = UpwardSteps()
    climb.rest(0.0)
    assert _steps(climb, QUIET_S + 7, start=0.0, rate=100)
    climb.measured()
    climb.refused()
    assert climb.in_vain == 1


def test_where_refusals_come_all_the_time_a_short_rest_proves_nothing() -> None:
    climb = UpwardSteps()
    climb.rest(0.0)
    for n in range(SEVERAL):
        _steps(climb, 10.0, start=10.0 * n, rate=100)
        climb.missed()
        climb.refused()
    assert climb.share == 1 / 1000
    climb.rest(30.0, 1.0, 1)
    assert _steps(climb, 29.0, start=30.0, rate=100) == []
    assert _steps(climb, 2.0, start=59.0, rate=100) == [0.05]
