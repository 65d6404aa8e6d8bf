"""The job as the runner sees it; each of its parts lives in a module of its own.

Scoring, importing and explaining are loaded when they are used: they bring numerical
libraries that `siftlog jobs` and a run's first call must not wait for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from jobs.paper_investigation import baseline, inputs, plan, prepare_check, prompts
from jobs.paper_investigation.data import WORDING, InvestigationDataset
from jobs.paper_investigation.plan import STAGES
from jobs.paper_investigation.settings import InvestigationSettings as JobSettings
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
    version = "2"
    Settings = JobSettings
    stages = STAGES
    prompts = WORDING
    prepare: Mapping[str, Callable[[JobSettings], Prepared]] = {
        "check": prepare_check.check_data
    }

    def with_sample(self, settings: JobSettings) -> JobSettings:
        """Settings a run can start from: the shipped sample where no input is named."""
        return inputs.with_sample(settings)

    def load(self, settings: JobSettings) -> InvestigationDataset:
        """Read and validate all inputs."""
        return inputs.load(settings)

    def inputs(self, settings: JobSettings) -> tuple[InputFile, ...]:
        """The files and folders that `load` reads."""
        return inputs.inputs(settings)

    def plan(self, dataset: InvestigationDataset) -> Iterator[TaskSpec]:
        """Extractions in bench order, or, in mode questions, the questions."""
        return plan.plan_tasks(dataset)

    def request(self, dataset: InvestigationDataset, task: Task) -> ChatRequest:
        """The request of a task."""
        return prompts.request(dataset, task)

    def item(self, dataset: InvestigationDataset, spec: TaskSpec) -> str:
        """The paper; in mode questions it has many specs."""
        del dataset
        return prompts.paper_of(spec.key)

    def follow_up(
        self, dataset: InvestigationDataset, group: tuple[Answer, ...]
    ) -> Iterator[TaskSpec]:
        """The questions about what an extraction recalled."""
        return plan.follow_up(dataset, group)

    def baseline(self, request: ChatRequest) -> str:
        """The offline answer of baseline/lexical."""
        return baseline.baseline(request)

    def score(self, dataset: InvestigationDataset, answers: Answers) -> Scorecard:
        """All metrics, tables and artifacts."""
        from jobs.paper_investigation.score import score  # noqa: PLC0415 - see above

        return score(dataset, answers)

    @property
    def importer(self) -> Importer:
        """Reads recorded work of other programs."""
        from jobs.paper_investigation.importer import importer  # noqa: PLC0415

        return importer

    def explain(
        self,
        dataset: InvestigationDataset,
        answers: Answers | None,
        items: tuple[str, ...],
    ) -> str:
        """Everything about a paper, or about one of its variants or questions."""
        from jobs.paper_investigation.explain import explain  # noqa: PLC0415 - see above

        return explain(dataset, answers, items)


job = PaperInvestigation()
