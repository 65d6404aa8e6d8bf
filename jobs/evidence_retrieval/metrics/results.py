"""Collects all metrics of a scoring, before tables and files."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import numpy as np

from jobs.evidence_retrieval.measures import MEASURES
from jobs.evidence_retrieval.metrics.bootstrap import PostBootstrap
from jobs.evidence_retrieval.metrics.breakdowns import (
    ByCriterion,
    ByFold,
    by_criterion,
    by_fold,
    by_post,
    fold_metrics,
    macro,
    with_folds,
)
from jobs.evidence_retrieval.metrics.judged_predictions import (
    JudgedPredictions,
    block_of,
)
from jobs.evidence_retrieval.metrics.lists import (
    over_all_queries,
    ranking,
    spreads,
)
from jobs.evidence_retrieval.metrics.paired_differences import (
    AblationStep,
    PairedDifference,
    between_lists,
    between_models,
    ranking_names,
    steps,
)
from jobs.evidence_retrieval.metrics.retrieval import (
    coverage,
    measures,
    measures_by_query,
    not_available,
    sweep,
    unscored,
)
from jobs.evidence_retrieval.queries import EvidenceFrame, ScoringInput
from jobs.evidence_retrieval.settings import EvidenceSettings
from jobs.kit.baselines import TrivialBaseline
from jobs.kit.measurements import Measurement
from jobs.kit.metrics.columns import mean, ratio
from runner.scorecard import Metric, Target


def with_targets(metrics: Iterable[Metric], settings: EvidenceSettings) -> list[Metric]:
    """Return the metrics with the target bounds of the settings."""
    bounds = {
        "auroc": Target(sense=">=", bound=settings.target_auroc),
        "auprc": Target(sense=">=", bound=settings.target_auprc),
        "ece": Target(sense="<", bound=settings.target_ece),
        "brier": Target(sense="<", bound=settings.target_brier),
        "evidence_recall@K": Target(sense=">=", bound=settings.target_evidence_recall),
        "screening_sensitivity": Target(sense=">=", bound=settings.target_sensitivity),
        "screening_fn_per_1000": Target(sense="<=", bound=settings.target_fn_per_1000),
        "alert_precision": Target(sense=">=", bound=settings.target_alert_precision),
    }
    return [replace(m, target=bounds.get(m.path)) for m in metrics]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelResults:
    """Results of one model's headline configuration."""

    block: JudgedPredictions
    whole: tuple[Metric, ...]  #: over all its queries, also by post and by list
    folds: ByFold
    criteria: ByCriterion
    macro: tuple[Metric, ...]
    sweep: tuple[tuple[float, Metric], ...]  #: under each gamma, ascending
    not_available: tuple[str, ...]

    @property
    def metrics(self) -> tuple[Metric, ...]:
        """All metrics, each with a unique path."""
        return (
            *self.whole,
            *fold_metrics(self.folds),
            *(m for metrics in self.criteria.values() for m in metrics),
            *self.macro,
        )

    def by_path(self) -> Mapping[str, Metric]:
        """Return the metrics over all queries, by path."""
        return {m.path: m for m in self.whole}


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredFrame:
    """Metrics of every model."""

    frame: EvidenceFrame
    models: Mapping[str, ModelResults]
    steps: tuple[AblationStep, ...]  #: configurations, by model; empty for a single one
    draws: PostBootstrap  #: for intervals that are computed on demand

    @property
    def settings(self) -> EvidenceSettings:
        """Settings of the scoring."""
        return self.frame.settings

    def metrics(self, model: str) -> tuple[Metric, ...]:
        """Return a model's metrics; other configurations under `config.NAME.`."""
        return MEASURES.describe(
            (
                *self.models[model].metrics,
                *(
                    replace(
                        step.metric, path=f"config.{step.config}.{step.metric.path}"
                    )
                    for step in self.steps
                    if step.model == model
                    and step.config != self.frame.headline
                    and step.is_measured
                ),
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EvidenceResults(MeasuredFrame):
    """Results of a scoring."""

    scoring_input: ScoringInput
    gaps: tuple[PairedDifference, ...]


def measure_models(
    scoring_input: ScoringInput, settings: EvidenceSettings
) -> EvidenceResults:
    """Measure every model's headline, its other configurations, and differences."""
    frame = EvidenceFrame.of(settings, scoring_input)
    measured = measure_frame(frame)
    blocks = {model: results.block for model, results in measured.models.items()}
    return EvidenceResults(
        frame=frame,
        models=measured.models,
        steps=measured.steps,
        draws=measured.draws,
        scoring_input=scoring_input,
        gaps=(
            *(gap for block in blocks.values() for gap in between_lists(block)),
            *between_models(blocks, settings, measured.draws),
        ),
    )


def measure_frame(frame: EvidenceFrame) -> MeasuredFrame:
    """Measure every model's headline and its other configurations, from arrays."""
    draws = PostBootstrap(frame.queries, frame.settings)
    blocks = {
        (p.model, p.config): block_of(frame.queries, p, frame.settings, frame.unfitted)
        for p in frame.predictions
    }
    return MeasuredFrame(
        frame=frame,
        models={
            model: _of_model(blocks[model, frame.headline], draws)
            for model in frame.models
            if (model, frame.headline) in blocks
        },
        steps=tuple(
            step
            for model in frame.models
            for step in steps([b for (m, _), b in blocks.items() if m == model], draws)
        ),
        draws=draws,
    )


def _of_model(block: JudgedPredictions, draws: PostBootstrap) -> ModelResults:
    settings = block.settings
    folds = by_fold(block)
    paths = ("auroc", "auprc", *ranking_names(settings), "evidence_recall@K")
    pooled = draws.metrics([*coverage(block), *measures(block, draws.clusters)])
    pooled += draws.by_query(partial(measures_by_query, block), paths)
    whole = [*with_folds(pooled, folds, settings.ddof)]
    whole += draws.metrics(_details(block))
    if len(block.lists) > 1:
        whole += _by_list(block, whole, draws)
    criteria = by_criterion(block, draws)
    return ModelResults(
        block=block,
        whole=tuple(with_targets(whole, settings)),
        folds=folds,
        criteria={
            name: with_targets(metrics, settings) for name, metrics in criteria.items()
        },
        macro=tuple(macro(criteria)),
        sweep=tuple(sweep(block, draws)),
        not_available=not_available(block),
    )


def _details(block: JudgedPredictions) -> Iterator[Measurement]:
    yield from unscored(block)
    yield from by_post(block)
    if block.final is not None:
        yield from spreads(block.final)
    if block.settings.all_queries:
        judged = int(block.judged.sum())
        for name, ranked in block.lists.items():
            for one in over_all_queries(ranked, judged):
                yield replace(one, path=f"all_queries.{name}.{one.path}")


def _by_list(
    block: JudgedPredictions, whole: Iterable[Metric], draws: PostBootstrap
) -> Iterator[Metric]:
    """Yield the ranking metrics of each list; those of the final one are reused."""
    by_path = {m.path: m for m in whole}
    for name, ranked in block.lists.items():
        measurements = [*ranking(ranked, draws.clusters), *spreads(ranked)]
        if ranked is block.final:
            metrics = [by_path[one.path] for one in measurements]
        else:
            metrics = draws.metrics(measurements)
        for metric in metrics:
            yield replace(metric, path=f"{name}.{metric.path}")


CHANCE, ORDER = "chance at the prevalence", "a random order of the post's sentences"


def trivial(model_results: ModelResults) -> Iterator[TrivialBaseline]:
    """Yield baselines of separation and alerts, then of the final list."""
    block = model_results.block
    random = partial(TrivialBaseline, key="random")
    gated, stated, final, gold = (
        block.gated,
        block.stated,
        block.final,
        block.queries.gold,
    )
    if gated is not None and len(gated.y):
        n = len(gated.y)
        share = int(gated.y.sum()) / n
        for path, value, how in (
            ("auroc", 0.5, "any order"),
            ("auprc", share, "queries with evidence / queries"),
            ("brier", share * (1 - share), "q (1 - q), q = the share with evidence"),
        ):
            yield random(
                of=path,
                name=CHANCE,
                value=value,
                n=n,
                formula=how,
                lower_is_better=path == "brier",
            )
    if stated is not None:
        yield random(
            of="alert_precision",
            name=CHANCE,
            value=ratio(int(stated.y.sum()), len(stated.y)),
            n=len(stated.y),
            formula="queries with evidence / queries with a state",
        )
    if final is not None and gold is not None:
        pool = block.queries.pool
        sizes = [(int(pool[i]), len(set(gold[i]))) for i in final.rows.tolist()]
        sizes = [(n, of_gold) for n, of_gold in sizes if 0 < of_gold <= n]
        for path, expected in _ORDERED.items():
            yield random(
                of=path,
                name=ORDER,
                value=mean(expected(n, of_gold) for n, of_gold in sizes),
                n=len(sizes),
                formula="expected value, mean over queries with evidence in the post",
            )


def expected_recall(k: int) -> Callable[[int, int], float]:
    """Return the expected recall among the first *k* in random order."""

    def expected(n: int, gold: int) -> float:
        del gold  # each has the same chance to be among the first
        return min(k, n) / n

    return expected


def expected_ndcg(k: int) -> Callable[[int, int], float]:
    """Return the expected nDCG of the first *k* in random order."""

    def expected(n: int, gold: int) -> float:
        return gold / n * _discounts(min(k, n)) / _discounts(min(k, gold))

    return expected


@lru_cache(maxsize=1 << 10)
def _discounts(n: int) -> float:
    return math.fsum(1 / math.log2(rank + 1) for rank in range(1, n + 1))


@lru_cache(maxsize=1 << 14)
def expected_reciprocal(n: int, gold: int) -> float:
    """Return the expected reciprocal rank of the first of *gold* among *n*."""
    ranks = np.arange(1, n - gold + 2)
    # all earlier ranks have none: a product of shares of the remaining ones
    left = n - ranks + 1
    none_before = np.concatenate(([1.0], np.cumprod((left - gold) / left)[:-1]))
    return math.fsum(none_before * gold / left / ranks)


_ORDERED: dict[str, Callable[[int, int], float]] = {
    "recall@10": expected_recall(10),
    "ndcg@10": expected_ndcg(10),
    "mrr": expected_reciprocal,
}
