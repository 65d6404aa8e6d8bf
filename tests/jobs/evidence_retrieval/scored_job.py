"""The job of imports, scored as evidence-retrieval is."""

from __future__ import annotations

from jobs.evidence_retrieval.dataset import Dataset
from jobs.evidence_retrieval.importing.sheet import given_sheet
from jobs.evidence_retrieval.scoring import score
from runner.job import Answers
from runner.scorecard import Scorecard
from tests.jobs.evidence_retrieval.given_job import GivenJob


class ScoredJob(GivenJob):
    name = "scored"

    def score(self, dataset: Dataset, answers: Answers) -> Scorecard:
        return score(dataset, given_sheet(dataset, answers))


job = ScoredJob()
