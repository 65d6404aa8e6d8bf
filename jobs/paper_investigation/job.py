"""The job as the runner sees it; each of its parts lives in a module of its own.

Scoring, importing and explaining are loaded when they are used: they bring numerical
libraries that `siftlog jobs` and a run's first call must not wait for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from jobs.paper_investigation import baseline, check, load, plan
from jobs.paper_investigation import request as asking
from jobs.paper_investigation.dataset import Dataset
from jobs.paper_investigation.outline import OUTLINE
from jobs.paper_investigation.reading import STAGES
from jobs.paper_investigation.settings import Settings as JobSettings
from jobs.paper_investigation.wording import WORDING
from runner.job import (
    Answer,
    Answers,
    Importer,
    InputFile,
    Job,
    Prepared,
    Task,
    TaskSpec,
)
from runner.messages import ChatRequest
from runner.scorecard import Scorecard


class PaperInvestigation(Job):
    """Which variants does a paper study, and does the model understand them?"""

    name = "paper-investigation"
    version = OUTLINE.version
    Settings = JobSettings
    stages = STAGES
    prompts = WORDING
    prepare: Mapping[str, Callable[[JobSettings], Prepared]] = {"check": check.check}

    def with_sample(self, settings: JobSettings) -> JobSettings:
        """Settings a run can start from: the shipped sample where no input is named."""
        return load.with_sample(settings)

    def load(self, settings: JobSettings) -> Dataset:
        """Read and validate all inputs."""
        return load.load(settings)

    def inputs(self, settings: JobSettings) -> tuple[InputFile, ...]:
        """The files and folders that `load` reads."""
        return load.inputs(settings)

    def plan(self, dataset: Dataset) -> Iterator[TaskSpec]:
        """Extractions in bench order, or, in mode questions, the questions."""
        return plan.plan(dataset)

    def request(self, dataset: Dataset, task: Task) -> ChatRequest:
        """The request of a task."""
        return asking.request(dataset, task)

    def item(self, dataset: Dataset, spec: TaskSpec) -> str:
        """The paper; in mode questions it has many specs."""
        del dataset
        return asking.paper_of(spec.key)

    def follow_up(
        self, dataset: Dataset, group: tuple[Answer, ...]
    ) -> Iterator[TaskSpec]:
        """The questions about what an extraction recalled."""
        return plan.follow_up(dataset, group)

    def baseline(self, request: ChatRequest) -> str:
        """The offline answer of baseline/lexical."""
        return baseline.baseline(request)

    def score(self, dataset: Dataset, answers: Answers) -> Scorecard:
        """All metrics, tables and artifacts."""
        from jobs.paper_investigation.scoring import score  # noqa: PLC0415 - see above

        return score(dataset, answers)

    @property
    def importer(self) -> Importer:
        """Reads recorded work of other programs."""
        from jobs.paper_investigation.importing import importer  # noqa: PLC0415

        return importer

    def explain(
        self,
        dataset: Dataset,
        answers: Answers | None,
        items: tuple[str, ...],
    ) -> str:
        """Everything about a paper, or about one of its variants or questions."""
        from jobs.paper_investigation.explain import explain  # noqa: PLC0415 - see above

        return explain(dataset, answers, items)


job = PaperInvestigation()
