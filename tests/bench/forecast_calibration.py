"""The forecast of a run against its course: 300 simulated runs, looked at on their way.

Runs have two or three stages and models, faults, and rates that change
(`tests/bench/simulated_courses.py`). Nobody pauses them or asks anything of them. A
hundred more runs have few items, of which the last ones have most follow-ups. The
constants of the forecast were fitted on other seeds, 30,000 to 30,229 and, of few
items, 31,000 to 31,059. The seeds of this bench served no fitting.

Coverage is the share of runs whose true time left lies in the interval; the error is
relative to the truth; width is that of the interval, relative to the estimate. Progress
is the true share of all tasks, and its error is in percentage points. The change from
one second to the next is relative, with the second that has passed taken off.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from statistics import median
from time import process_time

from tests.bench.row import Row
from tests.bench.simulated_courses import SimulatedCourse, looks, looks_at
from tests.bench.simulated_scenarios import (
    SimulatedScenario,
    few_items,
    scenario,
)
from tests.bench.verdict import most, shown

TARGET = "forecast"
SEEDS = range(40_000, 40_300)
FEW_SEEDS = range(50_000, 50_100)
"""Runs of few items."""
STEADY_SEEDS = SEEDS[:40]
"""Runs that are looked at second by second."""
STEADY_FROM = (0.1, 0.3, 0.5, 0.7, 0.9)
"""Shares of a run's duration from which it is."""
STEADY_S = 40
FAR_S = 20.0
"""True time left below which a second is itself a large share."""
SHARES = (0.05, 0.1, 0.2, 0.5, 0.8, 0.9)
COVERED = (0.85, 0.95)
ERRORS = {0.1: 0.15, 0.5: 0.08}
"""Goals of the median error, by progress."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastLook:
    """One look at one run."""

    share: float  #: of the work that was done
    has_time: bool  #: whether a time was forecast
    is_covered: bool  #: the true time left lies in the interval
    error: float  #: of the time left, relative to the truth
    width: float  #: of the interval, relative to the estimate
    share_error: float  #: of progress
    is_counted: bool  #: the true number of remaining tasks lies in its interval
    cpu_s: float  #: of the forecast, all that the log gives being read


def calibrate(
    scenarios: Iterable[SimulatedScenario], shares: Sequence[float]
) -> list[ForecastLook]:
    """Run each scenario and look at it when it has passed each of *shares*."""
    found = []
    for drawn in scenarios:
        course = SimulatedCourse(drawn)
        for share, look in zip(shares, looks(course, shares), strict=True):
            began = process_time()
            forecast = look.live.forecast
            cpu_s = process_time() - began
            progress = look.live.progress
            left = forecast.seconds if forecast else None
            tasks = progress.done / look.done - progress.done
            remaining = progress.remaining
            found.append(
                ForecastLook(
                    share=share,
                    has_time=left is not None,
                    is_covered=left is not None
                    and left.low <= look.left_s
                    and (left.high is None or look.left_s <= left.high),
                    error=abs(left.expected / look.left_s - 1) if left else 1.0,
                    width=(left.high - left.low) / left.expected
                    if left and left.high is not None
                    else float("inf"),
                    share_error=abs(progress.share - look.done),
                    is_counted=remaining.low - 0.5 <= tasks
                    and (remaining.high is None or tasks <= remaining.high + 0.5),
                    cpu_s=cpu_s,
                )
            )
    return found


def changes(seeds: Iterable[int], *, most_items: int = 1000) -> list[float]:
    """Return the relative changes of time left from each second to the next."""
    found = []
    for seed in seeds:
        course = SimulatedCourse(scenario(seed, most_items=most_items))
        times = sorted(
            {
                round(share * course.seconds) + second
                for share in STEADY_FROM
                for second in range(STEADY_S)
            }
        )
        before: tuple[float, float] | None = None
        for at_s, live in looks_at(course, times):
            if course.seconds - at_s < FAR_S:
                break
            left = live.forecast.seconds if live.forecast else None
            if left and before and before[0] == at_s - 1:
                found.append(abs(left.expected + 1 - before[1]) / before[1])
            before = (at_s, left.expected) if left else None
    return found


def by_share(found: Iterable[ForecastLook]) -> Mapping[float, list[ForecastLook]]:
    """Return the looks by progress."""
    groups: dict[float, list[ForecastLook]] = defaultdict(list)
    for look in found:
        groups[look.share].append(look)
    return groups


def covered(found: Sequence[ForecastLook]) -> float:
    """Return the share of looks whose interval held the truth."""
    return sum(look.is_covered for look in found) / len(found)


def measure(quick: bool) -> list[Row]:
    """The table by progress."""
    seeds = SEEDS[:60] if quick else SEEDS
    few_seeds = FEW_SEEDS[:20] if quick else FEW_SEEDS
    with ProcessPoolExecutor() as pool:
        found = _looks(pool, [scenario(seed) for seed in seeds])
        few = _looks(pool, [few_items(seed) for seed in few_seeds])
        steady = [STEADY_SEEDS[start::8] for start in range(8)]
        moved = sorted(x for part in pool.map(changes, steady) for x in part)
    rows = []
    for share, group in sorted(by_share(found).items()):
        at = f"{len(group)} runs, {share:.0%} done"
        rows += [
            _coverage(at, group),
            most(
                TARGET,
                f"{at}: median error of time left",
                median(look.error for look in group),
                ERRORS.get(share),
            ),
            shown(
                f"{at}: median width of the interval",
                median(look.width for look in group),
                TARGET,
            ),
            shown(
                f"{at}: median error of progress, points",
                100 * median(look.share_error for look in group),
                TARGET,
            ),
            shown(
                f"{at}: remaining tasks within 9 of 10",
                sum(look.is_counted for look in group) / len(group),
                TARGET,
            ),
        ]
    for share, group in sorted(by_share(few).items()):
        at = f"{len(group)} runs of few items, {share:.0%} done"
        error = median(look.error for look in group)
        rows += [
            _coverage(at, group),
            shown(f"{at}: median error of time left", error, TARGET),
        ]
    rows += [
        shown(
            f"{len(moved):,} pairs of seconds: {name} of the change of time left",
            moved[int(share * len(moved))],
            TARGET,
        )
        for name, share in (("median", 0.5), ("95th percentile", 0.95))
    ]
    cpu_ms = 1e3 * median(look.cpu_s for look in found)
    return [*rows, most(TARGET, "CPU of a forecast, ms", cpu_ms, 1.0)]


def _looks(
    pool: ProcessPoolExecutor, scenarios: Sequence[SimulatedScenario]
) -> list[ForecastLook]:
    parts = [scenarios[start::8] for start in range(8)]
    return [
        look
        for part in pool.map(calibrate, parts, [SHARES] * len(parts))
        for look in part
    ]


def _coverage(at: str, group: Sequence[ForecastLook]) -> Row:
    low, high = COVERED
    return Row(
        target=TARGET,
        what=f"{at}: share within 9 of 10",
        value=covered(group),
        goal=f"{low} to {high}",
        met=low <= covered(group) <= high,
    )
