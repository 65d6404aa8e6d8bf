"""Time in a replay: it moves at a speed, stands still, and passes over absences."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.replay import SPEEDS, STILL_S, LogTimeSpan, Playhead, format_speed, parse_speed

S = 1_000_000


def head(
    speed: float = 10.0, *absences: tuple[int, int], end_s: int = 1000
) -> Playhead:
    """At the beginning of a log, at second 5 of our clock."""
    gone = tuple((since * S, until * S) for since, until in absences)
    span = LogTimeSpan(begin_us=0, end_us=end_s * S, absences=gone)
    return Playhead(span=span, at_us=0, since_s=5.0, speed=speed)


def test_it_moves_at_its_speed_and_ends_with_the_log() -> None:
    assert head(10.0).us(8.0) == 30 * S
    assert head(0.5).us(8.0) == 1.5 * S
    assert head(10.0).us(5000.0) == 1000 * S
    assert head(math.inf).us(5.0) == 1000 * S


def test_it_stands_still_and_goes_on_from_there() -> None:
    still = head().toggled(30 * S, 8.0)
    assert (still.is_paused, still.us(100.0)) == (True, 30 * S)
    on = still.toggled(30 * S, 100.0)
    assert (on.is_paused, on.us(101.0)) == (False, 40 * S)


def test_another_speed_counts_from_where_it_is_taken_up() -> None:
    assert head().at_speed(100.0, 30 * S, 8.0).us(9.0) == 130 * S


def test_of_an_absence_the_beginning_is_shown_and_the_rest_passed_over() -> None:
    moving = head(10.0, (100, 500))
    assert moving.us(15.0) == 100 * S
    shown_until = 100 + STILL_S
    assert moving.us(5.0 + shown_until / 10) == pytest.approx(500 * S)
    assert moving.us(5.0 + shown_until / 10 - 0.1) == (shown_until - 1) * S
    assert moving.us(5.0 + shown_until / 10 + 1) == 510 * S


def test_a_short_absence_is_shown_whole() -> None:
    assert head(1.0, (100, 110)).us(110.0) == 105 * S


def test_who_is_put_into_an_absence_leaves_it_at_once() -> None:
    assert head(1.0, (100, 500)).put(300 * S, 5.0).us(6.0) == 501 * S


def test_no_place_is_outside_of_the_log() -> None:
    assert head().put(-1, 5.0).at_us == 0
    assert head().put(2000 * S, 5.0).at_us == 1000 * S


@given(
    st.lists(st.integers(0, 999), unique=True, max_size=10),
    st.floats(0.1, 1000),
    st.lists(st.floats(0, 2000), min_size=2, max_size=2),
)
def test_time_never_goes_back(
    ends: list[int], speed: float, times: list[float]
) -> None:
    ordered = sorted(ends)
    absences = list(zip(ordered[::2], ordered[1::2], strict=False))
    moving = head(speed, *absences)
    early, late = sorted(times)
    assert 0 <= moving.us(5 + early) <= moving.us(5 + late) <= 1000 * S


def test_keys_lead_through_the_speeds() -> None:
    assert head(10.0).next_speed(1) == 20.0
    assert head(10.0).next_speed(-1) == 5.0
    assert head(12.0).next_speed(-1) == 10.0
    assert head(SPEEDS[0]).next_speed(-1) == SPEEDS[0]
    assert head(math.inf).next_speed(1) == math.inf


@pytest.mark.parametrize(
    ("name", "speed"), [("10x", 10), ("10", 10), ("0.5x", 0.5), (".5x", 0.5)]
)
def test_speeds_are_read_as_they_are_typed(name: str, speed: float) -> None:
    assert parse_speed(name) == speed


@pytest.mark.parametrize("speed", SPEEDS)
def test_a_speed_is_told_as_it_is_typed(speed: float) -> None:
    assert parse_speed(format_speed(speed)) == speed


@pytest.mark.parametrize("name", ["0x", "-1x", "x", "", "fast", "1e3x", "inf", "nan"])
def test_what_is_no_speed_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="is no speed"):
        parse_speed(name)
