"""The constants of a configuration, and the values that settings offer instead."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import product

from jobs.evidence_retrieval.pipeline import Config
from jobs.evidence_retrieval.predicting.selection import MASS
from jobs.evidence_retrieval.queries import FoldGate
from jobs.evidence_retrieval.settings import Settings
from jobs.evidence_retrieval.stages.fusion import RRF
from jobs.evidence_retrieval.stages.graph import DAMPING


@dataclass(frozen=True, slots=True, kw_only=True)
class Constants:
    """Numbers that stages go by and no gate fits."""

    rrf_k: int = RRF
    damping: float = DAMPING
    gamma: float | None = None  #: None: that of each state's own rule


CONSTANTS = Constants()
"""Those that hold where no grid is set."""


def offered(config: Config, settings: Settings) -> tuple[Constants, ...]:
    """What a configuration may go by, in the order in which the first wins ties.

    A grid touches only configurations with its stage; one of a single value is not
    chosen from but holds.
    """
    grids = product(
        (len(config.first_stage) > 1 and settings.rrf_k_grid) or (RRF,),
        (config.graph != "none" and settings.damping_grid) or (DAMPING,),
        (config.dynamic_k == MASS and settings.gamma_grid) or (None,),
    )
    return tuple(
        dict.fromkeys(
            Constants(rrf_k=rrf_k, damping=damping, gamma=gamma)
            for rrf_k, damping, gamma in grids
        )
    )


def standing(grid: Sequence[Constants]) -> Constants:
    """What holds where nothing can be chosen: the standard, and what has one value."""
    alone = {}
    for each in fields(Constants):
        values = {getattr(own, each.name) for own in grid}
        if len(values) == 1:
            alone[each.name] = values.pop()
    return replace(CONSTANTS, **alone)


def needed(config: Config, settings: Settings) -> tuple[Constants, ...]:
    """What rankings must be made with, for folds that can choose and others."""
    grid = offered(config, settings)
    return tuple(dict.fromkeys((*grid, standing(grid))))


def constants_of(
    config: Config, settings: Settings, gate: FoldGate | None
) -> Constants:
    """What the queries of a fold went by, from the record of it, if there is one."""
    holding = standing(offered(config, settings))
    return (
        holding
        if gate is None
        else replace(holding, **gate.fitted.get("constants", {}))
    )
