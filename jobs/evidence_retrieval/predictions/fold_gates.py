"""Fits the gates of a scoring and chooses grid values, fold by fold.

Configurations that have the same gate share it.

For fold k every candidate is evaluated on TUNE_k and with the thresholds of k's gate.
Gates of other folds must not be used for these posts, because they were fitted to the
test posts of k.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from jobs.evidence_retrieval.data import EvidenceDataset
from jobs.evidence_retrieval.pipeline import Config
from jobs.evidence_retrieval.predictions.classifier import (
    CannotFitError,
    Split,
    features,
)
from jobs.evidence_retrieval.predictions.columns import (
    ModelColumns,
    StepColumns,
    folds_of,
)
from jobs.evidence_retrieval.predictions.fitted_gate import (
    FeatureRows,
    FittedGate,
    StoredGate,
)
from jobs.evidence_retrieval.predictions.gate import (
    FoldAssignment,
    FoldResult,
    GateSpec,
    LabelledRows,
    Nested,
    apply_gate,
    fit,
    nested,
    rows_of,
    spec_of,
    splits,
)
from jobs.evidence_retrieval.predictions.rankings import (
    Constants,
    default_constants,
    gate_chain,
    ranking_chains,
    varied,
)
from jobs.evidence_retrieval.predictions.stages import selection
from jobs.evidence_retrieval.queries import UNKNOWN, Queries
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.metrics import assign, evaluate, hits, mean, round12, select
from jobs.kit.metrics.columns import Bools, Floats, Ints
from jobs.kit.metrics.selective import States


@dataclass(frozen=True, slots=True, kw_only=True)
class GateRows:
    """The queries with features for a gate, and their indices among all."""

    rows: FeatureRows
    indices: npt.NDArray[np.intp]  #: index of each row in file order


def gate_rows(
    queries: Queries, model: ModelColumns, step: StepColumns, *, needs_statement: bool
) -> GateRows:
    """Return the rows of one model and ranking.

    A query whose requested assessment is missing or unparsed has no row, nor has a post
    without sentences.
    """
    stated = model.stated("probability")
    is_usable: Bools = queries.pool > 0
    if needs_statement or not np.isnan(stated).all():
        is_usable &= ~np.isnan(stated)
    post_rank = _ranks(queries.posts)[queries.post]
    criterion_rank = _ranks(queries.criteria)[queries.criterion]
    order = np.lexsort((criterion_rank, post_rank))
    indices = order[is_usable[order]]
    rows = features(
        probability=stated[indices],
        deviation=model.stated("deviation")[indices],
        shape=step.shape[:, indices],
        listed=model.stated("listed")[indices],
        relevance=model.stated("largest")[indices],
        pool=queries.pool[indices],
        criterion=queries.criterion[indices],
        criteria=queries.criteria,
        posts=tuple(queries.posts[i] for i in queries.post[indices].tolist()),
    )
    return GateRows(rows=rows, indices=indices)


def _ranks(ids: tuple[str, ...]) -> npt.NDArray[np.intp]:
    """Return the rank of each id in the order of text."""
    rank = {name: i for i, name in enumerate(sorted(ids))}
    return np.array([rank[name] for name in ids], dtype=np.intp)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateOutput:
    """Results of a gate for one model's queries under one ranking."""

    spec: GateSpec
    of: GateRows
    y: Ints  #: labels of the rows
    result: Nested
    applied: StoredGate | None = None  #: used instead of a fitted one

    def fitted(self, fold: str | None) -> FoldResult | None:
        """Return the result for a fold, or None if nothing was fitted."""
        return next((one for one in self.result.folds if one.split.fold == fold), None)

    def gate(self, fold: str | None) -> FittedGate | None:
        """Return the gate that decides a fold, or None."""
        if self.applied is not None:
            return self.applied.gate
        fold_result = self.fitted(fold)
        return None if fold_result is None else fold_result.gate


class FittedGates:
    """Gates of a scoring, fitted on first use."""

    def __init__(self, dataset: EvidenceDataset, queries: Queries) -> None:
        self._dataset = dataset
        self._queries = queries
        self.folds = FoldAssignment(
            names=queries.folds,
            of=folds_of(dataset),
            seed=dataset.settings.seed,
            tune_fraction=dataset.settings.tune_fraction,
        )
        self._outputs: dict[object, GateOutput] = {}

    def of(
        self, model: str, columns: ModelColumns, config: Config, constants: Constants
    ) -> GateOutput | None:
        """Return the gate of a configuration under some constants, or None.

        Configurations that share a gate get the same object.
        """
        spec = spec_of(config, self._dataset.settings)
        if spec is None:
            return None
        chain = gate_chain(ranking_chains(config, constants))
        # a stored gate belongs to one configuration, by name
        config_name = config.name if self._dataset.gates else ""
        key = (model, chain, spec, config.is_fitted, config_name)
        if key not in self._outputs:
            of = gate_rows(
                self._queries,
                columns,
                columns.steps[chain],
                needs_statement=spec.kind == "passthrough",
            )
            self._outputs[key] = self._gate(spec, of, model, config)
        return self._outputs[key]

    def _gate(
        self, spec: GateSpec, of: GateRows, model: str, config: Config
    ) -> GateOutput:
        y = self._queries.y[of.indices]
        name = (model, config.name)
        stored = next(
            (one for one in self._dataset.gates if (one.model, one.config) == name),
            None,
        )
        if stored is not None and stored.gate.names == of.rows.names:
            raw, probability = apply_gate(stored.gate, of.rows)
            result = Nested(raw=raw, probability=probability, folds=())
            return GateOutput(spec=spec, of=of, y=y, result=result, applied=stored)
        if self._dataset.gates or not config.is_fitted or not self._queries.folds:
            result = Nested(raw=of.rows.stated, probability=of.rows.stated, folds=())
        else:
            result = nested(spec, of.rows, y, self.folds)
        return GateOutput(spec=spec, of=of, y=y, result=result)


