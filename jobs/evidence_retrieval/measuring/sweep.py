"""K under other gammas: how many sentences each costs, and what they find."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.evidence_retrieval.measuring.block import Block
from jobs.evidence_retrieval.measuring.chosen import choose
from jobs.evidence_retrieval.measuring.drawing import Draws
from jobs.evidence_retrieval.measuring.reading import selection
from runner.scorecard import Metric

SHOWN = (
    "k.mean",
    "k.has_evidence.mean",
    "evidence_recall@K",
    "evidence_precision@K",
    "sentences_extracted",
)


def sweep(block: Block, draws: Draws) -> Iterator[tuple[float, Metric]]:
    """The figures under each gamma that there are Ks for, with intervals."""
    for gamma in block.prediction.sweep:
        chosen = choose(block.queries, block.prediction, block.settings, gamma)
        if chosen is None:
            continue
        made = [
            measure
            for measure in selection(chosen, None, len(block.queries))
            if measure.path in SHOWN
        ]
        for each in draws.metrics(made):
            yield gamma, each
