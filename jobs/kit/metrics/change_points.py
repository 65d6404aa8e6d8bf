"""Tests whether a share changed at some point of a sequence, valid at every look.

Verdicts of a model arrive one after another. Without a change, those of alike items (a
*stratum*, such as items that all other models answer correctly) are exchangeable:
their order says nothing. The alternative is that from some call on, the log-odds of
every stratum moved by the same amount. The e-value

    E_t = sum over k, d of w_k w_d P(x_1..x_t | k, d) / P(x_1..x_t)

over change points k and moves d is a martingale without a change, whatever the looks,
so it ever exceeds 1 / alpha with a probability of at most alpha (Ville's inequality;
Ramdas, Grünwald, Vovk and Shafer, "Game-theoretic statistics and safe anytime-valid
inference", Statistical Science 38, 2023). Both probabilities integrate the unknown
shares of the strata over Jeffreys' prior. The guarantee therefore holds on average over
that prior; the tests simulate it for single shares.

Change points that a log names, such as the first reply of another build of a model,
together have 80 % of the weight. The rest is spread evenly over all planned calls.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from jobs.kit.metrics.columns import Bools, Floats

STRIDE: Final = 25
"""Least number of calls between change points that are tried and not named."""

MOST_POINTS: Final = 80
"""Change points that are tried and not named, at most."""

MOVES: Final = (-1.0, -0.5, 0.5, 1.0)
"""Moves of the log-odds that are tried: -0.5 is from 90 to 85 % or from 50 to 38 %."""

NAMED: Final = 0.8
"""Weight of all named change points together."""

_NODES: Final = np.linspace(-12.0, 12.0, 33)
"""Nodes of the integrals over a share's log-odds, in standard deviations."""

_NEWTON_STEPS: Final = 25
_SMALL_STEP: Final = 1e-6

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class VerdictSequence:
    """Verdicts of a model in the order in which they were known.

    Raises:
        ValueError: the columns differ in length, or a change point is not a call.
    """

    calls: Ints  #: number of the call that each verdict is of, from 0
    values: Bools  #: whether the verdict is positive
    strata: Ints  #: of alike items, from 0; known before the verdict is
    planned: int  #: calls in all, as planned; change points are spread over them
    named: Sequence[int] = ()  #: first calls of named changes

    def __post_init__(self) -> None:
        if not len(self.calls) == len(self.values) == len(self.strata):
            raise ValueError("Calls, values and strata differ in length.")
        if any(not 0 < call < self.planned for call in self.named):
            raise ValueError(f"A named change is not within {self.planned} calls.")


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseShare:
    """Verdicts before or after a change."""

    n: int
    positive: int

    @property
    def share(self) -> float | None:
        """Share of positive verdicts; None: there are none."""
        return self.positive / self.n if self.n else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeTest:
    """Evidence for a change after all verdicts of a sequence."""

    e_value: float  #: at the last look
    largest: float  #: at any look; a change is found if it exceeds 1 / alpha
    detected_at: int | None  #: verdicts when it first exceeded 1 / alpha
    call: int | None  #: first call after the most likely change; None: too few calls
    weight: float  #: share of the evidence that this change point has
    before: PhaseShare
    after: PhaseShare

    def is_detected(self, alpha: float) -> bool:
        """Return whether a change is found at error rate *alpha*."""
        return self.largest >= 1 / alpha


