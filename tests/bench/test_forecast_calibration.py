"""The forecast is calibrated: a short form of the bench, with loose bounds."""

from __future__ import annotations

from statistics import median

from tests.bench.forecast_calibration import by_share, calibrate, changes, covered
from tests.bench.simulated_courses import SimulatedCourse, looks
from tests.bench.simulated_scenarios import scenario

SEEDS = range(9_000, 9_030)


def test_the_truth_lies_in_the_interval_as_often_as_is_said() -> None:
    small = [scenario(seed, most_items=100) for seed in SEEDS]
    groups = by_share(calibrate(small, (0.1, 0.5, 0.9)))
    for group in groups.values():
        assert all(look.has_time for look in group)
        assert covered(group) >= 0.7  # 27 of 30 are expected
        assert median(look.share_error for look in group) < 0.04
    assert median(look.error for look in groups[0.1]) < 0.35
    assert median(look.error for look in groups[0.5]) < 0.2


def test_time_left_hardly_changes_from_one_second_to_the_next() -> None:
    moved = sorted(changes(range(9_000, 9_003), most_items=100))
    assert moved[len(moved) // 2] < 0.02
    assert moved[int(0.95 * len(moved))] < 0.08


def test_a_course_and_its_forecasts_repeat() -> None:
    first, second = (
        looks(SimulatedCourse(scenario(9_000, most_items=80)), (0.2,)) for _ in range(2)
    )
    assert first[0].left_s == second[0].left_s
    assert first[0].live.forecast == second[0].live.forecast
    assert first[0].live.progress == second[0].live.progress
