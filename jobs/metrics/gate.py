"""A gate of three states: NEG is skipped, UNCERTAIN read with care, POS an alert."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from jobs.metrics.columns import (
    Bools,
    Column,
    Floats,
    labels,
    of_one_length,
    probabilities,
    quotient,
    scores,
)
from jobs.metrics.intervals import Interval, wilson

STATES = ("NEG", "UNCERTAIN", "POS")
NEG, UNCERTAIN, POS = range(3)

Edge: TypeAlias = Literal["lt", "le"]
States: TypeAlias = npt.NDArray[np.int8]
"""NEG, UNCERTAIN and POS as 0, 1 and 2."""


def assign(
    p: Column,
    tau_neg: float | Floats,
    tau_pos: float | Floats,
    *,
    edge: Edge = "lt",
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
        raise ValueError(f"tau_neg {low[i]} lies above tau_pos {high[i]} at index {i}.")
    states = np.full(column.shape, UNCERTAIN, dtype=np.int8)
    states[column < low if edge == "lt" else column <= low] = NEG
    states[column >= high] = POS
    return states


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """A proportion with what it was made of, and Wilson's interval."""

    value: float | None
    k: int
    n: int
    interval: Interval


def share(k: int, n: int) -> Share:
    """*k* of *n*; undefined where *n* is 0."""
    return Share(value=k / n if n else None, k=k, n=n, interval=wilson(k, n))


@dataclass(frozen=True, slots=True, kw_only=True)
class GateMetrics:
    """What a gate lets through and what it loses.

    Screening calls a row positive where its state is not NEG, alerting where it is POS.
    """

    n: int
    counts: Mapping[str, int]  #: rows by state
    rates: Mapping[str, Share]  #: states as shares of all rows
    screening_tp: int
    screening_fn: int
    screening_sensitivity: Share
    screening_specificity: Share
    screening_npv: Share
    screening_fn_per_1000: float | None  #: of all rows
    screening_fn_per_1000_positive: (
        float | None
    )  #: of the positive ones: tenfold, often
    alert_precision: Share
    alert_recall: Share
    alerts_per_1000: float | None


def gate_metrics(y: Column, states: States) -> GateMetrics:
    """How the states stand to the truth."""
    truth = labels("y", y)
    of_one_length(y=truth, states=states)
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
        screening_npv=share(neg - lost, neg),
        screening_fn_per_1000=1000 * lost / n if n else None,
        screening_fn_per_1000_positive=1000 * lost / positive if positive else None,
        alert_precision=share(caught, alerts),
        alert_recall=share(caught, positive),
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
    of_one_length(y=truth, p=column)
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
