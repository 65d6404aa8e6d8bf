"""Breaks metrics down by fold, criterion and post."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from jobs.evidence_retrieval.metrics.bootstrap import (
    PostBootstrap,
    RetrievalMeasure,
    count,
    metric,
)
from jobs.evidence_retrieval.metrics.judged_predictions import JudgedPredictions
from jobs.evidence_retrieval.metrics.retrieval import fold_masks, measures, ranking
from jobs.evidence_retrieval.queries import UNKNOWN
from jobs.kit.metrics.classification import at_threshold, multilabel
from jobs.kit.metrics.columns import Aggregate, Bools, Ints, aggregate
from jobs.kit.metrics.intervals import without_interval
from jobs.kit.metrics.selective import NEG
from runner.scorecard import Metric

ByFold: TypeAlias = Mapping[str, Mapping[str, RetrievalMeasure]]
"""Measures by fold, then by path."""


def by_fold(block: JudgedPredictions) -> dict[str, dict[str, RetrievalMeasure]]:
    """All measures of each fold."""
    return {
        # nothing of a fold is drawn again, and what for is as long as its queries
        name: {m.path: replace(m, sampled=None) for m in measures(block.within(mask))}
        for name, mask in fold_masks(block).items()
    }


def over_folds(folds: ByFold, path: str, ddof: int) -> Aggregate:
    """One measure over the folds; undefined where a fold has none."""
    values = [
        by_path[path].value if path in by_path else None for by_path in folds.values()
    ]
    return aggregate(values, ddof=ddof)


def with_folds(metrics: Sequence[Metric], folds: ByFold, ddof: int) -> list[Metric]:
    """The metrics with their mean and standard deviation over folds."""
    return [_with_folds(m, folds, ddof) for m in metrics]


def _with_folds(whole: Metric, folds: ByFold, ddof: int) -> Metric:
    is_detail = "~" in whole.path or whole.definition.startswith("count@")
    if is_detail or not any(whole.path in by_path for by_path in folds.values()):
        return whole
    statistics = over_folds(folds, whole.path, ddof)
    notes = [whole.note] if whole.note else []
    if statistics.n_defined < statistics.n:
        notes.append(f"defined in {statistics.n_defined} of {statistics.n} folds")
    return replace(
        whole, mean=statistics.mean, std=statistics.std, note="; ".join(notes) or None
    )


def fold_metrics(folds: ByFold) -> Iterator[Metric]:
    """The measures of each fold under `fold.NAME.`, without intervals."""
    for name, by_path in folds.items():
        for measure in by_path.values():
            plain = metric(measure, measure.interval)
            yield replace(plain, path=f"fold.{name}.{plain.path}")


FEW_POSITIVES = 10
"""Below, a criterion's numbers are flagged: so few say little of others."""

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
"""What is shown of the lists before the final one, under their names."""

WITH_INTERVAL = ("auroc", "ndcg@10", "mrr", "evidence_recall@K")

ByCriterion: TypeAlias = Mapping[str, Sequence[Metric]]


def by_criterion(
    block: JudgedPredictions, draws: PostBootstrap
) -> dict[str, list[Metric]]:
    """The shown measures of each criterion, in display order."""
    chosen = {
        name: list(_criterion_measures(block.within(block.queries.criterion == i)))
        for i, name in enumerate(block.queries.criteria)
    }
    flat = [m for criterion_measures in chosen.values() for m in criterion_measures]
    intervals = iter(draws.intervals([m.sampled for m in flat]))
    metrics = {}
    for name, criterion_measures in chosen.items():
        positives = (
            next((m.value for m in criterion_measures if m.path == "n_positive"), None)
            or 0
        )
        metrics[name] = [
            _flagged(
                metric(m, interval),
                name,
                positives < FEW_POSITIVES,
            )
            for m, interval in zip(criterion_measures, intervals, strict=False)
        ]
    return metrics


