"""What a reader must know of the gates and of the mass rule before believing them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from jobs.evidence_retrieval.pipeline import Config
from jobs.evidence_retrieval.predicting.gated import Gated
from jobs.evidence_retrieval.queries import Predictions, Queries
from runner.scorecard import Finding


def gate_findings(
    model: str, config: Config, gated: Gated, *, may_fit: bool
) -> Iterator[Finding]:
    """Folds without a gate, thresholds without a positive, and other weaknesses."""
    where = f"{model}, {config.name}"
    if config.is_fitted and gated.applied is None and not gated.result.folds:
        yield Finding(
            code="gate_undefined",
            severity="warn" if may_fit else "error",
            where=where,
            message="There is no gold to fit the gate on, so probabilities are the "
            "model's own and there are no states."
            if may_fit
            else "The file of --apply-gate has no gate for this model, configuration "
            "and set of features, so probabilities are the model's own and there are "
            "no states.",
        )
    for result in gated.result.folds:
        own = f"{where}, fold {result.split.fold}"
        if result.gate is None:
            yield Finding(
                code="gate_undefined",
                severity="warn",
                where=own,
                message=f"The gate cannot be fitted ({result.reason}); the fold's "
                "probabilities are the model's own and it has no states.",
            )
        elif not result.gate.thresholds.has_positive:
            yield Finding(
                code="no_positive_to_tune_on",
                severity="warn",
                where=own,
                message="No query of the tuning posts has evidence, so nobody is NEG "
                "and nobody POS.",
            )
    if gated.spec.calibrate_on == "tune" and gated.spec.calibration != "none":
        yield Finding(
            code="calibrated_on_tune",
            severity="warn",
            where=where,
            message="The calibrator was fitted on the posts that set the thresholds, "
            "so what these reach there is too good.",
        )


def seen_posts(
    model: str, config: Config, gated: Gated, queries: Queries
) -> Iterator[Finding]:
    """Posts that a stored gate was fitted on and is now asked about."""
    if gated.applied is None:
        return
    seen = frozenset(gated.applied.posts)
    both = [post for post in queries.posts if post in seen]
    if both:
        yield Finding(
            code="applied_gate_saw_posts",
            severity="error",
            where=f"{model}, {config.name}",
            message=f"The gate of --apply-gate was fitted on {len(both)} of these "
            "posts, so no metric of it is an estimate for new ones.",
            n=len(both),
            example=both[0],
        )


def sweep_findings(found: Predictions) -> Iterator[Finding]:
    """A gamma that changes nothing: bounds or flat scores decide every K."""
    columns = list(found.sweep.values())
    if len(columns) > 1 and np.sum(columns[-1]) <= np.sum(columns[0]):
        low, *_, high = found.sweep
        yield Finding(
            code="gamma_without_effect",
            severity="warn",
            where=f"{found.model}, {found.config}",
            message=f"Mean K does not grow from gamma {low:g} to {high:g}: other rules "
            "than the mass of the scores decide it.",
        )
