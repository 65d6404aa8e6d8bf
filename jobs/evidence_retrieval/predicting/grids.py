"""The constants of a configuration, and the values that settings offer instead."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

from jobs.evidence_retrieval.pipeline import Config
from jobs.evidence_retrieval.predicting.selection import MASS
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
"""Those that hold where no grid is set, or where nothing can be chosen by."""


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


def needed(config: Config, settings: Settings) -> tuple[Constants, ...]:
    """What rankings must be made with: a fold that cannot choose takes the standard."""
    grid = offered(config, settings)
    return grid if len(grid) == 1 else tuple(dict.fromkeys((*grid, CONSTANTS)))