def change_test(sequence: VerdictSequence, *, alpha: float = 0.05) -> ChangeTest:
    """Test a sequence for a change, with looks as far apart as change points.

    Args:
        sequence: verdicts in the order in which they were known.
        alpha: error rate over all looks, for `detected_at`.
    """
    stride = max(STRIDE, -(-sequence.planned // MOST_POINTS))
    points, log_weights = _change_points(sequence, stride)
    n = len(sequence.values)
    # change points after the last verdict have no evidence yet
    begun = points <= sequence.calls.max(initial=-1)
    if not begun.any():
        whole = PhaseShare(n=n, positive=int(sequence.values.sum()))
        return ChangeTest(
            e_value=1.0,
            largest=1.0,
            detected_at=None,
            call=None,
            weight=0.0,
            before=whole,
            after=PhaseShare(n=0, positive=0),
        )
    looks = [*range(stride, n, stride), n]
    largest, detected_at = -math.inf, None
    log_odds = np.zeros(1)
    for look in looks:
        reached = points <= sequence.calls[:look].max()
        log_odds = log_weights.copy()
        log_odds[reached] += _log_likelihood_ratios(sequence, points[reached], look)
        total = float(np.logaddexp.reduce(log_odds))
        largest = max(largest, total)
        if detected_at is None and total >= -math.log(alpha):
            detected_at = look
    best = int(np.argmax(np.where(begun, log_odds, -np.inf)))
    is_after = sequence.calls >= points[best]
    return ChangeTest(
        e_value=_bounded_exp(float(np.logaddexp.reduce(log_odds))),
        largest=_bounded_exp(largest),
        detected_at=detected_at,
        call=int(points[best]),
        weight=math.exp(float(log_odds[best] - np.logaddexp.reduce(log_odds))),
        before=_side(sequence.values[~is_after]),
        after=_side(sequence.values[is_after]),
    )


def _bounded_exp(value: float) -> float:
    """Return exp(value), at most the largest double."""
    return math.exp(min(value, 709.0))


def _side(values: Bools) -> PhaseShare:
    return PhaseShare(n=len(values), positive=int(values.sum()))


def _change_points(sequence: VerdictSequence, stride: int) -> tuple[Ints, Floats]:
    """Return the change points that are tried, and the logarithms of their weights."""
    named = sorted(set(sequence.named))
    others = [k for k in range(stride, sequence.planned, stride) if k not in named]
    share = (NAMED if others else 1.0) if named else 0.0
    weights = [share / len(named) for _ in named]
    weights += [(1.0 - share) / len(others) for _ in others]
    return np.array([*named, *others], dtype=np.int64), np.log(np.array(weights))


def _log_likelihood_ratios(
    sequence: VerdictSequence, points: Ints, look: int
) -> Floats:
    """Return log P(x | k) - log P(x) of the first *look* verdicts, by change point."""
    calls, values = sequence.calls[:look], sequence.values[:look]
    strata = sequence.strata[:look]
    if not len(points):
        return np.zeros(0)
    ratios = np.zeros((len(MOVES), len(points)))
    for stratum in np.unique(strata):
        of_stratum = strata == stratum
        order = np.argsort(calls[of_stratum], kind="stable")
        ordered, right = calls[of_stratum][order], values[of_stratum][order]
        before = np.searchsorted(ordered, points)
        sums = np.concatenate([[0], np.cumsum(right)])
        n, s = float(len(right)), float(sums[-1])
        n_after, s_after = n - before, s - sums[before]
        (without,) = _log_marginals(
            np.array([s]), np.array([n - s]), np.zeros(1), np.zeros(1), 0.0
        )
        for row, move in enumerate(MOVES):
            ratios[row] += (
                _log_marginals(
                    sums[before].astype(np.float64),
                    (before - sums[before]).astype(np.float64),
                    s_after.astype(np.float64),
                    n_after - s_after,
                    move,
                )
                - without
            )
    return np.asarray(np.logaddexp.reduce(ratios, axis=0) - math.log(len(MOVES)))


def _log_marginals(
    right: Floats, wrong: Floats, right_after: Floats, wrong_after: Floats, move: float
) -> Floats:
    """Return the log-likelihoods of counts, integrated over a share.

    With the log-odds l of the share, the integrand is sigmoid(l)^(right + 1/2)
    sigmoid(-l)^(wrong + 1/2) times the same of the counts after a change at l + move.
    It is log-concave: the trapezoidal rule around its mode is accurate to 0.1 %.
    """
    a, b = right + 0.5, wrong + 0.5
    mode = np.log((a + right_after) / (b + wrong_after)) - move / 2
    n, n_after = a + b, right_after + wrong_after
    curvature = np.ones_like(mode)
    for _ in range(_NEWTON_STEPS):
        p, q = _sigmoid(mode), _sigmoid(mode + move)
        slope = a + right_after - n * p - n_after * q
        curvature = n * p * (1 - p) + n_after * q * (1 - q)
        step = np.clip(slope / curvature, -1.0, 1.0)
        mode = mode + step
        if np.abs(step).max() < _SMALL_STEP:
            break
    deviation = 1 / np.sqrt(curvature)
    at = mode[:, None] + deviation[:, None] * _NODES
    moved = at + move
    # log sigmoid(-l) = log sigmoid(l) - l saves half of the logarithms
    logs = (
        -n[:, None] * np.logaddexp(0, -at)
        - b[:, None] * at
        - n_after[:, None] * np.logaddexp(0, -moved)
        - wrong_after[:, None] * moved
    )
    width = deviation * (_NODES[1] - _NODES[0])
    # Jeffreys' prior has the factor 1 / pi, which cancels in every ratio
    return np.asarray(np.logaddexp.reduce(logs, axis=1) + np.log(width))


def _sigmoid(values: Floats) -> Floats:
    return np.asarray(0.5 * (1 + np.tanh(values / 2)))
