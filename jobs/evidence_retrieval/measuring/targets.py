"""The bounds that metrics are held against."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from jobs.evidence_retrieval.settings import Settings
from runner.scorecard import Metric, Target


def targets(settings: Settings) -> dict[str, Target]:
    """The bounds that the settings name, by path."""
    return {
        "auroc": Target(sense=">=", bound=settings.target_auroc),
        "auprc": Target(sense=">=", bound=settings.target_auprc),
        "ece": Target(sense="<", bound=settings.target_ece),
        "brier": Target(sense="<", bound=settings.target_brier),
        "evidence_recall@K": Target(sense=">=", bound=settings.target_evidence_recall),
        "screening_sensitivity": Target(sense=">=", bound=settings.target_sensitivity),
        "screening_fn_per_1000": Target(sense="<=", bound=settings.target_fn_per_1000),
        "alert_precision": Target(sense=">=", bound=settings.target_alert_precision),
    }


def held_against(metrics: Iterable[Metric], settings: Settings) -> list[Metric]:
    """The metrics with the bounds that the settings name."""
    bounds = targets(settings)
    return [replace(each, target=bounds.get(each.path)) for each in metrics]
