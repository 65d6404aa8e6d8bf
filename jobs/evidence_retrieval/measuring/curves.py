"""What figures show, as plain numbers: curves, bands, bins and counts.

Everything here is made from a block and the shared draws; how it looks is decided
elsewhere.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jobs.evidence_retrieval.measuring.block import Block, Gated
from jobs.evidence_retrieval.measuring.drawing import Draws
from jobs.evidence_retrieval.measuring.gate import closed_edge
from jobs.evidence_retrieval.measuring.sections import fold_masks
from jobs.evidence_retrieval.queries import UNKNOWN
from jobs.figures import thinned_points
from jobs.metrics import calibration, selective
from jobs.metrics.areas import tpr_of
from jobs.metrics.calibration import Bin
from jobs.metrics.classification import at_threshold, confusion, curve, rates
from jobs.metrics.columns import Bools, Floats, Ints
from jobs.metrics.selective import NEG, POS, STATES, RiskCoverage

BAND_POINTS = 101


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """An interval of the curve at each place of a grid; None where undefined."""

    x: tuple[float, ...]
    lo: tuple[float | None, ...]
    hi: tuple[float | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operating:
    """A deployed way to decide, as a point on the curves; None where undefined."""

    name: str
    fpr: float | None
    tpr: float | None
    precision: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Separation:
    """ROC and precision-recall of a gate."""

    fpr: Floats
    tpr: Floats
    roc_band: Band
    recall: Floats
    precision: Floats
    prevalence: float
    operating: tuple[Operating, ...]


def separation(block: Block, draws: Draws) -> Separation | None:
    """The curves of a block; None without both classes."""
    gated = block.gated
    if gated is None or not 0 < gated.y.sum() < len(gated.y):
        return None
    points = curve(gated.y, gated.p)
    some = thinned_points(len(points.tp))
    below = (
        thinned_points(len(points.tp) - 1) + 1
    )  # at the start precision is undefined
    return Separation(
        fpr=points.fpr[some],
        tpr=points.tpr[some],
        roc_band=_roc_band(gated, draws),
        recall=points.tpr[below],
        precision=points.precision[below],
        prevalence=points.positives / (points.positives + points.negatives),
        operating=tuple(_operating(block)),
    )


def _roc_band(gated: Gated, draws: Draws) -> Band:
    """The sensitivity at each false positive rate, over draws of posts."""
    grid = np.linspace(0, 1, BAND_POINTS)
    ends = draws.band(
        lambda cluster: tpr_of(gated.y, gated.p, cluster[gated.rows], grid),
        BAND_POINTS,
    )
    return Band(
        x=tuple(grid.tolist()),
        lo=tuple(end.lo for end in ends),
        hi=tuple(end.hi for end in ends),
    )


def _operating(block: Block) -> list[Operating]:
    gated, stated = block.gated, block.stated
    ways: list[tuple[str, Bools, Bools]] = []
    if gated is not None and gated.is_probability:
        tau = block.settings.tau
        ways.append((f"p >= {tau:g}", gated.y, at_threshold(gated.p, tau)))
    if stated is not None:
        ways.append(("screening: not NEG", stated.y, stated.state != NEG))
        ways.append(("alert: POS", stated.y, stated.state == POS))
    found = []
    for name, y, h in ways:
        own = rates(confusion(y, h))
        found.append(
            Operating(
                name=name,
                fpr=own["fpr"],
                tpr=own["sensitivity"],
                precision=own["precision"],
            )
        )
    return found


def bins(block: Block) -> tuple[Bin, ...]:
    """The reliability of the probabilities; none without probabilities."""
    gated, settings = block.gated, block.settings
    if gated is None or not gated.is_probability:
        return ()
    return calibration.reliability(
        gated.y,
        gated.p,
        settings.ece_bins,
        closed=closed_edge(settings),
        level=settings.level,
    )


def risk(block: Block) -> RiskCoverage | None:
    """Errors at tau against how many queries are decided, the surest first."""
    gated = block.gated
    if gated is None or not gated.is_probability or not len(gated.y):
        return None
    wrong = at_threshold(gated.p, block.settings.tau) != gated.y
    return selective.risk_coverage(np.maximum(gated.p, 1 - gated.p), wrong)


def k_by_state(block: Block) -> dict[str, dict[int, int]]:
    """How many queries of each state show how many sentences."""
    chosen, stated = block.chosen, block.stated
    if chosen is None:
        return {}
    if stated is None:
        return {"all": _counts(chosen.k)}
    k = np.full(len(block.queries), UNKNOWN, dtype=np.int64)
    k[chosen.rows] = chosen.k
    own = k[stated.rows]
    return {
        name: _counts(own[(stated.state == i) & (own != UNKNOWN)])
        for i, name in enumerate(STATES)
    }


def _counts(values: Ints) -> dict[int, int]:
    distinct, counts = np.unique(values, return_counts=True)
    return dict(zip(distinct.tolist(), counts.tolist(), strict=True))


def states_by_fold(block: Block) -> dict[str, dict[str, int]]:
    """How many queries of each fold are in each state."""
    if block.stated is None:
        return {}
    found = {}
    for fold, mask in fold_masks(block).items():
        own = block.stated.within(mask)
        counts = np.bincount(own.state, minlength=len(STATES)).tolist()
        found[fold] = dict(zip(STATES, counts, strict=True))
    return found
