"""Selective prediction: a gate of three states, and risk against coverage."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from jobs.kit.metrics.columns import (
    Bools,
    Column,
    Floats,
    check_same_length,
    labels,
    probabilities,
    quotient,
    scores,
)
from jobs.kit.metrics.intervals import Interval, wilson

STATES = ("NEG", "UNCERTAIN", "POS")
NEG, UNCERTAIN, POS = range(3)

Edge: TypeAlias = Literal["lt", "le"]
States: TypeAlias = npt.NDArray[np.int8]
"""NEG, UNCERTAIN and POS as 0, 1 and 2."""


def assign(
    p: Column, tau_neg: float | Floats, tau_pos: float | Floats, *, edge: Edge = "lt"
) -> States:
    """The state of each probability, under one pair of thresholds or one a row.

    POS from *tau_pos* on (inf: nobody is). NEG below *tau_neg*; with `edge="le"` also
    at it, unless the row is POS.

    Raises:
        ValueError: where tau_neg lies above tau_pos.
    """
    column = probabilities("p", p)
    low, high = (
        np.broadcast_to(np.asarray(tau, dtype=np.float64), column.shape)
        for tau in (tau_neg, tau_pos)
    )
    if (crossed := low > high).any():
        i = int(np.argmax(crossed))
        raise ValueError(f"tau_neg {low[i]} is above tau_pos {high[i]} at index {i}.")
    states = np.full(column.shape, UNCERTAIN, dtype=np.int8)
    states[column < low if edge == "lt" else column <= low] = NEG
    states[column >= high] = POS
    return states


@dataclass(frozen=True, slots=True, kw_only=True)
class GateShare:
    """A proportion with what it was made of, and Wilson's interval."""

    value: float | None
    k: int
    n: int
    interval: Interval


def share(k: int, n: int) -> GateShare:
    """*k* of *n*; undefined where *n* is 0."""
    return GateShare(value=k / n if n else None, k=k, n=n, interval=wilson(k, n))


@dataclass(frozen=True, slots=True, kw_only=True)
class GateMetrics:
    """Shares that a gate passes and loses.

    Screening calls a row positive where its state is not NEG, alerting where it is POS.
    """

    n: int
    counts: Mapping[str, int]  #: rows by state
    rates: Mapping[str, GateShare]  #: states as shares of all rows
    screening_tp: int
    screening_fn: int
    screening_sensitivity: GateShare
    screening_specificity: GateShare
    screening_fpr: GateShare
    screening_npv: GateShare
    screening_fn_per_1000: float | None  #: of all rows
    screening_fn_per_1000_positive: (
        float | None
    )  #: of the positive ones: tenfold, often
    alert_precision: GateShare
    alert_recall: GateShare
    alert_fpr: GateShare
    alerts_per_1000: float | None


