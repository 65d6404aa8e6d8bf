"""How often the monitor looks: what slows it down, and that a person's word stands."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tui.terminal.shell import ENOUGH, MAX_FRAMES, RATES, REMOTE, RefreshRate, Timings


def test_it_begins_slower_where_every_frame_crosses_a_network() -> None:
    assert RefreshRate(None, {}).rate == 2.0
    assert RefreshRate(None, {"SSH_CONNECTION": "1.2.3.4 5 6.7.8.9 22"}).rate == REMOTE
    assert RefreshRate(4.0, {"SSH_CONNECTION": "1.2.3.4 5 6.7.8.9 22"}).rate == 4.0


def test_slow_frames_make_it_slower_once() -> None:
    pace = RefreshRate(None, {})
    for _ in range(ENOUGH):
        assert not pace.is_relieved()
        pace.frames.add(0.06)
    assert pace.is_relieved()
    assert pace.rate == REMOTE
    assert not pace.is_relieved()


def test_one_slow_frame_among_quick_ones_changes_nothing() -> None:
    pace = RefreshRate(None, {})
    for seconds in (0.4, *[0.01] * ENOUGH):
        pace.frames.add(seconds)
    assert not pace.is_relieved()


def test_what_a_person_chose_is_kept() -> None:
    pace = RefreshRate(None, {})
    pace.step(1)
    for _ in range(ENOUGH):
        pace.frames.add(1.0)
    assert not pace.is_relieved()
    assert pace.rate == 4.0


@given(st.lists(st.sampled_from([-1, 1])))
def test_the_pace_stays_among_those_there_are(steps: list[int]) -> None:
    pace = RefreshRate(None, {})
    for by in steps:
        pace.step(by)
        assert pace.rate in RATES


@given(st.lists(st.floats(0, 10), min_size=1), st.floats(0.01, 1))
def test_a_percentile_is_a_time_that_was_taken(
    taken: list[float], share: float
) -> None:
    timings = Timings()
    for seconds in taken:
        timings.add(seconds)
    found = timings.percentile(share)
    assert found in taken
    assert found is not None
    at_most = sum(seconds <= found for seconds in timings.taken)
    assert at_most >= share * len(timings.taken)


def test_only_the_latest_times_are_kept() -> None:
    timings = Timings()
    assert timings.percentile(0.5) is None
    for seconds in (9.0, *[1.0] * MAX_FRAMES):
        timings.add(seconds)
    assert timings.percentile(1) == 1.0
