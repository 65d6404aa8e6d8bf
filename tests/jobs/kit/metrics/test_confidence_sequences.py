"""Confidence sequences hold the mean at all looks together."""

from __future__ import annotations

import os

import numpy as np
import numpy.typing as npt
import pytest

from jobs.kit.metrics.confidence_sequences import DrawnValues, MeanSequence

PROVE = "SIFTLOG_PROVE" in os.environ
PATHS = 20_000 if PROVE else 1000
DRAWS, ITEMS, ALPHA = 300, 500, 0.05

Floats = npt.NDArray[np.float64]


def misses(drawn: DrawnValues, mean: Floats) -> float:
    """Share of paths on which the mean is ever ruled out."""
    above = drawn.capital(mean, ALPHA).max(axis=-1)
    below = drawn.mirrored_capital(mean, ALPHA).max(axis=-1)
    return float((np.maximum(above, below) >= 2 / ALPHA).mean())


@pytest.mark.parametrize("share", [0.5, 0.1, 0.02])
def test_the_mean_is_ruled_out_on_few_paths(share: float) -> None:
    rng = np.random.default_rng(20260118)
    values = (rng.random((PATHS, ITEMS)) < share).astype(np.float64)
    means = values.mean(axis=1)
    first = values[:, :DRAWS]
    most = ALPHA + 3 * (ALPHA * (1 - ALPHA) / PATHS) ** 0.5
    assert misses(DrawnValues(values=first, population=ITEMS), means) <= most


def test_it_narrows_and_ends_at_the_truth() -> None:
    values = np.random.default_rng(3).permutation([1.0] * 60 + [0.0] * 140)
    widths = []
    for n in (0, 20, 80, 200):
        interval = MeanSequence(values=values[:n], population=200).interval
        assert interval.lo is not None
        assert interval.hi is not None
        assert interval.lo <= 0.3 <= interval.hi
        widths.append(interval.hi - interval.lo)
    assert widths == sorted(widths, reverse=True)
    assert widths[0] == 1
    assert widths[-1] == 0


@pytest.mark.parametrize(
    ("sequence", "message"),
    [
        (MeanSequence(values=[0.5, 1.5], population=9), "between 0 and 1"),
        (MeanSequence(values=[0.5, 1.0], population=1), "2 draws from 1 items"),
    ],
)
def test_impossible_draws_are_refused(sequence: MeanSequence, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _ = sequence.interval
