"""What the numbers of a scoring do not show, said beside them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from jobs.metrics import FEW_CLUSTERS
from jobs.screening.dataset import Dataset
from jobs.screening.decisions import Sheet
from runner.scorecard import LIMITS, Finding


def limits(dataset: Dataset, sheet: Sheet) -> Iterator[Finding]:
    """What a reader of the numbers must know, as findings."""
    kinds = sheet.records.kinds
    if "near-miss" in kinds:
        yield Finding(
            code="near_misses_unjudged",
            severity="info",
            where=LIMITS,
            message="Near misses are unjudged, not known to be ineligible: a model "
            f"that includes one may be right{_bounds(dataset)}.",
            n=int((sheet.records.kind == kinds.index("near-miss")).sum()),
        )
    if dataset.validation_set is not None:
        yield Finding(
            code="drawn_ratio",
            severity="info",
            where=LIMITS,
            message="Negatives were drawn at a ratio that no search has: precision, "
            "F1, NNR and WSS go by it. Precision at others: set prevalence.",
        )
    m = len(sheet.records.reviews)
    if m < FEW_CLUSTERS:
        yield Finding(
            code="few_reviews",
            severity="info",
            where=LIMITS,
            message=f"There are fewer than {FEW_CLUSTERS} reviews, so that intervals "
            "by review are rough.",
            n=m,
        )
    for own in sheet.decisions:
        imputed = int(np.isnan(own.p).sum())
        if imputed:
            yield Finding(
                code="imputed",
                severity="info",
                where=own.model,
                message="Records rank without a p_include: by their decision, or in "
                "the middle where there is none.",
                n=imputed,
            )


def _bounds(dataset: Dataset) -> str:
    """Between which shares the candidates may be eligible, where that is known."""
    drawn = dataset.validation_set
    known = {} if drawn is None else drawn.contamination
    lower, upper = known.get("lower"), known.get("upper")
    if lower is None or upper is None:
        return "; how many are eligible nobody knows, since no exclusions were given"
    return (
        f". Of the candidates between {lower:.1%} (pending, or copies of an included "
        f"paper) and {upper:.1%} (all that are not known to be excluded) may be "
        "eligible"
    )
