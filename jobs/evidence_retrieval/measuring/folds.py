"""Fold by fold, and the means over folds beside the values over all queries.

Both are right and they differ: one weighs folds, the other queries.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

from jobs.evidence_retrieval.measuring.block import Block
from jobs.evidence_retrieval.measuring.drawing import metric
from jobs.evidence_retrieval.measuring.measure import Measure
from jobs.evidence_retrieval.measuring.sections import fold_masks, measures
from jobs.metrics.columns import Aggregate, aggregate
from runner.scorecard import Metric

ByFold: TypeAlias = Mapping[str, Mapping[str, Measure]]
"""Measures by fold, then by path."""


def by_fold(block: Block) -> dict[str, dict[str, Measure]]:
    """All measures of each fold."""
    return {
        # nothing of a fold is drawn again, and what for is as long as its queries
        name: {m.path: replace(m, sampled=None) for m in measures(block.within(mask))}
        for name, mask in fold_masks(block).items()
    }


def over_folds(folds: ByFold, path: str, ddof: int) -> Aggregate:
    """One measure over the folds; undefined where a fold has none."""
    values = [own[path].value if path in own else None for own in folds.values()]
    return aggregate(values, ddof=ddof)


def with_folds(metrics: Sequence[Metric], folds: ByFold, ddof: int) -> list[Metric]:
    """The metrics with their mean and standard deviation over folds."""
    return [_with_folds(each, folds, ddof) for each in metrics]


def _with_folds(whole: Metric, folds: ByFold, ddof: int) -> Metric:
    is_detail = "~" in whole.path or whole.definition.startswith("count@")
    if is_detail or not any(whole.path in own for own in folds.values()):
        return whole
    found = over_folds(folds, whole.path, ddof)
    notes = [whole.note] if whole.note else []
    if found.n_defined < found.n:
        notes.append(f"defined in {found.n_defined} of {found.n} folds")
    return replace(whole, mean=found.mean, std=found.std, note="; ".join(notes) or None)


def fold_metrics(folds: ByFold) -> Iterator[Metric]:
    """The measures of each fold under `fold.NAME.`, without intervals."""
    for name, own in folds.items():
        for each in own.values():
            plain = metric(each, each.interval)
            yield replace(plain, path=f"fold.{name}.{plain.path}")
