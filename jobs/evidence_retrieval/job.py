"""The job as the runner sees it; each of its parts lives in a module of its own.

Scoring, importing and explaining are loaded when they are used: they bring numerical
libraries that `siftlog jobs` and a run's first call must not wait for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from jobs.evidence_retrieval import baseline, inputs, plan, prompts
from jobs.evidence_retrieval.data import WORDING, EvidenceDataset
from jobs.evidence_retrieval.plan import STAGES
from jobs.evidence_retrieval.prepare import SUBCOMMANDS
from jobs.evidence_retrieval.settings import EvidenceSettings as JobSettings
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
    version = "2"
    Settings = JobSettings
    stages = STAGES
    prompts = WORDING
    prepare: Mapping[str, Callable[[JobSettings], Prepared]] = SUBCOMMANDS

    def with_sample(self, settings: JobSettings) -> JobSettings:
        """Settings a run can start from: the shipped sample where no input is named."""
        return inputs.with_sample(settings)

    def require(self, settings: JobSettings) -> None:
        """Refuse settings that a run cannot start from."""
        inputs.require(settings)

    def load(self, settings: JobSettings) -> EvidenceDataset:
        """Read and validate all inputs."""
        return inputs.load(settings)

    def inputs(self, settings: JobSettings) -> tuple[InputFile, ...]:
        """The files that `load` reads."""
        return inputs.inputs(settings)

    def plan(self, dataset: EvidenceDataset) -> Iterator[TaskSpec]:
        """Queries or posts in file order, for each kind of task that is asked."""
        return plan.plan(dataset)

    def reaches(self, dataset: EvidenceDataset) -> frozenset[str]:
        """The stages that the settings or a configuration need."""
        return frozenset(plan.needed_tasks(dataset))

    def request(self, dataset: EvidenceDataset, task: Task) -> Request:
        """The request of a task."""
        return prompts.request(dataset, task)

    def item(self, dataset: EvidenceDataset, spec: TaskSpec) -> str:
        """The post."""
        return plan.post_of(dataset, spec)

    def follow_up(
        self, dataset: EvidenceDataset, group: tuple[Answer, ...]
    ) -> Iterator[TaskSpec]:
        """Further windows, reranks on a model's order, criteria asked singly."""
        return plan.follow_up(dataset, group)

    def baseline(self, request: Request) -> Content:
        """The offline answer of baseline/lexical."""
        return baseline.baseline(request)

    def score(self, dataset: EvidenceDataset, answers: Answers) -> Scorecard:
        """All metrics, tables, figures and artifacts."""
        from jobs.evidence_retrieval.score import score_run  # noqa: PLC0415

        return score_run(dataset, answers)

    @property
    def importer(self) -> Importer:
        """Reads rankings and predictions of other programs."""
        from jobs.evidence_retrieval.importer import importer  # noqa: PLC0415

        return importer

    def explain(
        self,
        dataset: EvidenceDataset,
        answers: Answers | None,
        items: tuple[str, ...],
    ) -> str:
        """Everything about a query: sentences, scores by stage, gate, K and gold."""
        from jobs.evidence_retrieval.explain import explain  # noqa: PLC0415 - see above

        return explain(dataset, answers, items)


job = EvidenceRetrieval()
