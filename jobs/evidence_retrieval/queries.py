"""Holds what is scored: queries, and predictions by model and configuration.

A run of our own and an import both end in a `ScoringInput`; scoring sees nothing
else. Columns are arrays with one entry a query, in file order of posts and then in
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
"""In a column of integers or states: there is none. In one of floats it is NaN."""

SCORED, UNSCORED, UNJUDGED, SKIPPED = "scored", "unscored", "unjudged", "skipped"
"""Statuses of a query; a skip's reason follows after a colon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queries:
    """What was asked, and what the answer should be; the same for every model."""

    posts: tuple[str, ...]  #: distinct, in file order
    criteria: tuple[str, ...] = field(metadata=STAYS)  #: distinct, in display order
    post: Ints  #: (Q,) place in posts
    criterion: Ints  #: (Q,) place in criteria
    pool: Ints  #: (Q,) sentences of the post, or UNKNOWN
    folds: tuple[str, ...] = field(default=(), metadata=STAYS)
    """Names in display order."""
    fold: Ints  #: (Q,) place in folds, or UNKNOWN
    y: Ints  #: (Q,) 1 has evidence, 0 has none, UNKNOWN unjudged
    gold: Sequence[tuple[str, ...]] | None = None  #: (Q,) uids; None: not known

    def __len__(self) -> int:
        return len(self.post)

    def key(self, i: int) -> str:
        """The item key of query *i*."""
        return query_key(self.posts[self.post[i]], self.criteria[self.criterion[i]])


@dataclass(frozen=True, slots=True, kw_only=True)
class Predictions:
    """What one model under one configuration said of each query."""

    model: str = field(metadata=STAYS)
    config: str = field(metadata=STAYS)
    status: Sequence[str] = field(metadata=STAYS)  #: (Q,)
    prob_raw: Floats | None = None  #: (Q,) before calibration; None: no such column
    prob: Floats | None = None  #: (Q,) what gate, states and metrics go by
    score: Floats | None = None
    """(Q,) the largest stage score, which orders queries where there is no gate."""
    tau_neg: Floats | None = None  #: (Q,) of the query's fold
    tau_pos: Floats | None = None  #: (Q,) inf: nobody is POS
    state: States | None = None  #: (Q,) as the gate or the file says, or UNKNOWN
    k: Ints | None = None  #: (Q,) sentences selected, or UNKNOWN
    k_rule: str = field(default="K", metadata=STAYS)
    """"K" where it is chosen by query, "10" where it is fixed."""
    sweep: Mapping[float, Ints] = field(default_factory=dict)
    """(Q,) K under other gammas of the mass rule, or UNKNOWN; by gamma, rising."""
    lists: Mapping[str, Sequence[Sequence[str]]] = field(
        default_factory=dict, metadata=KEYS_STAY
    )
    """By name of the step ("retriever", "reranked", "graph"): (Q,) uids, best first."""
    final: str = field(default="", metadata=STAYS)  #: the list that a reader sees
    scores: Mapping[str, Sequence[Floats]] = field(default_factory=dict, metadata=STAYS)
    """By name of the step: (Q,) a score for each entry of its list."""
    replicates: Ints | None = None  #: (Q,) assessments that could be read
    repeat: Mapping[str, float | None] = field(default_factory=dict, metadata=STAYS)
    """How far replicates differ: `flip_rate`, and `replicate_tau` between orders."""
    stated_values: Mapping[str, Floats] = field(default_factory=dict, metadata=STAYS)
    """Numbers a query that were made elsewhere and cannot be recomputed."""
    counts: Mapping[str, int] = field(default_factory=dict, metadata=STAYS)
    """What was noticed in replies: `scale_guessed`, `unknown_sentence`, ..."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningSample:
    """The judged queries that a fold's thresholds were chosen by; none is tested."""

    y: tuple[bool, ...]
    p: tuple[float, ...]  #: calibrated


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldGate:
    """What was fitted for the test posts of one fold, without seeing their gold."""

    model: str
    config: str
    fold: str
    posts: Mapping[str, int]  #: of "fit", "tune" and "test"
    tau_neg: float | None  #: None: the gate could not be fitted, or there is none
    tau_pos: float | None
    on_tune: Mapping[str, float | None]
    """What the thresholds reached there, and what a grid was chosen by."""
    fitted: Mapping[str, Any]
    """Coefficients, knots, constants from grids: plain JSON, for gate_fold_<k>."""
    has_gate: bool = True  #: False: constants were chosen from grids and no more
    tuned: TuningSample | None = None  #: None: no threshold was chosen


@dataclass(frozen=True, slots=True, kw_only=True)
class LeakCheck:
    """One way in which gold could leak: what was found, or why nobody looked."""

    name: str
    findings: tuple[Finding, ...] = ()
    not_checked: str = ""  #: why; empty: it was looked for


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringInput:
    """All that is scored."""

    queries: Queries
    predictions: tuple[Predictions, ...]  #: by model in the run's order, then config
    headline: str  #: the configuration that the tables speak of
    models: tuple[str, ...]
    gates: tuple[FoldGate, ...] = ()
    final_gates: str = ""  #: text of gate_final.json, where one was asked for
    leak_checks: tuple[LeakCheck, ...] = ()
    findings: tuple[Finding, ...] = ()
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Counts of the input: `ragged_rows`, `incomplete_posts`, ..."""
    missing: int = 0  #: tasks that the present plan asks for and the run has not
    stale: int = 0  #: stored answers that the present plan no longer asks for

    @property
    def leakage(self) -> tuple[Finding, ...]:
        """What the leakage checks found."""
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
    """What metrics are computed from."""

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
        """The frame of all that is scored."""
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
        """Whether any query is."""
        return bool((self.queries.y != UNKNOWN).any())
