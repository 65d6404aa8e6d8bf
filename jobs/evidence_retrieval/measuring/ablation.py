"""Configurations in a row: what each stage adds to the one before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from jobs.evidence_retrieval.measuring.block import Block
from jobs.evidence_retrieval.measuring.comparing import (
    Gap,
    finished,
    gap,
    with_areas,
)
from jobs.evidence_retrieval.measuring.drawing import Draws
from jobs.evidence_retrieval.measuring.folds import by_fold, with_folds
from jobs.evidence_retrieval.measuring.measure import Measure
from jobs.evidence_retrieval.measuring.sections import measures
from runner.scorecard import Metric

STEMS = (
    "ndcg@10",
    "auroc",
    "evidence_recall",
    "evidence_precision",
    "k.mean",
    "k_nominal.mean",
    "sentences_extracted",
    "alert_precision",
)
"""Without the cut-off of evidence measures, which says how K came about."""

WITHOUT = "undefined: the configuration has no such stage"


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One measure of one configuration, and its difference to the one before."""

    model: str
    config: str
    metric: Metric
    gap: Gap | None = None  #: None: the first configuration, or nothing to compare

    @property
    def is_measured(self) -> bool:
        """Whether the configuration has such a stage at all."""
        return self.metric.definition != WITHOUT


def steps(blocks: Sequence[Block], draws: Draws) -> tuple[Step, ...]:
    """The rows of the table of one model, its configurations in order."""
    made: list[tuple[Block, str, Metric]] = []
    gaps: dict[int, Gap] = {}
    before: Mapping[str, Measure] = {}
    for earlier, block in zip([None, *blocks], blocks, strict=False):
        shown = _shown(block)
        metrics = draws.metrics([m for m in shown.values() if m is not None])
        metrics = with_folds(metrics, by_fold(block), block.settings.ddof)
        by_path = {metric.path: metric for metric in metrics}
        for stem, measure in shown.items():
            row = _undefined(stem) if measure is None else by_path[measure.path]
            previous = before.get(stem)
            if earlier and measure is not None and previous is not None:
                found = _gap(block, measure, previous, stem)
                gaps[len(made)] = with_areas(found, block, earlier)
            made.append((block, stem, row))
        before = {stem: m for stem, m in shown.items() if m is not None}
    tested = dict(zip(gaps, finished(list(gaps.values()), draws), strict=True))
    return tuple(
        Step(
            model=block.prediction.model,
            config=block.prediction.config,
            metric=row,
            gap=tested.get(i),
        )
        for i, (block, _, row) in enumerate(made)
    )


def _shown(block: Block) -> dict[str, Measure | None]:
    made = {m.path: m for m in measures(block)}
    stems = {path.partition("@")[0]: m for path, m in made.items()}
    return {
        stem: made.get(stem) if "@" in stem or "." in stem else stems.get(stem)
        for stem in STEMS
    }


def _undefined(stem: str) -> Metric:
    """What a configuration has not: shown as n/a, never as 0."""
    return Metric(path=stem, value=None, n=0, definition=WITHOUT)


def _gap(block: Block, measure: Measure, previous: Measure, stem: str) -> Gap:
    found = gap(
        (block.prediction.config, "the one before"),
        measure,
        previous,
        block.queries,
        f"{block.prediction.model}: {stem} over the configurations",
    )
    if measure.n == previous.n:
        return found
    return replace(found, note=f"the one before speaks of {previous.n} queries")
