"""A job that can only import, so that the command's import is seen by itself."""

from __future__ import annotations

from collections.abc import Iterator

from jobs.evidence_retrieval import load
from jobs.evidence_retrieval.dataset import Dataset
from jobs.evidence_retrieval.importing.forms import importer
from jobs.evidence_retrieval.importing.given import read_given
from jobs.evidence_retrieval.importing.sheet import given_sheet
from jobs.evidence_retrieval.scoring import score
from jobs.evidence_retrieval.settings import Settings as JobSettings
from runner.job import Answers, InputFile, Job, Stage
from runner.request import Request
from runner.scorecard import Scorecard
from runner.task import Answer, Task, TaskSpec


class GivenJob(Job):
    name = "given"
    version = "1"
    Settings = JobSettings
    stages = (Stage(name="given", parse=read_given, follows=False),)
    importer = importer

    def load(self, settings: JobSettings) -> Dataset:
        return load.load(settings)

    def inputs(self, settings: JobSettings) -> tuple[InputFile, ...]:
        return load.inputs(settings)

    def plan(self, dataset: Dataset) -> Iterator[TaskSpec]:  # noqa: ARG002 - no run
        return iter(())

    def request(self, dataset: Dataset, task: Task) -> Request:
        raise AssertionError((dataset, task))

    def follow_up(
        self,
        dataset: Dataset,  # noqa: ARG002 - no run
        group: tuple[Answer, ...],  # noqa: ARG002 - likewise
    ) -> Iterator[TaskSpec]:
        return iter(())

    def score(self, dataset: Dataset, answers: Answers) -> Scorecard:
        return score(dataset, given_sheet(dataset, answers))

    def baseline(self, request: object) -> str:
        raise AssertionError(request)


job = GivenJob()
