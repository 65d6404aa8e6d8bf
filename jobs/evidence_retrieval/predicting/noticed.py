"""What a reader must know of gates, grids and the mass rule before believing them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from jobs.evidence_retrieval.gating.nested import FoldResult
from jobs.evidence_retrieval.predicting.deciding import Decided
from jobs.evidence_retrieval.queries import Predictions, Queries
from runner.scorecard import Finding


def gate_findings(alike: Sequence[Decided], *, may_fit: bool) -> Iterator[Finding]:
    """Folds without a gate, thresholds without a positive, and other weaknesses.

    Args:
        alike: configurations that share their gates, for which it is said once.
        may_fit: whether gates are fitted here, and not read from a file.
    """
    first = alike[0]
    names = " and ".join(each.config.name for each in alike)
    where = f"{first.predictions.model}, {names}"
    gated = next(iter(first.gates.values()))
    if first.config.is_fitted and gated.applied is None and not gated.result.folds:
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
    for result in first.fitted:
        yield from _fold_findings(f"{where}, fold {result.split.fold}", result)
    if gated.spec.calibrate_on == "tune" and gated.spec.calibration != "none":
        yield Finding(
            code="calibrated_on_tune",
            severity="warn",
            where=where,
            message="The calibrator was fitted on the posts that set the thresholds, "
            "so what these reach there is too good.",
        )


def _fold_findings(where: str, result: FoldResult) -> Iterator[Finding]:
    if result.gate is None:
        yield Finding(
            code="gate_undefined",
            severity="warn",
            where=where,
            message=f"The gate cannot be fitted ({result.reason}); the fold's "
            "probabilities are the model's own and it has no states.",
        )
    elif not result.gate.thresholds.has_positive:
        yield Finding(
            code="no_positive_to_tune_on",
            severity="warn",
            where=where,
            message="No query of the tuning posts has evidence, so nobody is NEG "
            "and nobody POS.",
        )


def grid_findings(decided: Decided) -> Iterator[Finding]:
    """Folds that could not choose from a grid, and keep the constants."""
    if decided.grid is None:
        return
    if not decided.chosen:
        yield _kept(decided.where, "There is no gold to choose from a grid by")
    for choice in decided.chosen:
        if choice.value is None:
            yield _kept(
                f"{decided.where}, fold {choice.split.fold}",
                "No query of the tuning posts has evidence to choose from a grid by",
            )


def _kept(where: str, why: str) -> Finding:
    return Finding(
        code="grid_without_positive",
        severity="warn",
        where=where,
        message=f"{why}, so the constants hold.",
    )


def seen_posts(decided: Decided, queries: Queries) -> Iterator[Finding]:
    """Posts that a stored gate was fitted on and is now asked about."""
    for gated in decided.gates.values():
        seen = frozenset(() if gated.applied is None else gated.applied.posts)
        both = [post for post in queries.posts if post in seen]
        if both:
            yield Finding(
                code="applied_gate_saw_posts",
                severity="error",
                where=decided.where,
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
