"""Simulated populations that a biased judge read, and people labelled a part of.

All populations of a cell are drawn at once: an item is one of 16 kinds (truth, the
judge's verdict, the model's verdict, whether the judge is unsure), a population is how
many items there are of each, and a sample how many of them are labelled.

`siftlog label --draw` samples systematically from a shuffled list, with unequal
probabilities. Here no design has more than two of them. Given how many items of either
probability the sample holds, it is a random sample of each; only that number needs a
shuffled list.

Draws by strata are estimated by them, as `siftlog estimate-quality` does:
`test_prediction_powered` proves that both are the same on some populations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from jobs.kit.labels.draws import FLOOR
from jobs.kit.labels.quality import LEAST_OF_STRATUM
from jobs.kit.metrics.prediction_powered import (
    FEW,
    RATIOS,
    Bounds,
    LabelledStratum,
    PoweredEstimates,
    Terms,
    powered_estimates,
)

Floats: TypeAlias = npt.NDArray[np.float64]
Ints: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]
Design: TypeAlias = Literal[
    "random", "stratified", "disagreement", "uncertainty", "width", "by stratum"
]

DESIGNS: tuple[Design, ...] = (
    *("random", "stratified", "disagreement", "uncertainty", "width"),
    "by stratum",
)
"""Those of `siftlog label`, and fixed numbers by the judge's verdict."""

BY_MODEL: tuple[Design, ...] = ("stratified", "width")
"""Designs whose strata are the model's verdicts, with a fixed number of items each."""

