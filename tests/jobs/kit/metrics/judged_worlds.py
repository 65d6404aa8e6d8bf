"""Simulated populations that a biased judge read, and people labelled a part of.

All populations of a cell are drawn at once: an item is one of 16 kinds (truth, the
judge's verdict, the model's verdict, whether the judge is unsure), and a population is
how many items there are of each.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from jobs.kit.metrics.prediction_powered import (
    RATIOS,
    Bounds,
    LabelledStratum,
    PoweredEstimates,
    Terms,
    powered_estimates,
)

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Design: TypeAlias = Literal["random", "stratified", "disagreement", "uncertainty"]

DESIGNS: tuple[Design, ...] = ("random", "stratified", "disagreement", "uncertainty")
METRICS = ("prevalence", "accuracy", "precision", "recall")
KINDS = np.array(list(product((0, 1), repeat=4)), dtype=np.float64)
TRUTH, JUDGE, MODEL, UNSURE = KINDS.T
PREDICTION = np.where(JUDGE == 1, 0.95, 0.05) * (1 - UNSURE) + UNSURE * np.where(
    JUDGE == 1, 0.65, 0.35
)
UNSURE_IF_WRONG, UNSURE_IF_RIGHT = 0.5, 0.1
MODEL_ERROR = 0.1
OVERSAMPLED = 3.0
UNLABELLED = 10  #: items without a label, for each with one
SEED = 20260118
BLOCK = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A kind of population and of draw."""

    prevalence: float
    bias: float  #: of the judge's share of positives
    labels: int
    design: Design
    error: float = 0.1  #: of the judge, before the bias
    is_sure: bool = False  #: predictions are the judge's verdicts, 0 or 1

    @property
    def items(self) -> int:
        """Items of a population."""
        return self.labels * (1 + UNLABELLED)

    @property
    def prediction(self) -> Floats:
        """The judge's prediction of each kind."""
        return JUDGE if self.is_sure else PREDICTION

    @property
    def shares(self) -> Floats:
        """The probability of each kind of item."""
        p, e = self.prevalence, self.error
        missed = min(e * p + max(0.0, -self.bias), 0.98 * p)
        invented = min(e * (1 - p) + max(0.0, self.bias), 0.98 * (1 - p))
        joint = np.where(
            TRUTH == 1,
            np.where(JUDGE == 1, p - missed, missed),
            np.where(JUDGE == 1, invented, 1 - p - invented),
        )
        unsure = np.where(JUDGE == TRUTH, UNSURE_IF_RIGHT, UNSURE_IF_WRONG)
        model = np.where(MODEL == TRUTH, 1 - MODEL_ERROR, MODEL_ERROR)
        return np.asarray(
            joint * model * np.where(UNSURE == 1, unsure, 1 - unsure), dtype=np.float64
        )

    @property
    def sizes(self) -> Floats:
        """How much more often the design draws an item of each kind."""
        match self.design:
            case "disagreement":
                return np.where(JUDGE != MODEL, OVERSAMPLED, 1.0)
            case "uncertainty":
                return np.where(UNSURE == 1, OVERSAMPLED, 1.0)
            case _:
                return np.ones(len(KINDS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """What became of the intervals of one metric in a cell."""

    metric: str
    populations: int
    powered: float  #: share of intervals that hold the truth
    labels_alone: float
    naive: float
    median_width: float  #: in widths of labels alone, population by population
    widest: float


def coverage(cell: Cell, populations: int, seed: int = SEED) -> list[Coverage]:
    """Simulate *populations* of a cell; measure all `METRICS` on the same draws."""
    rng = np.random.default_rng(seed)
    rows: dict[str, list[Floats]] = {metric: [] for metric in METRICS}
    for start in range(0, populations, BLOCK):
        drawn = _draw(cell, min(BLOCK, populations - start), rng)
        for metric in METRICS:
            rows[metric].append(_outcomes(cell, metric, drawn))
    return [_coverage(metric, np.concatenate(rows[metric], axis=1)) for metric in rows]


def _coverage(metric: str, rows: Floats) -> Coverage:
    powered, alone, naive, width = rows[:, ~np.isnan(rows).any(axis=0)]
    return Coverage(
        metric=metric,
        populations=len(width),
        powered=float(powered.mean()),
        labels_alone=float(alone.mean()),
        naive=float(naive.mean()),
        median_width=float(np.median(width)),
        widest=float(width.max()),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _DrawnStratum:
    counts: Ints  #: items of each kind, a population a row
    kinds: Ints  #: of the labelled items, in the order of the draw
    chances: Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """A stratum before the draw."""

    shares: Floats  #: of the kinds among its items
    items: int
    labels: int


def _draw(
    cell: Cell, populations: int, rng: np.random.Generator
) -> list[_DrawnStratum]:
    shares = cell.shares
    if cell.design != "stratified":
        whole = _Part(shares=shares, items=cell.items, labels=cell.labels)
        return [_stratum(cell, whole, populations, rng)]
    strata = []
    for verdict in (0, 1):
        part = np.where(verdict == JUDGE, shares, 0.0)
        labels = max(5, round(cell.labels * (0.5 * part.sum() + 0.25)))
        items = max(labels, round(cell.items * part.sum()))
        stratum = _Part(shares=part / part.sum(), items=items, labels=labels)
        strata.append(_stratum(cell, stratum, populations, rng))
    return strata


def _stratum(
    cell: Cell, part: _Part, populations: int, rng: np.random.Generator
) -> _DrawnStratum:
    """Draw by sequential Poisson sampling: the smallest u / chance come first.

    Of the items of one kind only the next u is needed: the least of k uniform numbers
    above the last one.
    """
    counts = rng.multinomial(part.items, part.shares, size=populations)
    sizes = cell.sizes
    chances = np.minimum(1.0, part.labels * sizes / (counts @ sizes)[:, None])
    left = counts.astype(np.float64)
    row = np.arange(populations)
    u = _next_uniform(np.zeros_like(left), left, rng)
    keys = u / chances
    kinds = np.empty((populations, part.labels), dtype=np.int64)
    for position in range(part.labels):
        kind = keys.argmin(axis=1)
        kinds[:, position] = kind
        left[row, kind] -= 1
        u[row, kind] = _next_uniform(u[row, kind], left[row, kind], rng)
        keys[row, kind] = u[row, kind] / chances[row, kind]
    return _DrawnStratum(
        counts=counts, kinds=kinds, chances=np.take_along_axis(chances, kinds, axis=1)
    )


def _next_uniform(u: Floats, left: Floats, rng: np.random.Generator) -> Floats:
    step = 1 - rng.random(u.shape) ** (1 / np.maximum(left, 1))
    return np.where(left > 0, u + (1 - u) * step, np.inf)


def _outcomes(cell: Cell, metric: str, drawn: list[_DrawnStratum]) -> Floats:
    """Hits of the three intervals and the relative width, a population a column."""
    terms_of = RATIOS[metric]
    true, predicted = terms_of(TRUTH, MODEL), terms_of(cell.prediction, MODEL)
    strata = []
    for stratum in drawn:
        items = int(stratum.counts[0].sum())
        strata.append(
            LabelledStratum(
                size=items,
                truth=Terms(*(column[stratum.kinds] for column in true)),
                predicted=Terms(*(column[stratum.kinds] for column in predicted)),
                predicted_means=Terms(
                    *(stratum.counts @ column / items for column in predicted)
                ),
                probabilities=stratum.chances,
            )
        )
    estimates = powered_estimates(strata, terms_of)
    counts = sum(stratum.counts for stratum in drawn)
    with np.errstate(invalid="ignore", divide="ignore"):
        truth = (counts @ true.above) / (counts @ true.below)
    return np.stack(
        [
            _hits(estimates.powered, truth),
            _hits(estimates.labels_alone, truth),
            _naive_hits(counts @ predicted.above, counts @ predicted.below, truth),
            _relative_width(estimates),
        ]
    )


def _hits(bounds: Bounds, truth: Floats) -> Floats:
    hits = (bounds.lo <= truth) & (truth <= bounds.hi)
    return np.where(np.isnan(truth) | np.isnan(bounds.value), np.nan, hits)


def _naive_hits(above: Floats, below: Floats, truth: Floats) -> Floats:
    with np.errstate(invalid="ignore", divide="ignore"):
        value = above / below
        half = 1.96 * np.sqrt(value * (1 - value) / below)
    return np.where(np.isnan(truth), np.nan, np.abs(value - truth) <= half)


def _relative_width(estimates: PoweredEstimates) -> Floats:
    powered, alone = estimates.powered, estimates.labels_alone
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray((powered.hi - powered.lo) / (alone.hi - alone.lo))
