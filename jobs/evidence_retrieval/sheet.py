"""The sheet of a run: from its own answers, or from work that was made elsewhere."""

from __future__ import annotations

from jobs.evidence_retrieval.dataset import Dataset
from jobs.evidence_retrieval.importing.sheet import given_sheet
from jobs.evidence_retrieval.predicting import predict
from jobs.evidence_retrieval.queries import Sheet
from runner.job import Answers


def sheet_of(dataset: Dataset, answers: Answers) -> Sheet:
    """All that is scored of a run's answers."""
    make = given_sheet if answers.imported else predict
    return make(dataset, answers)
