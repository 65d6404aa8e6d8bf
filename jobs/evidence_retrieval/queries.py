"""Defines the scoring input: queries, and predictions by configuration.

The project's runs and imports both become a `ScoringInput`, the only input of scoring.
Columns are arrays with one entry per query, in file order of posts and then in
criterion order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from jobs.evidence_retrieval.data import query_key
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.metrics.columns import Floats, Ints
from jobs.kit.metrics.selective import States
from runner.evaluation import KEYS_STAY, STAYS
from runner.scorecard import Finding

UNKNOWN = -1
"""Missing value in a column of integers or states; in one of floats it is NaN."""

SCORED, UNSCORED, UNJUDGED, SKIPPED = "scored", "unscored", "unjudged", "skipped"
"""Statuses of a query; a skip's reason follows after a colon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queries:
    """Queries with their labels; the same for every model."""

    posts: tuple[str, ...]  #: distinct, in file order
    criteria: tuple[str, ...] = field(metadata=STAYS)  #: distinct, in display order
    post: Ints  #: (Q,) index into posts
    criterion: Ints  #: (Q,) index into criteria
    pool: Ints  #: (Q,) sentences of the post, or UNKNOWN
    folds: tuple[str, ...] = field(default=(), metadata=STAYS)
    """Names in display order."""
    fold: Ints  #: (Q,) index into folds, or UNKNOWN
    y: Ints  #: (Q,) 1 has evidence, 0 has none, UNKNOWN unjudged
    gold: Sequence[tuple[str, ...]] | None = None  #: (Q,) uids; None: not known

    def __len__(self) -> int:
        return len(self.post)

    def key(self, i: int) -> str:
        """Return the item key of query *i*."""
        return query_key(self.posts[self.post[i]], self.criteria[self.criterion[i]])


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictions:
    """Predictions of one model under one configuration, by query."""

    model: str = field(metadata=STAYS)
    config: str = field(metadata=STAYS)
    status: Sequence[str] = field(metadata=STAYS)  #: (Q,)
    prob_raw: Floats | None = None  #: (Q,) before calibration; None: no such column
    prob: Floats | None = None  #: (Q,) used for gate, states and metrics
    score: Floats | None = None
    """(Q,) largest stage score, which orders queries if there is no gate."""
    tau_neg: Floats | None = None  #: (Q,) threshold of the query's fold
    tau_pos: Floats | None = None  #: (Q,) inf: no query is POS
    state: States | None = None  #: (Q,) from the gate or the file, or UNKNOWN
    k: Ints | None = None  #: (Q,) sentences selected, or UNKNOWN
    k_rule: str = field(default="K", metadata=STAYS)
    """"K" if it is selected by query, "10" if it is fixed."""
    sweep: Mapping[float, Ints] = field(default_factory=dict)
    """(Q,) K under other gammas of the mass rule, or UNKNOWN; by gamma, ascending."""
    lists: Mapping[str, Sequence[Sequence[str]]] = field(
        default_factory=dict, metadata=KEYS_STAY
    )
    """By name of the step ("retriever", "reranked", "graph"): (Q,) uids, best first."""
    final: str = field(default="", metadata=STAYS)  #: the list that a reader sees
    scores: Mapping[str, Sequence[Floats]] = field(default_factory=dict, metadata=STAYS)
    """By name of the step: (Q,) a score for each entry of its list."""
    replicates: Ints | None = None  #: (Q,) number of readable assessments
    repeat: Mapping[str, float | None] = field(default_factory=dict, metadata=STAYS)
    """Variation between replicates: `flip_rate`, and `replicate_tau` of orders."""
    stated_values: Mapping[str, Floats] = field(default_factory=dict, metadata=STAYS)
    """Imported values per query that cannot be recomputed."""
    counts: Mapping[str, int] = field(default_factory=dict, metadata=STAYS)
    """Issues in replies, by name: `scale_guessed`, `unknown_sentence`, ..."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningSample:
    """Judged queries that a fold's thresholds were set by; none is tested."""

    y: tuple[bool, ...]
    p: tuple[float, ...]  #: calibrated


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldGate:
    """Gate fitted for the test posts of one fold, without their gold."""

    model: str
    config: str
    fold: str
    posts: Mapping[str, int]  #: number by use: "fit", "tune" and "test"
    tau_neg: float | None  #: None: no gate, or it could not be fitted
    tau_pos: float | None
    on_tune: Mapping[str, float | None]
    """Metrics of the thresholds on the tuning posts, and the metric of the choice."""
    fitted: Mapping[str, Any]
    """Coefficients, knots, constants from grids: plain JSON, for gate_fold_<k>."""
    has_gate: bool = True  #: False: only constants were chosen from grids
    tuned: TuningSample | None = None  #: None: no threshold was chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakCheck:
    """One kind of gold leak: findings, or the reason why it was not checked."""

    name: str
    findings: tuple[Finding, ...] = ()
    not_checked: str = ""  #: reason; empty: it was checked


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringInput:
    """The complete input of scoring."""

    queries: Queries
    predictions: tuple[Predictions, ...]  #: by model in the run's order, then config
    headline: str  #: configuration of the tables
    models: tuple[str, ...]
    gates: tuple[FoldGate, ...] = ()
    final_gates: str = ""  #: text of gate_final.json, if requested
    leak_checks: tuple[LeakCheck, ...] = ()
    findings: tuple[Finding, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Counts of the input: `ragged_rows`, `incomplete_posts`, ..."""
    missing: int = 0  #: tasks of the current plan that the run does not have
    stale: int = 0  #: stored answers that the current plan no longer needs

    @property
    def leakage(self) -> tuple[Finding, ...]:
        """Findings of the leakage checks."""
        return tuple(
            finding for check in self.leak_checks for finding in check.findings
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class UnfittedGate:
    """A fold whose gate could not be fitted, and whose queries have no probability."""

    model: str
    config: str
    fold: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceFrame:
    """Input of the metrics."""

    settings: EvidenceSettings
    queries: Queries
    predictions: tuple[Predictions, ...]  #: by model in the run's order, then config
    headline: str = field(metadata=STAYS)
    models: tuple[str, ...] = field(metadata=STAYS)
    unfitted: tuple[UnfittedGate, ...] = field(metadata=STAYS)

    @classmethod
    def of(
        cls, settings: EvidenceSettings, scoring_input: ScoringInput
    ) -> EvidenceFrame:
        """Return the frame of a scoring input."""
        return cls(
            settings=settings,
            queries=scoring_input.queries,
            predictions=scoring_input.predictions,
            headline=scoring_input.headline,
            models=scoring_input.models,
            unfitted=tuple(
                UnfittedGate(model=gate.model, config=gate.config, fold=gate.fold)
                for gate in scoring_input.gates
                if gate.has_gate and gate.tau_neg is None
            ),
        )

    @property
    def is_judged(self) -> bool:
        """Whether any query has a label."""
        return bool((self.queries.y != UNKNOWN).any())
