"""A verification, measured, as a scorecard."""

from __future__ import annotations

from jobs.property_extraction.dataset import Dataset
from jobs.property_extraction.measures import ALIASES
from jobs.property_extraction.settings import INPUTS
from jobs.property_extraction.verifying.figures import Gallery
from jobs.property_extraction.verifying.files import tables
from jobs.property_extraction.verifying.metrics import HEADLINE, metrics
from jobs.property_extraction.verifying.summary import run_text
from jobs.property_extraction.verifying.verification import verification_of
from runner.job import Answers
from runner.scorecard import Scorecard


def score_verification(dataset: Dataset, answers: Answers) -> Scorecard:
    """All metrics and tables of a run that verifies names; pure."""
    verification = verification_of(dataset, answers)
    return Scorecard(
        models={
            column.model: ALIASES.describe(metrics(verification, column))
            for column in verification.columns
        },
        summary=run_text(verification),
        headline=HEADLINE,
        tables=tuple(tables(verification)),
        findings=dataset.findings,
        figures=Gallery(verification),
        details=verification.outcomes,
        settings=dataset.settings.model_dump(mode="json", exclude={*INPUTS}),
        missing=verification.missing,
        stale=verification.stale,
        units={
            column.model: {"pair": len(column.rulings)}
            for column in verification.columns
        },
    )
