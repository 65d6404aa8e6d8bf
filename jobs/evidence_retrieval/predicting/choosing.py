"""Which value of a grid each fold goes by, as its tuning posts say.

For fold k every candidate is judged on TUNE_k and with the thresholds of k's own gate.
What other folds' gates say of these posts may not be looked at: those have learnt from
the test posts of k.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields

import numpy as np

from jobs.evidence_retrieval.gating.nested import Folds, rows_of, splits
from jobs.evidence_retrieval.gating.splits import Split
from jobs.evidence_retrieval.pipeline import Config
from jobs.evidence_retrieval.predicting.columns import StepColumns
from jobs.evidence_retrieval.predicting.gated import Gated
from jobs.evidence_retrieval.predicting.grids import Constants, standing
from jobs.evidence_retrieval.predicting.selection import selection
from jobs.evidence_retrieval.queries import UNKNOWN, Queries
from jobs.evidence_retrieval.settings import Settings
from jobs.metrics import assign, evaluate, hits, mean, round12, select
from jobs.metrics.columns import Floats, Ints
from jobs.metrics.selective import States


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A configuration with one value of each grid, made for all queries."""

    constants: Constants
    last: StepColumns  #: the step that a reader sees
    gated: Gated | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """What is chosen from, and how; it holds no gold."""

    config: Config
    settings: Settings
    candidates: Sequence[Candidate]  #: the first wins ties

    @property
    def standing(self) -> Constants:
        """What holds where nothing can be chosen."""
        return standing([own.constants for own in self.candidates])

    @property
    def varied(self) -> tuple[str, ...]:
        """Names of the constants that differ between candidates."""
        values = {
            each.name: {getattr(own.constants, each.name) for own in self.candidates}
            for each in fields(Constants)
        }
        return tuple(name for name, own in values.items() if len(own) > 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldChoice:
    """What one fold goes by."""

    split: Split
    constants: Constants
    value: float | None  #: of the metric on TUNE; None: nothing to choose by


def choices(grid: Grid, queries: Queries, folds: Folds) -> Iterator[FoldChoice]:
    """The choice of each fold, on the posts that set its thresholds.

    A configuration without a fitted gate has none of these, and cuts its tuning posts
    from all judged ones in the same way.
    """
    for own in _splits(grid, queries, folds):
        yield choose(grid, queries, own)


def choose(grid: Grid, queries: Queries, own: Split) -> FoldChoice:
    """The choice of one fold; reads the gold of its tuning posts only."""
    best = FoldChoice(split=own, constants=grid.standing, value=None)
    tune = frozenset(own.tune)
    inside = np.array([post in tune for post in queries.posts])[queries.post]
    rows = np.flatnonzero(inside & (queries.y == 1))
    for candidate in grid.candidates:
        value = _reached(grid, candidate, queries, own, rows)
        if value is not None and (best.value is None or value > best.value):
            best = FoldChoice(split=own, constants=candidate.constants, value=value)
    return best


def _splits(grid: Grid, queries: Queries, folds: Folds) -> Sequence[Split]:
    gated = grid.candidates[0].gated
    if gated is not None and gated.result.folds:
        return [each.split for each in gated.result.folds]
    posts = [queries.posts[i] for i in queries.post.tolist()]
    return [*splits(folds, posts, queries.y)]


def _reached(
    grid: Grid, candidate: Candidate, queries: Queries, own: Split, rows: Ints
) -> float | None:
    """The mean of the metric over *rows*, which have evidence."""
    gold = queries.gold
    if gold is None:
        return None
    places = rows.tolist()
    lists = [candidate.last.lists[i] for i in places]
    found = hits([gold[i] for i in places], lists)
    settings = grid.settings
    if settings.grid_metric == "ndcg@10":
        column = evaluate(found, (10,))["ndcg@10"]
    else:
        k = selection(
            grid.config,
            settings,
            [candidate.last.scores[i] for i in places],
            _states(grid.config, candidate.gated, own, rows),
            candidate.constants.gamma,
        ).k
        chosen = select(found, k)
        by_metric: Mapping[str, Floats] = {
            "evidence_recall": chosen.recall,
            "evidence_precision": chosen.precision,
            "evidence_f1": chosen.f1,
        }
        column = by_metric[settings.grid_metric]
        if settings.skip_empty:
            column = column[k > 0]
    value = mean(column.tolist())
    # rounded, so that what is equal on paper is a tie and goes to the first
    return None if value is None else round12(value)


def _states(
    config: Config, gated: Gated | None, own: Split, rows: Ints
) -> States | None:
    """The states of *rows* by the fold's own gate, which was not tested on them."""
    if gated is None or not config.three_state:
        return None
    states = np.full(rows.max(initial=-1) + 1, UNKNOWN, dtype=np.int8)
    gate = gated.gate(own.fold)
    if gate is not None:
        inside = rows_of(gated.of.rows, own.tune) & (gated.of.places < len(states))
        states[gated.of.places[inside]] = assign(
            gate.probability(gated.of.rows.where(inside)),
            gate.thresholds.tau_neg,
            gate.thresholds.tau_pos,
            edge=gated.spec.edge,
        )
    return states[rows]
