"""What one model under one configuration says of the judged queries, part by part.

A part is there if its input is: format E has no probabilities, predictions without
rankings have no lists. `within` cuts all parts to the queries of a fold or criterion,
so that every number is made by the same code for the whole and for its pieces.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from jobs.evidence_retrieval.measuring.chosen import Chosen, choose
from jobs.evidence_retrieval.measuring.ranked import Ranked, read_lists
from jobs.evidence_retrieval.queries import (
    SCORED,
    SKIPPED,
    UNKNOWN,
    FoldGate,
    Predictions,
    Queries,
)
from jobs.evidence_retrieval.settings import Settings
from jobs.metrics.columns import Bools, Floats, Ints
from jobs.metrics.selective import States, assign

STATED = "as the file says"


@dataclass(frozen=True, slots=True, kw_only=True)
class Gated:
    """Judged queries with a probability, or at least a score."""

    rows: Ints
    y: Bools
    p: Floats
    is_probability: bool  #: False: the largest stage score

    def within(self, mask: Bools) -> Gated:
        """Those of *mask*, which has a place for every query."""
        at = mask[self.rows]
        return replace(self, rows=self.rows[at], y=self.y[at], p=self.p[at])


@dataclass(frozen=True, slots=True, kw_only=True)
class Stated:
    """Judged queries with a state."""

    rows: Ints
    y: Bools
    state: States
    how: str  #: for definitions

    def within(self, mask: Bools) -> Stated:
        """Those of *mask*."""
        at = mask[self.rows]
        return replace(self, rows=self.rows[at], y=self.y[at], state=self.state[at])


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """A prediction's columns, cut to what can be scored."""

    queries: Queries
    prediction: Predictions
    settings: Settings
    judged: Bools  #: (Q,)
    gated: Gated | None = None
    stated: Stated | None = None
    lists: Mapping[str, Ranked] = field(default_factory=dict)
    chosen: Chosen | None = None
    given: Mapping[str, tuple[Ints, Floats]] = field(default_factory=dict)
    """Numbers that cannot be recomputed: rows with evidence, and their values."""
    statuses: Mapping[str, int] = field(default_factory=dict)  #: all queries, by status

    @property
    def final(self) -> Ranked | None:
        """The list that a reader sees."""
        return self.lists.get(self.prediction.final)

    def within(self, mask: Bools) -> Block:
        """The same for some of the queries."""
        return replace(
            self,
            judged=self.judged & mask,
            gated=self.gated and self.gated.within(mask),
            stated=self.stated and self.stated.within(mask),
            lists={name: own.within(mask) for name, own in self.lists.items()},
            chosen=self.chosen and self.chosen.within(mask),
            given={
                name: (rows[mask[rows]], values[mask[rows]])
                for name, (rows, values) in self.given.items()
            },
        )


def block_of(
    queries: Queries,
    prediction: Predictions,
    settings: Settings,
    gates: tuple[FoldGate, ...] = (),
) -> Block:
    """The parts of one prediction.

    Args:
        queries: of the sheet.
        prediction: of one model under one configuration.
        settings: of the job.
        gates: of the sheet; a fold whose gate could not be fitted has no part in it.
    """
    judged = queries.y != UNKNOWN
    gated = _gated(queries, prediction, judged & ~_unfitted(queries, prediction, gates))
    stated = _stated(queries, prediction, settings, gated, judged)
    return Block(
        queries=queries,
        prediction=prediction,
        settings=settings,
        judged=judged,
        gated=gated,
        stated=stated,
        lists=read_lists(queries, prediction, settings),
        chosen=choose(queries, prediction, settings),
        given=_given(queries, prediction),
        statuses=_statuses(prediction),
    )


def _unfitted(
    queries: Queries, prediction: Predictions, gates: tuple[FoldGate, ...]
) -> Bools:
    names = {
        gate.fold
        for gate in gates
        if (gate.model, gate.config) == (prediction.model, prediction.config)
        and gate.has_gate
        and gate.tau_neg is None
    }
    places = [i for i, name in enumerate(queries.folds) if name in names]
    return np.isin(queries.fold, places)


def _gated(queries: Queries, prediction: Predictions, judged: Bools) -> Gated | None:
    column = prediction.prob
    if column is None:
        column = prediction.score
    if column is None:
        return None
    rows = np.flatnonzero(judged & ~np.isnan(column))
    return Gated(
        rows=rows,
        y=queries.y[rows] == 1,
        p=column[rows],
        is_probability=prediction.prob is not None,
    )


def _stated(
    queries: Queries,
    prediction: Predictions,
    settings: Settings,
    gated: Gated | None,
    judged: Bools,
) -> Stated | None:
    low, high = prediction.tau_neg, prediction.tau_pos
    if settings.states == "recomputed" or prediction.state is None:
        has_p = gated and gated.is_probability
        if gated and has_p and low is not None and high is not None:
            return recomputed(gated, low, high, settings)
    if prediction.state is None:
        return None
    rows = np.flatnonzero(judged & (prediction.state != UNKNOWN))
    return Stated(
        rows=rows, y=queries.y[rows] == 1, state=prediction.state[rows], how=STATED
    )


def recomputed(gated: Gated, low: Floats, high: Floats, settings: Settings) -> Stated:
    """The states that follow from p and each query's thresholds, where it has any."""
    own = gated.within(~np.isnan(low) & ~np.isnan(high))
    state = assign(own.p, low[own.rows], high[own.rows], edge=settings.gate_edge)
    return Stated(
        rows=own.rows,
        y=own.y,
        state=state,
        how=f"from p and the row's thresholds, edge={settings.gate_edge}",
    )


def _given(queries: Queries, prediction: Predictions) -> dict[str, tuple[Ints, Floats]]:
    """Of queries with evidence only, whatever the other rows hold."""
    found = {}
    for name, column in prediction.given.items():
        rows = np.flatnonzero((queries.y == 1) & ~np.isnan(column))
        found[name] = (rows, column[rows])
    return found


def _statuses(prediction: Predictions) -> dict[str, int]:
    counts: dict[str, int] = {}
    for status in prediction.status:
        counts[status] = counts.get(status, 0) + 1
    return {
        SCORED: counts.get(SCORED, 0),
        SKIPPED: sum(n for s, n in counts.items() if s.startswith(SKIPPED)),
        **{name: counts[name] for name in sorted(counts) if name != SCORED},
    }
