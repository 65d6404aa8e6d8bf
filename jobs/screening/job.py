"""The job as the runner sees it; each of its parts lives in a module of its own.

Building a set, scoring and importing are loaded when they are used: they bring
numerical libraries that `siftlog jobs` and a run's first call must not wait for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from jobs.screening import reading
from jobs.screening.asking import lexical, plan
from jobs.screening.asking import request as asking
from jobs.screening.dataset import Dataset
from jobs.screening.inputs import load
from jobs.screening.outline import OUTLINE
from jobs.screening.settings import Settings as JobSettings
from jobs.screening.wording import WORDING
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
    version = OUTLINE.version
    Settings = JobSettings
    stages = reading.STAGES
    prompts = WORDING

    @property
    def prepare(
        self,
    ) -> Mapping[str, Callable[[JobSettings], Prepared | PreparedFolder]]:
        """What `siftlog prepare screening` builds."""
        from jobs.screening.prepared.preparing import (  # noqa: PLC0415 - see above
            SUBCOMMANDS,
        )

        return SUBCOMMANDS

    def with_sample(self, settings: JobSettings) -> JobSettings:
        """Settings a run can start from: the shipped sample where no input is named."""
        return load.with_sample(settings)

    def require(self, settings: JobSettings) -> None:
        """Refuse settings that a run cannot start from."""
        load.require(settings)

    def load(self, settings: JobSettings) -> Dataset:
        """Read and validate all inputs."""
        return load.load(settings)

    def admit(self, dataset: Dataset) -> None:
        """Refuse to screen by a review's title alone, unless that is asked for."""
        load.admit(dataset)

    def inputs(self, settings: JobSettings) -> tuple[InputFile, ...]:
        """The folders that `load` reads."""
        return load.inputs(settings)

    def plan(self, dataset: Dataset) -> Iterator[TaskSpec]:
        """Records in set order, or the reviews whose criteria a model states."""
        return plan.plan(dataset)

    def reaches(self, dataset: Dataset) -> frozenset[str]:
        """The stages that the settings ask for."""
        return plan.wanted(dataset)

    def request(self, dataset: Dataset, task: Task) -> ChatRequest:
        """The request of a task."""
        return asking.request(dataset, task)

    def follow_up(
        self, dataset: Dataset, group: tuple[Answer, ...]
    ) -> Iterator[TaskSpec]:
        """The next stage of what is still alive."""
        return plan.follow_up(dataset, group)

    def explain_inputs(self, settings: JobSettings, items: tuple[str, ...]) -> Prepared:
        """How a review comes to its negatives."""
        from jobs.screening.explain import (  # noqa: PLC0415 - see above
            explain_inputs,
        )

        return explain_inputs(settings, items)

    def explain(
        self, dataset: Dataset, answers: Answers, items: tuple[str, ...]
    ) -> str:
        """The whole course of a record through a run; what went wrong in a review."""
        from jobs.screening.explain import explain  # noqa: PLC0415 - see above

        return explain(dataset, answers, items)

    def baseline(self, request: ChatRequest) -> Content:
        """The offline answer of baseline/lexical."""
        return lexical.baseline(request)

    def score(self, dataset: Dataset, answers: Answers) -> Scorecard:
        """All metrics, tables, figures and artifacts."""
        from jobs.screening.scoring import score  # noqa: PLC0415 - see above

        return score(dataset, answers)

    @property
    def importer(self) -> Importer:
        """Reads decisions that were made elsewhere."""
        from jobs.screening.importing.decisions import (  # noqa: PLC0415 - see above
            importer,
        )

        return importer


job = Screening()
