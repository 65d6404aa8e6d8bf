"""Simulated data sets with a known truth, for the coverage of intervals.

A data set is some clusters (posts, papers, reviews) of some items each; items of one
cluster are alike. Sizes of clusters are random, so that denominators are random too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from statistics import NormalDist
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from jobs.kit.metrics import (
    Form,
    Ratio,
    ResampledDifference,
    ResampledStatistic,
    Resamples,
    auroc_of,
)
from jobs.kit.metrics.cluster_statistics import Statistic

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Draw: TypeAlias = Callable[[np.random.Generator, int], Statistic | ResampledStatistic]

CLUSTERS = (5, 10, 30, 100)
SEED = 20260118
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """Where data sets come from."""

    truth: float  #: the value of the statistic over all clusters that there are
    draw: Draw  #: a data set of so many clusters


def alike(rng: np.random.Generator, p: float, likeness: float, sizes: Ints) -> Floats:
    """Hits of each cluster, with that correlation of the items of one cluster."""
    if p in {0.0, 1.0}:
        return p * sizes.astype(np.float64)
    spread = (1 - likeness) / likeness
    own = rng.beta(p * spread, (1 - p) * spread, len(sizes))
    return rng.binomial(sizes, own).astype(np.float64)


def sizes(rng: np.random.Generator, m: int) -> Ints:
    """Items of each cluster: 1 to some 20, 10 on average."""
    return 1 + rng.poisson(9, m)


def proportion(p: float, likeness: float) -> World:
    """A share of all items, such as sensitivity over posts."""

    def draw(rng: np.random.Generator, m: int) -> Ratio:
        n = sizes(rng, m)
        return Ratio(alike(rng, p, likeness, n), n.astype(np.float64))

    return World(truth=p, draw=draw)


def extraction(recall: float, precision: float, word: str) -> World:
    """Precision, recall or F1 of values extracted from papers."""
    truth_size = 7
    made_up = (1 - precision) / precision
    above = {"precision": recall, "recall": recall, "f1": 2 * recall}[word]
    below = {
        "precision": recall * (1 + made_up),
        "recall": 1.0,
        "f1": recall * (2 + made_up) + 1 - recall,
    }[word]

    def draw(rng: np.random.Generator, m: int) -> Ratio:
        n = 1 + rng.poisson(truth_size - 1, m)
        tp = alike(rng, recall, 0.15, n)
        fp, fn = rng.poisson(tp * made_up).astype(np.float64), n - tp
        return {
            "precision": Ratio(tp, tp + fp),
            "recall": Ratio(tp, tp + fn),
            "f1": Ratio(2 * tp, 2 * tp + fp + fn),
        }[word]

    return World(truth=above / below, draw=draw)


def paper_mean(p: float) -> World:
    """The mean over papers of the share found of 1 to 8 variants."""

    def draw(rng: np.random.Generator, m: int) -> Ratio:
        n = rng.integers(1, 9, m)
        return Ratio(alike(rng, p, 0.2, n) / n, np.ones(m))

    return World(truth=p, draw=draw)


def skewed_mean(p: float, spread: float) -> World:
    """A mean over papers of values from 0 to 1 with a long tail."""

    def draw(rng: np.random.Generator, m: int) -> Ratio:
        return Ratio(rng.beta(p * spread, (1 - p) * spread, m), np.ones(m))

    return World(truth=p, draw=draw)


def reciprocal_ranks(first: float) -> World:
    """MRR over queries drawn by post; the first hit comes after geometric waiting."""
    most = 2000
    ranks = np.arange(1, most)
    truth = float(np.sum(first * (1 - first) ** (ranks - 1) / ranks))

    def draw(rng: np.random.Generator, m: int) -> Ratio:
        n = 1 + rng.poisson(3, m)
        owner = np.repeat(np.arange(m), n)
        values = 1 / rng.geometric(first, len(owner))
        return Ratio(np.bincount(owner, values, m), n.astype(np.float64))

    return World(truth=truth, draw=draw)


def area(truth: float) -> World:
    """AUROC of normal scores that posts shift, a fifth of the variance."""
    shift = 0.25
    apart = NormalDist().inv_cdf(truth) * (2 * (1 + shift)) ** 0.5

    def draw(rng: np.random.Generator, m: int) -> ResampledStatistic:
        owner = np.repeat(np.arange(m), sizes(rng, m))
        y = rng.random(len(owner)) < 0.4
        y[:2] = True, False
        score = apart * y + rng.normal(size=len(owner))
        score += shift**0.5 * rng.normal(size=m)[owner]
        return auroc_of(y, score, owner)

    return World(truth=truth, draw=draw)


def difference(first: float, second: float) -> World:
    """Two models on the same items: the second is right where luck has it too."""

    def draw(rng: np.random.Generator, m: int) -> ResampledDifference:
        n = sizes(rng, m)
        own = rng.beta(9 * first, 9 * (1 - first), m) if first < 1 else np.ones(m)
        below = n.astype(np.float64)
        return ResampledDifference(
            *(
                Ratio(rng.binomial(n, own * p / first).astype(np.float64), below)
                for p in (first, second)
            )
        )

    return World(truth=first - second, draw=draw)


def mean_difference(first: float, second: float) -> World:
    """The mean over papers of a difference of two models."""

    def draw(rng: np.random.Generator, m: int) -> ResampledDifference:
        n = rng.integers(1, 9, m)
        own = rng.beta(9 * first, 9 * (1 - first), m)
        return ResampledDifference(
            *(
                Ratio(rng.binomial(n, own * p / first) / n, np.ones(m))
                for p in (first, second)
            )
        )

    return World(truth=first - second, draw=draw)


MIDDLE = (0.1, 0.3, 0.5, 0.7, 0.9)
EDGE = (0.98, 0.99, 0.995, 0.999, 1.0)

FAMILIES: Mapping[str, Mapping[str, World]] = {
    "proportion": {
        f"{p}, alike {likeness}": proportion(p, likeness)
        for p in (*MIDDLE, *EDGE)
        for likeness in (0.1, 0.3)
    },
    "ratio": {
        f"{word} of {recall}/{precision}": extraction(recall, precision, word)
        for word in ("precision", "recall", "f1")
        for recall, precision in ((0.5, 0.6), (0.9, 0.9), (0.98, 0.98))
    },
    "mean per paper": {
        **{f"{p}": paper_mean(p) for p in (0.5, 0.8, 0.9, *EDGE)},
        **{
            f"{p}, skewed": skewed_mean(p, spread)
            for p, spread in ((0.8, 5), (0.98, 10))
        },
    },
    "ranking mean": {f"{q}": reciprocal_ranks(q) for q in (0.3, 0.7, 0.97)},
    "AUROC": {f"{a}": area(a) for a in (0.6, 0.75, 0.9, 0.98)},
    "difference": {
        **{
            f"{a} and {b}": difference(a, b)
            for a, b in ((0.5, 0.5), (0.9, 0.8), (0.98, 0.97), (0.99, 0.99))
        },
        **{
            f"means {a} and {b}": mean_difference(a, b)
            for a, b in ((0.5, 0.5), (0.9, 0.8), (0.98, 0.97))
        },
    },
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Covered:
    """How intervals of one world fared."""

    share: float  #: that held the truth
    width: float  #: mean width of those that had both ends
    without: int  #: data sets without an interval, which count as missed


def covered(
    world: World, m: int, n: int, *, form: Form = "adjusted", b: int = 2000
) -> Covered:
    """Draw *n* data sets of *m* clusters."""
    rng = np.random.default_rng(SEED)
    draws = Resamples([f"{i:04}" for i in range(m)], b, form=form)
    hits, widths = 0, []
    for _ in range(n):
        statistic = world.draw(rng, m)
        found = draws.interval_of(statistic)
        if found.lo is not None and found.hi is not None:
            widths.append(found.hi - found.lo)
            hits += found.lo - ROUNDING <= world.truth <= found.hi + ROUNDING
    width = float(np.mean(widths)) if widths else np.nan
    return Covered(share=hits / n, width=width, without=n - len(widths))
