"""What queries without an answer could change: all of them read, or all skipped.

No metric counts them. What the gate would be worth if each were taken for evidence
(p = 1, "read it"), and if none were (p = 0), stands beside it as secondary.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from jobs.evidence_retrieval.measuring.block import STATED, Block, Gated, recomputed
from jobs.evidence_retrieval.measuring.gate import separation
from jobs.evidence_retrieval.measuring.measure import Measure
from jobs.evidence_retrieval.measuring.reading import states

SHOWN = ("auroc", "auprc", "screening_sensitivity")
FILLED = ((1.0, "unscored_as_1"), (0.0, "unscored_as_0"))


def unscored(block: Block) -> Iterator[Measure]:
    """The shown measures under both readings; none where every query was answered."""
    gated, column = block.gated, block.prediction.prob
    if gated is None or column is None:
        return
    rest = np.flatnonzero(block.judged & np.isnan(column))
    if not len(rest):
        return
    for p, name in FILLED:
        filled = Gated(
            rows=np.concatenate([gated.rows, rest]),
            y=np.concatenate([gated.y, block.queries.y[rest] == 1]),
            p=np.concatenate([gated.p, np.full(len(rest), p)]),
            is_probability=True,
        )
        for each in _measures(block, filled):
            if each.path in SHOWN:
                path, note = f"{each.path}~{name}", "secondary"
                yield replace(each, path=path, sampled=None, note=note)


def _measures(block: Block, filled: Gated) -> Iterator[Measure]:
    yield from separation(filled, block.settings)
    low, high = block.prediction.tau_neg, block.prediction.tau_pos
    if block.stated is None or block.stated.how == STATED:
        return
    if low is not None and high is not None:
        stated = recomputed(filled, low, high, block.settings)
        yield from states(stated, block.settings)