def final_gate(model: str, config: Config, gated: GateOutput) -> StoredGate | None:
    """Fit a gate for new data to all judged posts; None if impossible."""
    judged = gated.y != UNKNOWN
    rows = gated.of.rows.select(judged)
    try:
        gate = fit(gated.spec, LabelledRows(rows=rows, y=gated.y[judged] == 1))
    except CannotFitError:
        return None
    return StoredGate(
        model=model, config=config.name, gate=gate, posts=tuple(sorted({*rows.posts}))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class GridCandidate:
    """A configuration with one value of each grid, computed for all queries."""

    constants: Constants
    last: StepColumns  #: step with the final ranking
    gated: GateOutput | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """Candidates and rule of a choice; without gold labels."""

    config: Config
    settings: EvidenceSettings
    candidates: Sequence[GridCandidate]  #: the first wins ties

    @property
    def defaults(self) -> Constants:
        """Constants that apply if there is nothing to choose by."""
        return default_constants([candidate.constants for candidate in self.candidates])

    @property
    def varied(self) -> tuple[str, ...]:
        """Names of the constants that differ between candidates."""
        return varied([candidate.constants for candidate in self.candidates])


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldChoice:
    """The chosen constants of one fold."""

    split: Split
    constants: Constants
    value: float | None  #: metric on TUNE; None: nothing to choose by


def choices(
    grid: Grid, queries: Queries, folds: FoldAssignment
) -> Iterator[FoldChoice]:
    """Yield the choice of each fold, on the posts that set its thresholds.

    A configuration without a fitted gate has no such posts; its tuning posts are drawn
    from all judged ones in the same way.
    """
    gated = grid.candidates[0].gated
    if gated is not None and gated.result.folds:
        fold_splits = [fold_result.split for fold_result in gated.result.folds]
    else:
        posts = [queries.posts[i] for i in queries.post.tolist()]
        fold_splits = [*splits(folds, posts, queries.y)]
    for split in fold_splits:
        yield choose(grid, queries, split)


def choose(grid: Grid, queries: Queries, split: Split) -> FoldChoice:
    """Choose for one fold; reads the gold of its tuning posts only."""
    best = FoldChoice(split=split, constants=grid.defaults, value=None)
    tune = frozenset(split.tune)
    inside = np.array([post in tune for post in queries.posts])[queries.post]
    rows = np.flatnonzero(inside & (queries.y == 1))
    for candidate in grid.candidates:
        value = _reached(grid, candidate, queries, split, rows)
        if value is not None and (best.value is None or value > best.value):
            best = FoldChoice(split=split, constants=candidate.constants, value=value)
    return best


def _reached(
    grid: Grid, candidate: GridCandidate, queries: Queries, split: Split, rows: Ints
) -> float | None:
    """Return the mean of the metric over *rows*, which have evidence."""
    gold = queries.gold
    if gold is None:
        return None
    indices = rows.tolist()
    lists = [candidate.last.lists[i] for i in indices]
    ranked_hits = hits([gold[i] for i in indices], lists)
    settings = grid.settings
    if settings.grid_metric == "ndcg@10":
        column = evaluate(ranked_hits, (10,))["ndcg@10"]
    else:
        k = selection(
            grid.config,
            settings,
            [candidate.last.scores[i] for i in indices],
            _states(grid.config, candidate.gated, split, rows),
            candidate.constants.gamma,
        ).k
        chosen = select(ranked_hits, k)
        by_metric: Mapping[str, Floats] = {
            "evidence_recall": chosen.recall,
            "evidence_precision": chosen.precision,
            "evidence_f1": chosen.f1,
        }
        column = by_metric[settings.grid_metric]
        if settings.skip_empty:
            column = column[k > 0]
    value = mean(column.tolist())
    # rounded, so that mathematically equal values tie and the first wins
    return None if value is None else round12(value)


def _states(
    config: Config, gated: GateOutput | None, split: Split, rows: Ints
) -> States | None:
    """Return the states of *rows* by the fold's gate, which they do not test."""
    if gated is None or not config.three_state:
        return None
    states = np.full(rows.max(initial=-1) + 1, UNKNOWN, dtype=np.int8)
    gate = gated.gate(split.fold)
    if gate is not None:
        inside = rows_of(gated.of.rows, split.tune) & (gated.of.indices < len(states))
        states[gated.of.indices[inside]] = assign(
            gate.probability(gated.of.rows.select(inside)),
            gate.thresholds.tau_neg,
            gate.thresholds.tau_pos,
            edge=gated.spec.settings.gate_edge,
        )
    return states[rows]
