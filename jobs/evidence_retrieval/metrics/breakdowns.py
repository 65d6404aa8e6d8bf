"""Breaks metrics down by fold, criterion and post."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np

from jobs.evidence_retrieval.metrics.bootstrap import Clusters, PostBootstrap
from jobs.evidence_retrieval.metrics.judged_predictions import JudgedPredictions
from jobs.evidence_retrieval.metrics.lists import ranking
from jobs.evidence_retrieval.metrics.retrieval import fold_masks, measures
from jobs.evidence_retrieval.queries import UNKNOWN
from jobs.kit.measurements import (
    MeasuredValue,
    Measurement,
    count,
    share,
    with_intervals,
)
from jobs.kit.measures import ValueMeasure, measured
from jobs.kit.metrics.classification import Multilabel, at_threshold, multilabel
from jobs.kit.metrics.columns import Aggregate, Bools, Ints, aggregate
from jobs.kit.metrics.intervals import without_interval
from jobs.kit.metrics.selective import NEG
from runner.scorecard import Direction, Metric

ByFold: TypeAlias = Mapping[str, Mapping[str, Metric]]
"""Metrics by fold, then by path."""


def by_fold(block: JudgedPredictions) -> dict[str, dict[str, Metric]]:
    """Return all metrics of each fold, without intervals."""
    return {
        name: {m.path: m for m in with_intervals(measures(block.within(mask)))}
        for name, mask in fold_masks(block).items()
    }


def over_folds(folds: ByFold, path: str, ddof: int) -> Aggregate:
    """Aggregate one measure over the folds; undefined if a fold lacks it."""
    values = [
        by_path[path].value if path in by_path else None for by_path in folds.values()
    ]
    return aggregate(values, ddof=ddof)


def with_folds(metrics: Iterable[Metric], folds: ByFold, ddof: int) -> Iterator[Metric]:
    """Yield the metrics with their mean and standard deviation over folds."""
    in_folds = {path for by_path in folds.values() for path in by_path}
    for whole in metrics:
        is_detail = "~" in whole.path or whole.definition.startswith("count@")
        if is_detail or whole.path not in in_folds:
            yield whole
            continue
        over = over_folds(folds, whole.path, ddof)
        part = f"defined in {over.n_defined} of {over.n} folds"
        notes = whole.note, part if over.n_defined < over.n else ""
        note = "; ".join(filter(None, notes)) or None
        yield replace(whole, mean=over.mean, std=over.std, note=note)


def fold_metrics(folds: ByFold) -> Iterator[Metric]:
    """Yield the measures of each fold under `fold.NAME.`, without intervals."""
    for name, by_path in folds.items():
        for metric in by_path.values():
            yield replace(metric, path=f"fold.{name}.{metric.path}")


FEW_POSITIVES = 10
"""Number of positives below which a criterion's metrics are flagged."""

_OPERATING = ("at_tau", "at_screening", "at_alert")
CRITERION_PATHS = (
    "auroc",
    "auprc",
    *(f"{at}.{rate}" for at in _OPERATING for rate in ("sensitivity", "precision")),
    "recall@10",
    "ndcg@10",
    "mrr",
    "evidence_recall@K",
)
OF_EARLIER_LISTS = ("recall@10", "ndcg@10", "mrr")
"""Metrics of the lists before the final one that are reported, under their names."""

WITH_INTERVAL = ("auroc", "ndcg@10", "mrr", "evidence_recall@K")

ByCriterion: TypeAlias = Mapping[str, Sequence[Metric]]


def by_criterion(
    block: JudgedPredictions, draws: PostBootstrap
) -> dict[str, list[Metric]]:
    """Return the reported measures of each criterion, in display order."""
    measured_criteria = {
        name: list(
            _criterion_measures(
                block.within(block.queries.criterion == i), draws.clusters
            )
        )
        for i, name in enumerate(block.queries.criteria)
    }
    flat = itertools.chain.from_iterable(measured_criteria.values())
    drawn = iter(draws.metrics(flat))
    return {
        name: list(_flagged(itertools.islice(drawn, len(measurements)), name))
        for name, measurements in measured_criteria.items()
    }


JUDGED: Mapping[str, ValueMeasure[Bools]] = {
    "n_queries": ValueMeasure(
        "Judged queries",
        "Number of judged queries",
        definition="{key}",
        of=lambda y: count(len(y)),
    ),
    "n_positive": ValueMeasure(
        "Judged queries with evidence",
        "Number of judged queries with evidence",
        definition="{key}",
        of=lambda y: count(int(y.sum()), len(y)),
    ),
    "positive_rate": ValueMeasure(
        "Prevalence",
        "Share of judged queries with evidence",
        definition="{key}",
        of=lambda y: share(int(y.sum()), len(y)),
    ),
}
"""Counts of the judged queries of a criterion, by evidence or none."""


