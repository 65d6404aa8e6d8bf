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


def weighted_draws(
    values: Floats, sizes: Floats, rng: np.random.Generator
) -> DrawnValues:
    """Draw without replacement, each time in proportion to the sizes left."""
    keys = -np.log(rng.random(values.shape)) / sizes
    order = np.argsort(keys, axis=1)[:, :DRAWS]
    drawn = np.take_along_axis(sizes, order, axis=1)
    before = np.cumsum(drawn, axis=1) - drawn
    return DrawnValues(
        values=np.take_along_axis(values, order, axis=1),
        population=values.shape[1],
        chances=drawn / (sizes.sum(axis=1, keepdims=True) - before),
        floor=float(sizes.min() / sizes.max()),
    )


@pytest.mark.parametrize("share", [0.5, 0.1, 0.02])
def test_the_mean_is_ruled_out_on_few_paths(share: float) -> None:
    rng = np.random.default_rng(20260118)
    values = (rng.random((PATHS, ITEMS)) < share).astype(np.float64)
    means = values.mean(axis=1)
    first = values[:, :DRAWS]
    sizes = np.where(rng.random(values.shape) < 0.3 + 0.4 * values, 2.0, 1.0)
    most = ALPHA + 3 * (ALPHA * (1 - ALPHA) / PATHS) ** 0.5
    assert misses(DrawnValues(values=first), np.full(PATHS, share)) <= most
    assert misses(DrawnValues(values=first, population=ITEMS), means) <= most
    assert misses(weighted_draws(values, sizes, rng), means) <= most


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


def test_equal_chances_are_no_chances() -> None:
    values = np.random.default_rng(4).integers(0, 2, 50).astype(np.float64)
    chances = 1 / (200 - np.arange(50))
    plain = MeanSequence(values=values, population=200).interval
    same = MeanSequence(values=values, population=200, chances=chances).interval
    assert same.lo == pytest.approx(plain.lo)
    assert same.hi == pytest.approx(plain.hi)


@pytest.mark.parametrize(
    ("sequence", "message"),
    [
        (MeanSequence(values=[0.5, 1.5]), "between 0 and 1"),
        (MeanSequence(values=[0.5, 1.0], population=1), "2 draws from 1 items"),
        (MeanSequence(values=[0.5], chances=[0.1]), "number of items"),
        (
            MeanSequence(values=[0.5], population=10, chances=[0.01], floor=0.5),
            "less than 0.5 of an equal chance",
        ),
    ],
)
def test_impossible_draws_are_refused(sequence: MeanSequence, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        _ = sequence.interval
