"""The job as the runner sees it; each of its parts lives in a module of its own.

Building a set, scoring and importing are loaded when they are used: they bring
numerical libraries that `siftlog jobs` and a run's first call must not wait for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from jobs.screening import baseline, inputs, parsing, plan
from jobs.screening.inputs import ScreeningDataset
from jobs.screening.prompts import WORDING
from jobs.screening.settings import ScreeningSettings as JobSettings
from runner.job import (
    Answer,
    Answers,
    Importer,
    InputFile,
    Job,
    Prepared,
    PreparedFolder,
    Task,
    TaskSpec,
)
from runner.messages import ChatRequest, Content
from runner.scorecard import Scorecard


class Screening(Job):
    """Which papers should pass screening, and how many would a model lose?"""

    name = "screening"
    version = "2"
    Settings = JobSettings
    stages = parsing.STAGES
    prompts = WORDING

    @property
    def prepare(
        self,
    ) -> Mapping[str, Callable[[JobSettings], Prepared | PreparedFolder]]:
        """What `siftlog prepare screening` builds."""
        from jobs.screening.prepare import SUBCOMMANDS  # noqa: PLC0415 - see above

        return SUBCOMMANDS

    def with_sample(self, settings: JobSettings) -> JobSettings:
        """Settings a run can start from: the shipped sample where no input is named."""
        return inputs.with_sample(settings)

    def require(self, settings: JobSettings) -> None:
        """Refuse settings that a run cannot start from."""
        inputs.require(settings)

    def load(self, settings: JobSettings) -> ScreeningDataset:
        """Read and validate all inputs."""
        return inputs.load(settings)

    def admit(self, dataset: ScreeningDataset) -> None:
        """Refuse to screen by a review's title alone, unless that is asked for."""
        inputs.admit(dataset)

    def inputs(self, settings: JobSettings) -> tuple[InputFile, ...]:
        """The folders that `load` reads."""
        return inputs.inputs(settings)

    def plan(self, dataset: ScreeningDataset) -> Iterator[TaskSpec]:
        """Records in set order, or the reviews whose criteria a model states."""
        return plan.plan(dataset)

    def reaches(self, dataset: ScreeningDataset) -> frozenset[str]:
        """The stages that the settings ask for."""
        return plan.planned_stages(dataset)

    def request(self, dataset: ScreeningDataset, task: Task) -> ChatRequest:
        """The request of a task."""
        return plan.request(dataset, task)

    def follow_up(
        self, dataset: ScreeningDataset, group: tuple[Answer, ...]
    ) -> Iterator[TaskSpec]:
        """The next stage of what is still alive."""
        return plan.follow_up(dataset, group)

    def explain_inputs(self, settings: JobSettings, items: tuple[str, ...]) -> Prepared:
        """How a review comes to its negatives."""
        from jobs.screening.explain_inputs import (  # noqa: PLC0415 - see above
            explain_inputs,
        )

        return explain_inputs(settings, items)

    def explain(
        self, dataset: ScreeningDataset, answers: Answers, items: tuple[str, ...]
    ) -> str:
        """The whole course of a record through a run; what went wrong in a review."""
        from jobs.screening.explain import explain  # noqa: PLC0415 - see above

        return explain(dataset, answers, items)

    def baseline(self, request: ChatRequest) -> Content:
        """The offline answer of baseline/lexical."""
        return baseline.baseline(request)

    def score(self, dataset: ScreeningDataset, answers: Answers) -> Scorecard:
        """All metrics, tables, figures and artifacts."""
        from jobs.screening.score import score  # noqa: PLC0415 - see above

        return score(dataset, answers)

    @property
    def importer(self) -> Importer:
        """Reads decisions that were made elsewhere."""
        from jobs.screening.importer import importer  # noqa: PLC0415 - see above

        return importer


job = Screening()
