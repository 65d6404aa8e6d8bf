"""How many sentences of each query a configuration shows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from jobs.evidence_retrieval.pipeline import Config
from jobs.evidence_retrieval.settings import Settings
from jobs.evidence_retrieval.stages.dynamic_k import (
    RULES,
    UNCERTAIN,
    KRule,
    held_mass,
    selected_k,
)
from jobs.metrics.columns import Floats, Ints
from jobs.metrics.selective import STATES, States

MASS = "mass"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """K by query."""

    k: Ints
    rule: str  #: "K" where it is chosen by query, else the number itself
    sweep: Mapping[float, Ints] = field(default_factory=dict)  #: by gamma, rising


def selection(
    config: Config,
    settings: Settings,
    scores: Sequence[Floats],
    states: States | None,
    gamma: float | None = None,
) -> Selection:
    """The K of each query.

    Args:
        config: whose rule.
        settings: of the mass rule.
        scores: of the last step, by query.
        states: of the queries; without one, the rule of UNCERTAIN is everybody's.
        gamma: instead of the states' own, where a grid gave one.
    """
    if config.dynamic_k != MASS:
        named = config.dynamic_k.removeprefix("fixed:")
        fixed = config.top if named == "none" else int(named)
        return Selection(k=np.full(len(scores), fixed, dtype=np.int64), rule=str(fixed))
    gammas = sorted(settings.gammas)
    k = np.empty(len(scores), dtype=np.int64)
    swept = np.empty((len(gammas), len(scores)), dtype=np.int64)
    for i, own in enumerate(scores):
        held = held_mass(
            own, scale=settings.k_scale, temperature=settings.k_temperature
        )
        rule = rule_of(-1 if states is None else int(states[i]))
        k[i] = selected_k(held, rule, gamma)
        for row, other in enumerate(gammas):
            swept[row, i] = selected_k(held, rule, other)
    return Selection(k=k, rule="K", sweep=dict(zip(gammas, swept, strict=True)))


def rule_of(state: int) -> KRule | None:
    """The mass rule of a query by its state, UNKNOWN where it has none."""
    return UNCERTAIN if state < 0 else RULES[STATES[state]]
