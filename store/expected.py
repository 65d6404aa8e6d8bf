"""What a run was expected to take, as its first event says."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a run was expected to take before its first call, for each item planned.

    The figures are low, expected and high, for one first-stage spec with all that
    follows from it, over all models and replicates.
    """

    tried: int  #: items that were answered offline
    first: list[str]  #: stages that the plan begins with
    calls: tuple[float, float, float]
    tokens_in: tuple[float, float, float]
    tokens_out: tuple[float, float, float]
    cost_usd: tuple[float, float, float] | None  #: None: a price was unknown
