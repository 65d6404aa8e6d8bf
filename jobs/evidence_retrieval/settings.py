"""Defines every setting of the job, and the profiles that bundle them.

A profile names a set of values; an explicit value overrides the profile's.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeAlias

from pydantic import Field, model_validator

from jobs.kit.profiles import ProfiledSettings

TaskKind: TypeAlias = Literal["assess", "rerank", "embed", "rerank_api"]
GridMetric: TypeAlias = Literal[
    "evidence_f1", "evidence_recall", "evidence_precision", "ndcg@10"
]
ProfileName: TypeAlias = Literal["siftlog", "published-lists", "published-cv"]

PROFILES: Mapping[str, Mapping[str, Any]] = {
    "siftlog": {},
    "published-lists": {
        "ap_denominator": "min",
        "mrr_cut": True,
        "all_queries": True,
    },
    "published-cv": {
        "tpr_rule": "nearest",
        "ece_edges": "left_drop_one",
        "gate_edge": "le",
        "ddof": 0,
        "zero_division": 0.0,
        "post_prediction": "state",
    },
}
"""The choices behind published tables (see the job's page in docs/)."""

EVERYDAY_FILES = (
    *("posts", "sentences", "criteria", "gold", "folds"),
    *("pipeline", "against", "per_query", "rankings"),
)

INPUTS = (*EVERYDAY_FILES, "gamma_sweep", "qrels", "run", "apply_gate", "prompts")
"""Settings that name files."""

EVERYDAY = (*EVERYDAY_FILES, "tasks", "batch", "limit", "profile", "prompts")
"""The settings in common use."""


class EvidenceSettings(ProfiledSettings):
    """Settings of evidence-retrieval."""

    profiles = PROFILES

    posts: Path | None = Field(None, description="CSV post_id, text")
    sentences: Path | None = Field(
        None, description="JSONL post_id, sid, sent_uid, text: the pools"
    )
    criteria: Path | None = Field(None, description="JSON or CSV of id and text")
    gold: Path | None = Field(
        None, description="CSV post_id, criterion, sid, sent_uid, groundtruth 0/1"
    )
    folds: Path | None = Field(None, description="CSV post_id, fold_id")
    pipeline: Path | None = Field(
        None, description="TOML of configurations; none: the six standard ones"
    )
    against: Path | None = Field(
        None, description="stored summary.json whose numbers are recomputed"
    )
    tolerance: float = Field(
        1e-9, ge=0.0, description="largest difference of a stored number that is equal"
    )
    per_query: Path | None = Field(
        None, description="to import: CSV of predictions or ranked lists"
    )
    rankings: tuple[str, ...] = Field(
        (), description="to import: JSONL of ranked lists, [NAME=]FILE by model"
    )
    gamma_sweep: Path | None = Field(
        None, description="to import: CSV of K under each gamma"
    )
    qrels: Path | None = Field(None, description="to import: judgements for trec_eval")
    run: Path | None = Field(None, description="to import: a run for trec_eval")
    map: tuple[str, ...] = Field(
        (),
        description="OLD=NEW: a column to import by the name used here, or a key of "
        "against by a metric",
    )
    qid_sep: str = Field(
        "|",
        min_length=1,
        description="between post and criterion in the query ids of both",
    )
    escape_ids: bool = Field(
        default=False, description="ids in both are percent-encoded, as siftlog's are"
    )
    allow_ragged: bool = Field(
        default=False, description="read missing trailing fields as blank"
    )

    tasks: tuple[TaskKind, ...] = Field(
        ("assess",),
        description="requests to send besides those that the configurations need",
    )
    batch: Literal["query", "post"] = Field(
        "query", description="assess one criterion per call, or all of a post"
    )
    first_stage: Literal["bm25", "embedding", "assess", "document"] = Field(
        "bm25", description="ranking that rerank tasks start from"
    )
    order: Literal["first_stage", "document", "shuffled"] = Field(
        "first_stage", description="order in which rerank lists its candidates"
    )
    rerank_depth: int = Field(
        0, ge=0, description="candidates of a rerank; 0: the whole pool"
    )
    rerank_window: int = Field(20, ge=2, description="candidates in one rerank call")
    rerank_stride: int = Field(
        10, ge=1, description="places by which windows move to the front"
    )
    embed_query_prefix: str = Field(
        "", description="text before each criterion, for models that want one"
    )
    max_sentences: int = Field(200, ge=1, description="longest post that is sent")
    max_prompt_tokens: int = Field(24000, ge=1, description="longest prompt, estimated")
    max_output_tokens: int = Field(1024, ge=1, description="output tokens per query")
    temperature: float | None = Field(0.0, ge=0.0, description="sampling temperature")
    structured: Literal["auto", "off"] = Field(
        "auto", description="request JSON by schema if the endpoint supports it"
    )
    empty_pool: Literal["unscored", "zero"] = Field(
        "unscored", description="a post without sentences: unscored, or p = 0"
    )
    limit: int = Field(
        0,
        ge=0,
        description="size of a sample of the posts: folds and posts with evidence "
        "keep their share; 0: all",
    )
    judged_only: bool = Field(
        default=False,
        description="only posts that the gold judges; folds are those of all posts",
    )

    idf: Literal["pool", "dataset"] = Field(
        "pool", description="source of bm25's word counts; dataset: transductive"
    )
    k_scale: Literal["zscore", "raw"] = Field(
        "zscore", description="scores as they enter the mass rule of dynamic K"
    )
    k_temperature: float = Field(
        1.0, gt=0.0, description="softmax temperature of that rule"
    )
    gammas: tuple[float, ...] = Field(
        (0.7, 0.8, 0.9, 0.95), description="values of the gamma sweep"
    )

    seed: int = Field(20260118, ge=0, description="of folds, splits and shuffles")
    n_folds: int = Field(5, ge=2, description="outer folds, by post")
    tune_fraction: float = Field(
        0.30, gt=0.0, lt=1.0, description="share of the other folds that sets taus"
    )
    c_grid: tuple[float, ...] = Field(
        (), description="regularisation of the classifier; none: C = 1"
    )
    gamma_grid: tuple[Annotated[float, Field(gt=0.0, le=1.0)], ...] = Field(
        (), description="gammas to choose from per fold; none: each state's own"
    )
    damping_grid: tuple[Annotated[float, Field(gt=0.0, lt=1.0)], ...] = Field(
        (), description="damping of the graph to choose from per fold; none: 0.3"
    )
    rrf_k_grid: tuple[Annotated[int, Field(ge=1)], ...] = Field(
        (), description="constants of rank fusion to choose from per fold; none: 60"
    )
    grid_metric: GridMetric = Field(
        "evidence_f1", description="metric on the tuning posts that chooses from grids"
    )
    calibrate_on: Literal["out_of_fold", "tune"] = Field(
        "out_of_fold", description="scores that the calibrator is fitted on"
    )
    target_sensitivity: float = Field(
        0.995, gt=0.0, le=1.0, description="sensitivity that sets tau_neg"
    )
    target_alert_precision: float = Field(
        0.90, gt=0.0, le=1.0, description="precision of alerts that sets tau_pos"
    )
    min_alerts: int = Field(10, ge=1, description="fewest alerts that set tau_pos")
    target_bound: Literal["point", "wilson"] = Field(
        "point", description="value that must reach the targets on the tuning posts"
    )
    grid_tau_neg: tuple[float, ...] = Field(
        (0.005, 0.01, 0.02, 0.05, 0.1), description="tau_neg of the threshold grid"
    )
    grid_tau_pos: tuple[float, ...] = Field(
        (0.2, 0.3, 0.5, 0.7, 0.9), description="tau_pos of the threshold grid"
    )
    final_gate: bool = Field(
        default=False, description="also fit on all judged posts, for new data"
    )
    apply_gate: Path | None = Field(
        None, description="a gate_final.json to use instead of fitting one"
    )
    deep_checks: bool = Field(
        default=False, description="scramble and shuffle gold, refit, compare"
    )

    profile: ProfileName = Field("siftlog", description="bundle of settings")
    prompts: Path | None = Field(None, description="TOML of prompts to replace")
    tau: float = Field(0.5, ge=0.0, le=1.0, description="threshold of the gate table")
    k_values: tuple[int, ...] = Field((1, 3, 5, 10, 20), description="cut-offs")
    fpr_targets: tuple[float, ...] = Field(
        (0.01, 0.03, 0.05, 0.10), description="false-positive rates to report TPR at"
    )
    ece_bins: int = Field(10, ge=1, description="bins of the calibration error")
    prob: str | None = Field(
        None, description="column of the imported file that holds the probability"
    )
    states: Literal["recomputed", "column"] = Field(
        "recomputed", description="states from p and taus, or from the file"
    )
    ap_denominator: Literal["gold", "min", "found"] = Field(
        "gold", description="divisor of average precision"
    )
    mrr_cut: bool = Field(default=False, description="also cut mrr at each K")
    all_queries: bool = Field(
        default=False, description="ranking also over queries without evidence"
    )
    tpr_rule: Literal["last", "nearest"] = Field(
        "last", description="vertex of the ROC curve taken at a target"
    )
    ece_edges: Literal["right", "left_drop_one"] = Field(
        "right", description="closed edge of a bin"
    )
    gate_edge: Literal["lt", "le"] = Field("lt", description="NEG below tau_neg, or at")
    ddof: Literal[0, 1] = Field(
        1, description="delta degrees of freedom of standard deviations over folds"
    )
    zero_division: float | None = Field(None, description="value of 0/0; none: n/a")
    post_prediction: Literal["tau", "state"] = Field(
        "tau", description="prediction in the tables by post"
    )
    skip_empty: bool = Field(
        default=False, description="leave K = 0 out of evidence precision and recall"
    )
    boot_b: int = Field(2000, ge=0, description="bootstrap replicates; 0: no intervals")
    boot_seed: int = Field(20260118, ge=0, description="seed of the bootstrap")
    level: float = Field(0.95, gt=0.0, lt=1.0, description="level of the intervals")
    min_clusters: int = Field(
        10, ge=2, description="posts below which a comparison of models is `too few`"
    )
    interval: Literal["adjusted", "percentile"] = Field(
        "adjusted",
        description="adjusted for few clusters and rates near 0 or 1, or percentile",
    )
    target_auroc: float = Field(0.85, description="least AUROC that passes")
    target_auprc: float = Field(0.55, description="least AUPRC that passes")
    target_ece: float = Field(0.05, description="largest ECE that passes")
    target_brier: float = Field(0.1, description="largest Brier score that passes")
    target_evidence_recall: float = Field(
        0.70, description="least evidence recall that passes"
    )
    target_fn_per_1000: float = Field(5.0, description="most misses per 1000 that pass")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.rerank_stride > self.rerank_window:
            raise ValueError("rerank_stride lies above rerank_window")
        if self.gamma_grid and self.grid_metric == "ndcg@10":
            raise ValueError(
                "gamma_grid cannot be chosen from by ndcg@10, which no K changes "
                "(name another grid_metric)"
            )
        grids = (self.gamma_grid, self.damping_grid, self.rrf_k_grid)
        if any(grids) and (self.final_gate or self.apply_gate is not None):
            raise ValueError(
                "a gate for new data goes with the constants, and a grid has others "
                "in each fold (leave out the grids, or final_gate and apply_gate)"
            )
        return self