METRICS = ("prevalence", "accuracy", "precision", "recall")
KINDS = np.array(list(product((0, 1), repeat=4)), dtype=np.float64)
TRUTH, JUDGE, MODEL, UNSURE = KINDS.T
PREDICTION = np.where(JUDGE == 1, 0.95, 0.05) * (1 - UNSURE) + UNSURE * np.where(
    JUDGE == 1, 0.65, 0.35
)
UNSURE_IF_WRONG, UNSURE_IF_RIGHT = 0.5, 0.1
MODEL_ERROR = 0.1
UNLABELLED = 10  #: items without a label, for each with one
SEED = 20260118
BLOCK = 2000
MOST_CONSERVATIVE = 0.1  #: share of such intervals in a cell that counts as nominal


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

    def scores(self, counts: Ints) -> Floats:
        """What the draw's probabilities are proportional to, by population and kind."""
        match self.design:
            case "disagreement":
                each = (JUDGE != MODEL).astype(np.float64)
            case "uncertainty":
                each = 1 - np.abs(2 * PREDICTION - 1)
            case "stratified":
                sizes = np.array([counts[0] @ (side == MODEL) for side in (0, 1)])
                each = 1 / sizes[MODEL.astype(np.int64)]
            case "width":  # spreads of errors that are known from former labels
                wrong = TRUTH != MODEL
                shares = [
                    self.shares[wrong & (side == MODEL)].sum()
                    / self.shares[side == MODEL].sum()
                    for side in (0, 1)
                ]
                spreads = np.sqrt([share * (1 - share) for share in shares])
                each = spreads[MODEL.astype(np.int64)]
            case _:
                each = np.ones(len(KINDS))
        return np.broadcast_to(each, counts.shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Worlds:
    """Cells of all combinations, with the seed of their populations."""

    labels: tuple[int, ...]
    prevalences: tuple[float, ...]
    judges: tuple[tuple[float, float], ...]  #: bias and error of each
    seed: int

    def cells(self) -> Iterator[Cell]:
        """All of them, by labels, prevalence, design and judge."""
        for n, prevalence, design, (bias, error) in product(
            self.labels, self.prevalences, DESIGNS, self.judges
        ):
            yield Cell(
                prevalence=prevalence, bias=bias, labels=n, design=design, error=error
            )


TUNED = Worlds(
    labels=(100, 200, 500),
    prevalences=(0.5, 0.1),
    judges=((-0.2, 0.1), (-0.1, 0.1), (0.0, 0.1), (0.1, 0.1), (0.2, 0.1)),
    seed=SEED,
)
"""Cells on which the corrections were tuned."""

FRESH = Worlds(
    labels=(150, 300),
    prevalences=(0.3, 0.05),
    judges=((0.15, 0.05), (-0.08, 0.2), (0.0, 0.03), (-0.03, 0.01), (0.02, 0.0)),
    seed=SEED + 1,
)
"""Cells that were simulated once everything was fixed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """What became of the intervals of one metric in a cell."""

    cell: Cell
    metric: str
    populations: int
    powered: float  #: share of intervals that hold the truth
    labels_alone: float
    naive: float
    conservative: float  #: share of intervals that are marked so
    median_width: float  #: in widths of labels alone, population by population
    widest: float

    @property
    def is_nominal(self) -> bool:
        """Whether at most a tenth of the intervals are conservative."""
        return self.conservative <= MOST_CONSERVATIVE


def coverage(cell: Cell, populations: int, seed: int = SEED) -> list[Coverage]:
    """Simulate *populations* of a cell; measure all `METRICS` on the same draws."""
    rng = np.random.default_rng(seed)
    rows: dict[str, list[Floats]] = {metric: [] for metric in METRICS}
    for start in range(0, populations, BLOCK):
        drawn = list(_draw(cell, min(BLOCK, populations - start), rng))
        for strata in [drawn] if cell.design not in BY_MODEL else by_verdict(*drawn):
            for metric in METRICS:
                rows[metric].append(_outcomes(cell, metric, strata))
    return [
        _coverage(cell, metric, np.concatenate(rows[metric], axis=1)) for metric in rows
    ]


def _coverage(cell: Cell, metric: str, rows: Floats) -> Coverage:
    powered, alone, naive, conservative, width = rows[:, ~np.isnan(rows).any(axis=0)]
    return Coverage(
        cell=cell,
        metric=metric,
        populations=len(width),
        powered=float(powered.mean()),
        labels_alone=float(alone.mean()),
        naive=float(naive.mean()),
        conservative=float(conservative.mean()),
        median_width=float(np.median(width)),
        widest=float(width.max()),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnStratum:
    """A stratum of each population, and its labels."""

    counts: Ints  #: items of each kind, a population a row
    labelled: Ints  #: of them
    chances: Floats

    def of(self, rows: Bools, kinds: Bools | None = None) -> DrawnStratum:
        """Some populations, and only items of some kinds."""
        members = np.ones(len(KINDS), dtype=np.int64) if kinds is None else kinds
        return DrawnStratum(
            counts=self.counts[rows] * members,
            labelled=self.labelled[rows] * members,
            chances=self.chances[rows],
        )


def _draw(
    cell: Cell, populations: int, rng: np.random.Generator
) -> Iterator[DrawnStratum]:
    if cell.design != "by stratum":
        counts = _populations(cell, populations, rng)
        chances = _chances(cell.scores(counts), counts, cell.labels)
        is_likelier = chances > chances.min(axis=1, keepdims=True) + 1e-12
        likelier = np.zeros(populations, dtype=np.int64)
        if is_likelier.any():
            likelier = _systematic(counts, chances, is_likelier, rng)
        rest = cell.labels - likelier
        labelled = _sampled(np.where(is_likelier, counts, 0), likelier, rng)
        labelled += _sampled(np.where(is_likelier, 0, counts), rest, rng)
        yield DrawnStratum(counts=counts, labelled=labelled, chances=chances)
        return
    for verdict in (0, 1):
        part = np.where(verdict == JUDGE, cell.shares, 0.0)
        labels = max(5, round(cell.labels * (0.5 * part.sum() + 0.25)))
        items = max(labels, round(cell.items * part.sum()))
        counts = rng.multinomial(items, part / part.sum(), size=populations)
        yield DrawnStratum(
            counts=counts,
            labelled=_sampled(counts, np.full(populations, labels), rng),
            chances=np.full(counts.shape, labels / items),
        )


def _populations(cell: Cell, populations: int, rng: np.random.Generator) -> Ints:
    """Items of each kind, a population a row."""
    shares = cell.shares
    if cell.design not in BY_MODEL:
        return rng.multinomial(cell.items, shares, size=populations)
    positive = round(cell.items * shares[MODEL == 1].sum())
    sides = ((0, cell.items - positive), (1, positive))
    parts = (
        rng.multinomial(items, part / part.sum(), size=populations)
        for side, items in sides
        for part in (np.where(side == MODEL, shares, 0.0),)
    )
    return np.asarray(sum(parts))


def by_verdict(drawn: DrawnStratum) -> Iterator[list[DrawnStratum]]:
    """Split a draw by the model's verdict where there are enough labels of both."""
    positive = drawn.labelled @ MODEL
    negative = drawn.labelled.sum(axis=1) - positive
    is_enough = np.minimum(positive, negative) >= LEAST_OF_STRATUM
    if not is_enough.all():
        yield [drawn.of(~is_enough)]
    if is_enough.any():
        yield [drawn.of(is_enough, side == MODEL) for side in (0, 1)]


def _chances(scores: Floats, counts: Ints, n: int) -> Floats:
    """Probabilities as those of `jobs.kit.labels.draws.proportional`, by kind."""
    items = counts.sum(axis=1, keepdims=True)
    mean = (counts * scores).sum(axis=1, keepdims=True) / items
    floored = (1 - FLOOR) * scores / mean + FLOOR
    chances = n * floored / items
    is_certain = chances >= 1
    left = n - (counts * is_certain).sum(axis=1, keepdims=True)
    others = np.where(is_certain, 0.0, floored)
    scale = left / np.maximum((counts * others).sum(axis=1, keepdims=True), 1e-300)
    return np.asarray(np.where(is_certain, 1.0, others * scale))


def _systematic(
    counts: Ints, chances: Floats, is_likelier: Bools, rng: np.random.Generator
) -> Ints:
    """How many of the likelier items a systematic sample of a shuffled list holds."""
    likelier = (counts * is_likelier).sum(axis=1)
    shuffled = np.arange(int(counts[0].sum())) < likelier[:, None]
    rng.permuted(shuffled, axis=1, out=shuffled)
    row, place = np.nonzero(shuffled)
    before = np.arange(len(row)) - (np.cumsum(likelier) - likelier)[row]
    least, most = chances.min(axis=1)[row], chances.max(axis=1)[row]
    # the points start, start + 1, ... that fall into an item's length
    at = before * most + (place - before) * least - rng.random(len(counts))[row]
    is_chosen = np.ceil(at) < np.ceil(at + most)
    return np.asarray(np.bincount(row[is_chosen], minlength=len(counts)))


def _sampled(counts: Ints, n: Ints, rng: np.random.Generator) -> Ints:
    """Random samples of *n* items, by kind."""
    sample = np.zeros_like(counts)
    rest, left = counts.sum(axis=1), n.copy()
    for kind in range(counts.shape[1]):
        of_kind = counts[:, kind]
        rest = rest - of_kind
        sample[:, kind] = rng.hypergeometric(of_kind, rest, left)
        left = left - sample[:, kind]
    return sample


def _outcomes(cell: Cell, metric: str, drawn: list[DrawnStratum]) -> Floats:
    """Hits of the three intervals, marks and relative widths, a population a column."""
    terms_of = RATIOS[metric]
    true, predicted = terms_of(TRUTH, MODEL), terms_of(cell.prediction, MODEL)
    estimates = estimated(cell, metric, drawn)
    counts = sum(stratum.counts for stratum in drawn)
    with np.errstate(invalid="ignore", divide="ignore"):
        truth = (counts @ true.above) / (counts @ true.below)
    return np.stack(
        [
            _hits(estimates.powered, truth),
            _hits(estimates.labels_alone, truth),
            _naive_hits(counts @ predicted.above, counts @ predicted.below, truth),
            (estimates.residuals < FEW).astype(np.float64),
            _relative_width(estimates),
        ]
    )


def estimated(cell: Cell, metric: str, drawn: list[DrawnStratum]) -> PoweredEstimates:
    """The estimates of all populations."""
    terms_of = RATIOS[metric]
    predicted = terms_of(cell.prediction, MODEL)
    strata = []
    for stratum in drawn:
        items = int(stratum.counts[0].sum())
        # as `estimate_rate` scales them: labels stand for all items of the stratum
        stands_for = (stratum.labelled / stratum.chances).sum(axis=1, keepdims=True)
        strata.append(
            LabelledStratum(
                size=items,
                truth=terms_of(TRUTH, MODEL),
                predicted=predicted,
                predicted_means=Terms(
                    *(stratum.counts @ column / items for column in predicted)
                ),
                probabilities=np.minimum(1.0, stratum.chances * stands_for / items),
                counts=stratum.labelled.astype(np.float64),
            )
        )
    return powered_estimates(strata, terms_of)


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