def _criterion_measures(block: JudgedPredictions) -> Iterator[RetrievalMeasure]:
    queries = block.queries
    n = int(block.judged.sum())
    positive = int(np.count_nonzero(block.judged & (queries.y == 1)))
    for path, value in (
        ("n_queries", n),
        ("n_positive", positive),
        ("positive_rate", positive / n if n else None),
    ):
        yield RetrievalMeasure(
            path=path, value=value, n=n, definition=path, subset="judged"
        )
    by_path = {m.path: m for m in measures(block)}
    for path in CRITERION_PATHS:
        if path in by_path:
            has_interval = path in WITH_INTERVAL
            yield (
                by_path[path] if has_interval else replace(by_path[path], sampled=None)
            )
    for name, ranked in block.lists.items():
        if ranked is not block.final:
            for measure in ranking(ranked):
                if measure.path in OF_EARLIER_LISTS:
                    yield replace(measure, path=f"{name}.{measure.path}", sampled=None)


def _flagged(criterion_metric: Metric, criterion: str, is_few: bool) -> Metric:
    note = "; ".join(filter(None, (criterion_metric.note, "few" if is_few else "")))
    return replace(
        criterion_metric,
        path=f"criterion.{criterion}.{criterion_metric.path}",
        note=note or None,
    )


def macro(criteria: ByCriterion) -> Iterator[Metric]:
    """The plain mean of each measure over the criteria where it is defined."""
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


FIGURES = (
    "exact_match",
    "hamming_score",
    "hamming_loss",
    "micro_f1",
    "jaccard_per_item",
    "f1_per_item",
    "f1_per_item_empty_one",
    "f1_per_item_defined",
    "weighted_f1_per_item",
    "macro_f1_over_labels",
    "weighted_f1_over_labels",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class PostDecisions:
    """One way to decide about every query, as tables of posts by criteria."""

    prefix: str
    method: str
    posts: Ints  #: complete ones, by their place in the sheet
    truth: Bools  #: (posts, criteria)
    predicted: Bools
    incomplete: int  #: posts without a decision about every criterion


def decisions(block: JudgedPredictions) -> Iterator[PostDecisions]:
    """By probability and by state, where the block has them."""
    gated, stated, tau = block.gated, block.stated, block.settings.tau
    if gated is not None and gated.is_probability:
        predicted = at_threshold(gated.p, tau)
        yield _table(block, "posts_at_tau", f"p >= {tau:g}", gated.rows, predicted)
    if stated is not None:
        method = f"state is not NEG; states {stated.method}"
        predicted = stated.state != NEG
        yield _table(block, "posts_not_neg", method, stated.rows, predicted)


def chosen_decision(block: JudgedPredictions) -> PostDecisions | None:
    """The one that stands in the table of posts, as the settings ask."""
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


def by_post(block: JudgedPredictions) -> Iterator[RetrievalMeasure]:
    """The figures of several labels an item, over complete posts."""
    for decided in decisions(block):
        multilabel_scores = multilabel(decided.truth, decided.predicted)
        n_defined = {
            "jaccard_per_item": multilabel_scores.jaccard_defined,
            "f1_per_item_defined": multilabel_scores.f1_per_item_n_defined,
            "macro_f1_over_labels": multilabel_scores.macro_f1_n_defined,
        }
        name = decided.prefix
        yield count(
            f"{name}.items", multilabel_scores.items, "posts", subset="complete posts"
        )
        yield count(
            f"{name}.labels",
            multilabel_scores.labels,
            "criteria",
            subset="complete posts",
        )
        yield count(
            f"{name}.incomplete", decided.incomplete, "left out", subset="posts"
        )
        for figure in FIGURES:
            yield RetrievalMeasure(
                path=f"{name}.{figure}",
                value=getattr(multilabel_scores, figure),
                n=multilabel_scores.items,
                n_defined=n_defined.get(figure),
                subset="complete posts",
                definition=f"{figure}@1({decided.method})",
            )