def _criterion_measures(
    block: JudgedPredictions, clusters: Clusters
) -> Iterator[Measurement]:
    yield from measured(JUDGED, block.queries.y[block.judged] == 1, subset="judged")
    by_path = {m.path: m for m in measures(block, clusters)}
    for path in CRITERION_PATHS:
        if path in by_path:
            one = by_path[path]
            yield one if path in WITH_INTERVAL else _undrawn(one)
    for name, ranked in block.lists.items():
        if ranked is not block.final:
            for measurement in ranking(ranked):
                if measurement.path in OF_EARLIER_LISTS:
                    yield replace(measurement, path=f"{name}.{measurement.path}")


def _undrawn(measurement: Measurement) -> Measurement:
    return replace(measurement, measured=replace(measurement.measured, statistic=None))


def _flagged(metrics: Iterable[Metric], criterion: str) -> Iterator[Metric]:
    """Yield the metrics of a criterion, marked if they depend on few positives."""
    of_criterion = list(metrics)
    positives = next(m.value or 0 for m in of_criterion if m.path == "n_positive")
    few = "few" if positives < FEW_POSITIVES else ""
    for metric in of_criterion:
        note = "; ".join(filter(None, (metric.note, few)))
        path = f"criterion.{criterion}.{metric.path}"
        yield replace(metric, path=path, note=note or None)


