"""Intervals of 95 % hold the truth in at least 94 % of simulated data sets.

2,000 data sets of each world with SIFTLOG_PROVE (minutes), few of few without; the
table of all worlds is in RESULTS.md. With few data sets the share itself is
uncertain, which the bounds allow for: three standard errors.
"""

from __future__ import annotations

import os

import pytest

from tests.jobs.kit.metrics.worlds import CLUSTERS, FAMILIES, MIDDLE, World, covered

PROVE = "SIFTLOG_PROVE" in os.environ
SETS = 2000 if PROVE else 150
AT_LEAST, AT_MOST = 0.94, 0.975
MANY = 30

SHORT = {
    "proportion": ("0.5, alike 0.1", "0.98, alike 0.3", "1.0, alike 0.1"),
    "ratio": ("f1 of 0.9/0.9",),
    "mean per paper": ("0.98", "0.98, skewed"),
    "ranking mean": ("0.7",),
    "AUROC": ("0.9",),
    "difference": ("0.9 and 0.8",),
}
WORLDS = [
    pytest.param(world, m, id=f"{family}: {name}, {m} clusters")
    for family, worlds in FAMILIES.items()
    for name, world in worlds.items()
    for m in CLUSTERS
    if PROVE or (name in SHORT[family] and (family != "AUROC" or m < max(CLUSTERS)))
]
MIDDLE_ONES = [
    pytest.param(FAMILIES["proportion"][f"{p}, alike {likeness}"], m, id=f"{p}, {m}")
    for p in (MIDDLE if PROVE else (0.5,))
    for likeness in (0.1, 0.3)
    for m in CLUSTERS
    if m >= MANY
]


def slack(share: float) -> float:
    """Three standard errors of a share of few data sets; none where it is proved."""
    return 0.0 if PROVE else 3 * (share * (1 - share) / SETS) ** 0.5


@pytest.mark.parametrize(("world", "m"), WORLDS)
def test_intervals_hold_the_truth(world: World, m: int) -> None:
    found = covered(world, m, SETS)
    assert found.share >= AT_LEAST - slack(AT_LEAST)
    assert found.without == 0


@pytest.mark.parametrize(("world", "m"), MIDDLE_ONES)
def test_they_are_not_wider_than_they_must_be(world: World, m: int) -> None:
    assert covered(world, m, SETS).share <= AT_MOST + slack(AT_MOST)


@pytest.mark.parametrize("name", ["0.98, alike 0.1", "0.99, alike 0.1"])
def test_the_simulation_finds_percentiles_wanting(name: str) -> None:
    world = FAMILIES["proportion"][name]
    found = covered(world, 10, SETS, form="percentile", b=500)
    assert found.share + found.without / SETS < AT_LEAST