def gate_metrics(y: Column, states: States) -> GateMetrics:
    """Return the metrics of a gate's states against the truth."""
    truth = labels("y", y)
    check_same_length(y=truth, states=states)
    n, positive = len(truth), int(truth.sum())
    counts = np.bincount(states, minlength=len(STATES))
    true = np.bincount(states[truth], minlength=len(STATES))
    neg, alerts = int(counts[NEG]), int(counts[POS])
    lost, caught = int(true[NEG]), int(true[POS])
    return GateMetrics(
        n=n,
        counts={name: int(counts[i]) for i, name in enumerate(STATES)},
        rates={name: share(int(counts[i]), n) for i, name in enumerate(STATES)},
        screening_tp=positive - lost,
        screening_fn=lost,
        screening_sensitivity=share(positive - lost, positive),
        screening_specificity=share(neg - lost, n - positive),
        screening_fpr=share(n - positive - (neg - lost), n - positive),
        screening_npv=share(neg - lost, neg),
        screening_fn_per_1000=1000 * lost / n if n else None,
        screening_fn_per_1000_positive=1000 * lost / positive if positive else None,
        alert_precision=share(caught, alerts),
        alert_recall=share(caught, positive),
        alert_fpr=share(alerts - caught, n - positive),
        alerts_per_1000=1000 * alerts / n if n else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GateGrid:
    """A gate under many thresholds; rates are NaN where undefined."""

    taus_neg: Floats
    taus_pos: Floats
    neg_rate: Floats  #: by tau_neg
    screening_sensitivity: Floats  #: by tau_neg
    screening_npv: Floats  #: by tau_neg
    pos_rate: Floats  #: by tau_pos
    alert_precision: Floats  #: by tau_pos
    alert_recall: Floats  #: by tau_pos
    allowed: Bools  #: (tau_neg, tau_pos) pairs with tau_neg <= tau_pos


def gate_grid(y: Column, p: Column, taus_neg: Column, taus_pos: Column) -> GateGrid:
    """Both thresholds tried apart from each other, from one sort.

    What screening loses depends on tau_neg alone and what alerts are worth on tau_pos
    alone, as long as tau_neg <= tau_pos; so two axes tell a whole grid. NEG is p below
    tau_neg.
    """
    truth, column = labels("y", y), probabilities("p", p)
    check_same_length(y=truth, p=column)
    low = scores("taus_neg", taus_neg)
    high = np.asarray(taus_pos, dtype=np.float64)
    every, positive = np.sort(column), np.sort(column[truth])
    n, p_count = len(every), len(positive)
    neg = np.searchsorted(every, low, side="left")
    lost = np.searchsorted(positive, low, side="left")
    alerts = n - np.searchsorted(every, high, side="left")
    caught = p_count - np.searchsorted(positive, high, side="left")
    return GateGrid(
        taus_neg=low,
        taus_pos=high,
        neg_rate=quotient(neg, n),
        screening_sensitivity=quotient(p_count - lost, p_count),
        screening_npv=quotient(neg - lost, neg),
        pos_rate=quotient(alerts, n),
        alert_precision=quotient(caught, alerts),
        alert_recall=quotient(caught, p_count),
        allowed=low[:, None] <= high[None, :],
    )


@dataclass(frozen=True, slots=True)
class RiskCoverage:
    """One point per distinct confidence, from the most confident on."""

    confidence: Floats
    coverage: Floats  #: share of rows at least so confident
    risk: Floats  #: share of errors among them


def risk_coverage(confidence: Column, error: Column) -> RiskCoverage:
    """The risk of answering, by how many rows are answered.

    The confidence of a binary probability p is max(p, 1 - p).
    """
    blocks = _blocks(confidence, error)
    seen, errors = np.cumsum(blocks.size), np.cumsum(blocks.errors)
    n = seen[-1] if len(seen) else 1.0
    return RiskCoverage(
        confidence=blocks.confidence, coverage=seen / n, risk=errors / seen
    )


def coverage_at_risk(confidence: Column, error: Column, risk: float) -> float | None:
    """The largest coverage with at most that *risk*; 0.0 if no point has it."""
    points = risk_coverage(confidence, error)
    if not len(points.risk):
        return None
    return float(np.max(points.coverage[points.risk <= risk], initial=0.0))


def risk_at_coverage(
    confidence: Column, error: Column, coverage: float
) -> float | None:
    """The risk at the first point that covers at least *coverage*."""
    points = risk_coverage(confidence, error)
    enough = np.flatnonzero(points.coverage >= coverage)
    return float(points.risk[enough[0]]) if len(enough) else None


def aurc(confidence: Column, error: Column) -> float | None:
    """Mean over ranks of the expected risk (Geifman and others, 2019).

    The errors of a block of tied confidences are spread evenly over it, so the order of
    rows does not matter.
    """
    blocks = _blocks(confidence, error)
    n = int(blocks.size.sum())
    if not n:
        return None
    before = np.repeat(np.cumsum(blocks.errors) - blocks.errors, blocks.size)
    share = np.repeat(blocks.errors / blocks.size, blocks.size)
    first = np.repeat(np.cumsum(blocks.size) - blocks.size, blocks.size)
    rank = np.arange(1, n + 1)
    return math.fsum((before + share * (rank - first)) / rank) / n


def excess_aurc(confidence: Column, error: Column) -> float | None:
    """Return `aurc` minus its best value for this number of errors: all ranked last."""
    area = aurc(confidence, error)
    if area is None:
        return None
    wrong = labels("error", error)
    n, errors = len(wrong), int(wrong.sum())
    rank = np.arange(1, n + 1)
    return area - math.fsum(np.maximum(0, rank - (n - errors)) / rank) / n


@dataclass(frozen=True, slots=True)
class _Blocks:
    confidence: Floats
    size: np.ndarray[tuple[int], np.dtype[np.int64]]
    errors: Floats


def _blocks(confidence: Column, error: Column) -> _Blocks:
    """Rows of one confidence, the most confident first."""
    column, wrong = scores("confidence", confidence), labels("error", error)
    check_same_length(confidence=column, error=wrong)
    values, index = np.unique(-column, return_inverse=True)
    return _Blocks(
        confidence=-values,
        size=np.bincount(index, minlength=len(values)).astype(np.int64),
        errors=np.bincount(index[wrong], minlength=len(values)).astype(np.float64),
    )
