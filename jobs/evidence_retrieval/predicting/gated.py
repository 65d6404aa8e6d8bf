"""Gates and the queries they are asked about, by model, ranking and kind of gate.

Configurations that differ only behind the gate share it.
"""

from __future__ import annotations

from dataclasses import dataclass

from jobs.evidence_retrieval.dataset import Dataset
from jobs.evidence_retrieval.gating.classifier import CannotFitError
from jobs.evidence_retrieval.gating.gate import (
    FittedGate,
    GateSpec,
    Labelled,
    fit_final,
    spec_of,
)
from jobs.evidence_retrieval.gating.nested import (
    FoldResult,
    Folds,
    Nested,
    asked,
    nested,
)
from jobs.evidence_retrieval.gating.stored import StoredGate
from jobs.evidence_retrieval.pipeline import Config
from jobs.evidence_retrieval.predicting.columns import ModelColumns
from jobs.evidence_retrieval.predicting.grids import Constants
from jobs.evidence_retrieval.predicting.questions import folds_of
from jobs.evidence_retrieval.predicting.rows import GateRows, gate_rows
from jobs.evidence_retrieval.predicting.steps import path, telling
from jobs.evidence_retrieval.queries import UNKNOWN, Queries
from jobs.metrics.columns import Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Gated:
    """What a gate made of one model's queries under one ranking."""

    spec: GateSpec
    of: GateRows
    y: Ints  #: of the rows
    result: Nested
    applied: StoredGate | None = None  #: that was used instead of fitting one

    def fitted(self, fold: str | None) -> FoldResult | None:
        """What was fitted for a fold; None where nothing was to be."""
        return next((own for own in self.result.folds if own.split.fold == fold), None)

    def gate(self, fold: str | None) -> FittedGate | None:
        """That which judges a fold; None where it has none."""
        if self.applied is not None:
            return self.applied.gate
        own = self.fitted(fold)
        return None if own is None else own.gate


class Gates:
    """Every gate of a scoring, fitted when it is first wanted."""

    def __init__(self, dataset: Dataset, queries: Queries) -> None:
        self._dataset = dataset
        self._queries = queries
        self.folds = Folds(
            names=queries.folds,
            of=folds_of(dataset),
            seed=dataset.settings.seed,
            tune_fraction=dataset.settings.tune_fraction,
        )
        self._made: dict[object, Gated] = {}

    def of(
        self, model: str, columns: ModelColumns, config: Config, constants: Constants
    ) -> Gated | None:
        """The gate of a configuration under some constants; None where it has none.

        The same object where configurations share it.
        """
        spec = spec_of(config, self._dataset.settings)
        if spec is None:
            return None
        chain = telling(path(config, constants))
        # a stored gate belongs to one configuration by its name
        named = config.name if self._dataset.gates else ""
        key = (model, chain, spec, config.is_fitted, named)
        if key not in self._made:
            of = gate_rows(
                self._queries,
                columns,
                columns.steps[chain],
                needs_statement=spec.kind == "passthrough",
            )
            self._made[key] = self._gate(spec, of, model, config)
        return self._made[key]

    def _gate(self, spec: GateSpec, of: GateRows, model: str, config: Config) -> Gated:
        y = of.taken(self._queries.y)
        stored = self._stored(model, config)
        if stored is not None and stored.gate.names == of.rows.names:
            raw, probability = asked(stored.gate, of.rows)
            result = Nested(raw=raw, probability=probability, folds=())
            return Gated(spec=spec, of=of, y=y, result=result, applied=stored)
        if self._dataset.gates or not config.is_fitted or not self._queries.folds:
            result = Nested(raw=of.rows.stated, probability=of.rows.stated, folds=())
        else:
            result = nested(spec, of.rows, y, self.folds)
        return Gated(spec=spec, of=of, y=y, result=result)

    def _stored(self, model: str, config: Config) -> StoredGate | None:
        return next(
            (
                stored
                for stored in self._dataset.gates
                if (stored.model, stored.config) == (model, config.name)
            ),
            None,
        )


def final_gate(model: str, config: Config, gated: Gated) -> StoredGate | None:
    """A gate for new data, of all judged posts; None where none can be fitted."""
    judged = gated.y != UNKNOWN
    rows = gated.of.rows.where(judged)
    try:
        gate = fit_final(gated.spec, Labelled(rows=rows, y=gated.y[judged] == 1))
    except CannotFitError:
        return None
    return StoredGate(
        model=model, config=config.name, gate=gate, posts=tuple(sorted({*rows.posts}))
    )
