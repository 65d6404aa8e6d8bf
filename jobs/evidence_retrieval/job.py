"""The job as the runner sees it; each of its parts lives in a module of its own.

Scoring, importing and explaining are loaded when they are used: they bring numerical
libraries that `siftlog jobs` and a run's first call must not wait for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from jobs.evidence_retrieval.asking import baseline, plan
from jobs.evidence_retrieval.asking import request as asking
from jobs.evidence_retrieval.dataset import Dataset
from jobs.evidence_retrieval.inputs import load
from jobs.evidence_retrieval.inputs.preparing import SUBCOMMANDS
from jobs.evidence_retrieval.outline import OUTLINE
from jobs.evidence_retrieval.reading import STAGES
from jobs.evidence_retrieval.settings import Settings as JobSettings
from jobs.evidence_retrieval.wording import WORDING
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
from runner.messages import Content, Request
from runner.scorecard import Scorecard


class EvidenceRetrieval(Job):
    """Which sentences of a post are evidence for a criterion, and are there any?"""

    name = "evidence-retrieval"
    version = OUTLINE.version
    Settings = JobSettings
    stages = STAGES
    prompts = WORDING
    prepare: Mapping[str, Callable[[JobSettings], Prepared]] = SUBCOMMANDS

    def with_sample(self, settings: JobSettings) -> JobSettings:
        """Settings a run can start from: the shipped sample where no input is named."""
        return load.with_sample(settings)

    def require(self, settings: JobSettings) -> None:
        """Refuse settings that a run cannot start from."""
        load.require(settings)

    def load(self, settings: JobSettings) -> Dataset:
        """Read and validate all inputs."""
        return load.load(settings)

    def inputs(self, settings: JobSettings) -> tuple[InputFile, ...]:
        """The files that `load` reads."""
        return load.inputs(settings)

    def plan(self, dataset: Dataset) -> Iterator[TaskSpec]:
        """Queries or posts in file order, for each kind of task that is asked."""
        return plan.plan(dataset)

    def reaches(self, dataset: Dataset) -> frozenset[str]:
        """The stages that the settings or a configuration need."""
        return frozenset(plan.wanted(dataset))

    def request(self, dataset: Dataset, task: Task) -> Request:
        """The request of a task."""
        return asking.request(dataset, task)

    def item(self, dataset: Dataset, spec: TaskSpec) -> str:
        """The post."""
        return plan.post_of(dataset, spec)

    def follow_up(
        self, dataset: Dataset, group: tuple[Answer, ...]
    ) -> Iterator[TaskSpec]:
        """Further windows, reranks on a model's order, criteria asked singly."""
        return plan.follow_up(dataset, group)

    def baseline(self, request: Request) -> Content:
        """The offline answer of baseline/lexical."""
        return baseline.baseline(request)

    def score(self, dataset: Dataset, answers: Answers) -> Scorecard:
        """All metrics, tables, figures and artifacts."""
        from jobs.evidence_retrieval.scoring.scorecard import (  # noqa: PLC0415
            score_run,
        )

        return score_run(dataset, answers)

    @property
    def importer(self) -> Importer:
        """Reads rankings and predictions of other programs."""
        from jobs.evidence_retrieval.importing.forms import importer  # noqa: PLC0415

        return importer

    def explain(
        self,
        dataset: Dataset,
        answers: Answers | None,
        items: tuple[str, ...],
    ) -> str:
        """Everything about a query: sentences, scores by stage, gate, K and gold."""
        from jobs.evidence_retrieval.explain import explain  # noqa: PLC0415 - see above

        return explain(dataset, answers, items)


job = EvidenceRetrieval()
