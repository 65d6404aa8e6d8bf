"""Criterion by criterion, and the plain means over criteria."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from jobs.evidence_retrieval.measuring.block import Block
from jobs.evidence_retrieval.measuring.drawing import Draws, metric
from jobs.evidence_retrieval.measuring.measure import Measure
from jobs.evidence_retrieval.measuring.reading import ranking
from jobs.evidence_retrieval.measuring.sections import measures
from jobs.metrics.columns import aggregate
from jobs.metrics.intervals import without_interval
from runner.scorecard import Metric

FEW_POSITIVES = 10
"""Below, a criterion's numbers are flagged: so few say little of others."""

_OPERATING = ("at_tau", "at_screening", "at_alert")
SHOWN = (
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


def by_criterion(block: Block, draws: Draws) -> dict[str, list[Metric]]:
    """The shown measures of each criterion, in display order."""
    chosen = {
        name: list(_shown(block.within(block.queries.criterion == i)))
        for i, name in enumerate(block.queries.criteria)
    }
    flat = [m for own in chosen.values() for m in own]
    drawn = iter(draws.intervals([m.sampled for m in flat]))
    found = {}
    for name, own in chosen.items():
        positives = next((m.value for m in own if m.path == "n_positive"), None) or 0
        found[name] = [
            _flagged(
                metric(m, interval),
                name,
                positives < FEW_POSITIVES,
            )
            for m, interval in zip(own, drawn, strict=False)
        ]
    return found


def _shown(block: Block) -> Iterator[Measure]:
    queries = block.queries
    n = int(block.judged.sum())
    positive = int(np.count_nonzero(block.judged & (queries.y == 1)))
    for path, value in (
        ("n_queries", n),
        ("n_positive", positive),
        ("positive_rate", positive / n if n else None),
    ):
        yield Measure(path=path, value=value, n=n, definition=path, subset="judged")
    made = {m.path: m for m in measures(block)}
    for path in SHOWN:
        if path in made:
            is_drawn = path in WITH_INTERVAL
            yield made[path] if is_drawn else replace(made[path], sampled=None)
    for name, own in block.lists.items():
        if own is not block.final:
            for each in ranking(own):
                if each.path in OF_EARLIER_LISTS:
                    yield replace(each, path=f"{name}.{each.path}", sampled=None)


def _flagged(each: Metric, criterion: str, is_few: bool) -> Metric:
    note = "; ".join(filter(None, (each.note, "few" if is_few else "")))
    return replace(each, path=f"criterion.{criterion}.{each.path}", note=note or None)


def macro(criteria: ByCriterion) -> Iterator[Metric]:
    """The plain mean of each measure over the criteria where it is defined."""
    values: dict[str, list[float | None]] = {}
    definitions: dict[str, str] = {}
    for name, own in criteria.items():
        for each in own:
            path = each.path.removeprefix(f"criterion.{name}.")
            if path in SHOWN:
                values.setdefault(path, []).append(each.value)
                definitions[path] = without_interval(each.definition)
    for path, column in values.items():
        found = aggregate(column)
        yield Metric(
            path=f"macro.{path}",
            value=found.mean,
            n=found.n,
            n_defined=found.n_defined,
            subset="criteria",
            definition=f"{definitions[path]}; plain mean over criteria",
        )