def macro(criteria: ByCriterion) -> Iterator[Metric]:
    """Yield the unweighted mean of each measure over the criteria that define it."""
    values: dict[str, list[float | None]] = {}
    definitions: dict[str, str] = {}
    for name, metrics in criteria.items():
        for criterion_metric in metrics:
            path = criterion_metric.path.removeprefix(f"criterion.{name}.")
            if path in CRITERION_PATHS:
                values.setdefault(path, []).append(criterion_metric.value)
                definitions[path] = without_interval(criterion_metric.definition)
    for path, column in values.items():
        statistics = aggregate(column)
        yield Metric(
            path=f"macro.{path}",
            value=statistics.mean,
            n=statistics.n,
            n_defined=statistics.n_defined,
            subset="criteria",
            definition=f"{definitions[path]}; plain mean over criteria",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PostDecisions:
    """A decision rule applied to every query, as tables of posts by criteria."""

    prefix: str
    method: str
    posts: Ints  #: complete ones, as indices into all posts
    truth: Bools  #: (posts, criteria)
    predicted: Bools
    incomplete: int  #: posts without a decision about every criterion


def decisions(block: JudgedPredictions) -> Iterator[PostDecisions]:
    """Yield decisions by probability and by state, if the block has them."""
    gated, stated, tau = block.gated, block.stated, block.settings.tau
    if gated is not None and gated.is_probability:
        predicted = at_threshold(gated.p, tau)
        yield _table(block, "posts_at_tau", f"p >= {tau:g}", gated.rows, predicted)
    if stated is not None:
        method = f"state is not NEG; states {stated.method}"
        predicted = stated.state != NEG
        yield _table(block, "posts_not_neg", method, stated.rows, predicted)


def chosen_decision(block: JudgedPredictions) -> PostDecisions | None:
    """Return the decision in the table of posts, as set."""
    by_prefix = {decided.prefix: decided for decided in decisions(block)}
    by_state = block.settings.post_prediction == "state"
    return by_prefix.get("posts_not_neg" if by_state else "posts_at_tau")


def _table(
    block: JudgedPredictions, prefix: str, method: str, rows: Ints, predicted: Bools
) -> PostDecisions:
    queries = block.queries
    shape = (len(queries.posts), len(queries.criteria))
    cells = np.full(shape, UNKNOWN, dtype=np.int64)
    truth = np.full(shape, UNKNOWN, dtype=np.int64)
    at = queries.post[rows], queries.criterion[rows]
    cells[at] = predicted
    truth[at] = queries.y[rows]
    posts = np.flatnonzero((cells != UNKNOWN).all(axis=1))
    judged = len(np.unique(queries.post[block.judged]))
    return PostDecisions(
        prefix=prefix,
        method=method,
        posts=posts,
        truth=truth[posts] == 1,
        predicted=cells[posts] == 1,
        incomplete=judged - len(posts),
    )


_N_DEFINED: Mapping[str, Callable[[Multilabel], int]] = {
    "jaccard_per_item": lambda scores: scores.jaccard_defined,
    "f1_per_item_defined": lambda scores: scores.f1_per_item_n_defined,
    "macro_f1_over_labels": lambda scores: scores.macro_f1_n_defined,
}
"""Number of posts or criteria with a value, for figures that may lack some."""


def _of_posts(
    key: str, value: Callable[[Multilabel], float | None], scores: Multilabel
) -> MeasuredValue:
    n_defined = _N_DEFINED.get(key)
    return MeasuredValue(
        value=value(scores),
        n=scores.items,
        n_defined=None if n_defined is None else n_defined(scores),
    )


_POST_FIGURES: Mapping[
    str, tuple[str, str, Direction, Callable[[Multilabel], float | None]]
] = {
    "exact_match": (
        "Exact match",
        "Share of posts with all criteria right",
        "higher",
        lambda scores: scores.exact_match,
    ),
    "hamming_score": (
        "Hamming score",
        "Share of right decisions",
        "higher",
        lambda scores: scores.hamming_score,
    ),
    "hamming_loss": (
        "Hamming loss",
        "Share of wrong decisions",
        "lower",
        lambda scores: scores.hamming_loss,
    ),
    "micro_f1": (
        "Micro F1",
        "F1 over all decisions about criteria",
        "higher",
        lambda scores: scores.micro_f1,
    ),
    "jaccard_per_item": (
        "Jaccard index by post",
        "Overlap of the called and the true criteria of a post, as a mean",
        "higher",
        lambda scores: scores.jaccard_per_item,
    ),
    "f1_per_item": (
        "F1 by post",
        "Mean F1 of posts; one without any criterion, called or true, counts 0",
        "higher",
        lambda scores: scores.f1_per_item,
    ),
    "f1_per_item_empty_one": (
        "F1 by post, empty as 1",
        "Mean F1 of posts; one without any criterion, called or true, counts 1",
        "higher",
        lambda scores: scores.f1_per_item_empty_one,
    ),
    "f1_per_item_defined": (
        "F1 by post, where defined",
        "Mean F1 of posts with a criterion, called or true",
        "higher",
        lambda scores: scores.f1_per_item_defined,
    ),
    "weighted_f1_per_item": (
        "Weighted F1 by post",
        "Mean F1 of posts, weighted by their number of true criteria",
        "higher",
        lambda scores: scores.weighted_f1_per_item,
    ),
    "macro_f1_over_labels": (
        "Macro F1 of criteria",
        "Mean F1 of criteria",
        "higher",
        lambda scores: scores.macro_f1_over_labels,
    ),
    "weighted_f1_over_labels": (
        "Weighted F1 of criteria",
        "Mean F1 of the criteria, weighted by how common they are",
        "higher",
        lambda scores: scores.weighted_f1_over_labels,
    ),
}
"""Name, meaning, direction and value of each figure."""

POST_COUNTS: Mapping[str, ValueMeasure[Multilabel]] = {
    "items": ValueMeasure(
        "Complete posts",
        "Posts with a score for every criterion",
        definition="count@1(posts)",
        of=lambda scores: count(scores.items),
    ),
    "labels": ValueMeasure(
        "Criteria of a post",
        "Criteria that a post is read for",
        definition="count@1(criteria)",
        of=lambda scores: count(scores.labels),
    ),
}

INCOMPLETE: Mapping[str, ValueMeasure[PostDecisions]] = {
    "incomplete": ValueMeasure(
        "Incomplete posts",
        "Posts that are left out, as a criterion has no score",
        "lower",
        definition="count@1(left out)",
        of=lambda decided: count(decided.incomplete),
    ),
}

POST_FIGURES: Mapping[str, ValueMeasure[Multilabel]] = {
    key: ValueMeasure(
        name,
        meaning,
        direction,
        definition="{key}@1({over})",
        of=partial(_of_posts, key, value),
    )
    for key, (name, meaning, direction, value) in _POST_FIGURES.items()
}

POST_WAYS: Mapping[str, tuple[str, str]] = {
    "posts_at_tau": ("at tau", "a criterion is called from probability tau"),
    "posts_not_neg": ("not skipped", "a criterion is called unless skipped"),
}
"""Decision rules about posts: name, meaning."""


def by_post(block: JudgedPredictions) -> Iterator[Measurement]:
    """Yield the multi-label figures, over complete posts."""
    for decided in decisions(block):
        path, subset = f"{decided.prefix}.", "complete posts"
        scores = multilabel(decided.truth, decided.predicted)
        yield from measured(POST_COUNTS, scores, path=path, subset=subset)
        yield from measured(INCOMPLETE, decided, path=path, subset="posts")
        yield from measured(
            POST_FIGURES, scores, path=path, over=decided.method, subset=subset
        )
