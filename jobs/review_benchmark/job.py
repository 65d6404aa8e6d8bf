"""The job as the runner sees it; each of its parts lives in a module of its own.

Preparing, scoring and importing are loaded when they are used: they bring libraries
that `siftlog jobs` and a run's first call must not wait for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from jobs.review_benchmark import reading
from jobs.review_benchmark.asking import lexical, plan
from jobs.review_benchmark.asking import request as asking
from jobs.review_benchmark.dataset import Dataset
from jobs.review_benchmark.inputs import load
from jobs.review_benchmark.settings import Settings as JobSettings
from runner.job import (
    Answers,
    Importer,
    InputFile,
    Job,
    Prepared,
    PreparedFromFiles,
)
from runner.reply import Content
from runner.request import Request
from runner.scorecard import Scorecard
from runner.task import Answer, Task, TaskSpec


class ReviewBenchmark(Job):
    """Can an agent rebuild a Cochrane review's list of included studies?"""

    name = "review-benchmark"
    version = "1"
    Settings = JobSettings
    stages = reading.STAGES

    @property
    def prepare(
        self,
    ) -> Mapping[str, Callable[[JobSettings], Prepared | PreparedFromFiles]]:
        """What `siftlog prepare review-benchmark` builds and checks."""
        from jobs.review_benchmark.preparing import (  # noqa: PLC0415 - see above
            SUBCOMMANDS,
        )

        return SUBCOMMANDS

    def require(self, settings: JobSettings) -> None:
        """Refuse settings that a run cannot start from."""
        load.require(settings)

    def load(self, settings: JobSettings) -> Dataset:
        """Read and validate all inputs."""
        return load.load(settings)

    def inputs(self, settings: JobSettings) -> tuple[InputFile, ...]:
        """The files and folders that `load` reads."""
        return load.inputs(settings)

    def plan(self, dataset: Dataset) -> Iterator[TaskSpec]:
        """A search plan for each review; what vectors are compared with."""
        return plan.plan(dataset)

    def reaches(self, dataset: Dataset) -> frozenset[str]:
        """The stages that the settings and the reviews ask for."""
        return plan.wanted(dataset)

    def request(self, dataset: Dataset, task: Task) -> Request:
        """The request of a task."""
        return asking.request(dataset, task)

    def follow_up(
        self, dataset: Dataset, group: tuple[Answer, ...]
    ) -> Iterator[TaskSpec]:
        """The candidates of a search plan, their conclusion, what compares it."""
        return plan.follow_up(dataset, group)

    def baseline(self, request: Request) -> Content:
        """The offline answer of baseline/lexical."""
        return lexical.baseline(request)

    def score(self, dataset: Dataset, answers: Answers) -> Scorecard:
        """All metrics, tables, figures and artifacts."""
        from jobs.review_benchmark.scoring import score  # noqa: PLC0415 - see above

        return score(dataset, answers)

    def explain(
        self, dataset: Dataset, answers: Answers | None, items: tuple[str, ...]
    ) -> str:
        """The course of reviews, or of papers in them."""
        from jobs.review_benchmark.explain import explain  # noqa: PLC0415 - see above

        return explain(dataset, answers, items)

    @property
    def importer(self) -> Importer:
        """Reads results that agents made elsewhere."""
        from jobs.review_benchmark.importing.results import (  # noqa: PLC0415 - see above
            importer,
        )

        return importer


job = ReviewBenchmark()
