"""The job as the runner sees it; each of its parts lives in a module of its own.

Preparing, scoring and importing are loaded when they are used: they bring libraries
that `siftlog jobs` and a run's first call must not wait for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from jobs.review_benchmark import baseline, inputs, parsing, plan, requests
from jobs.review_benchmark.extraction import baseline as extracting_baseline
from jobs.review_benchmark.extraction import plan as extracting_plan
from jobs.review_benchmark.extraction import review_text as extracted
from jobs.review_benchmark.extraction.review_text import ExtractionInputs
from jobs.review_benchmark.inputs import ReviewDataset
from jobs.review_benchmark.prompts import WORDING
from jobs.review_benchmark.settings import ReviewBenchmarkSettings as JobSettings
from runner.errors import UsageError
from runner.job import (
    Answer,
    Answers,
    Importer,
    InputFile,
    Job,
    Prepared,
    PreparedFolder,
    PreparedFromFiles,
    Task,
    TaskSpec,
)
from runner.messages import ChatRequest, Content, Request
from runner.scorecard import Scorecard


class ReviewBenchmark(Job):
    """Can an agent rebuild a Cochrane review's list of included studies?

    In its other mode, `extract`, it reads that list from a review's own text; what a
    run's data are says which of the two it is.
    """

    name = "review-benchmark"
    version = "2"
    Settings = JobSettings
    stages = parsing.STAGES
    prompts = WORDING
    prepare_runs = ("extract",)
    implied: Mapping[str, tuple[str, str]] = {
        "judge_model": ("verdict", "judge"),
        "embed_model": ("verdict", "embedding"),
    }

    @property
    def prepare(
        self,
    ) -> Mapping[
        str, Callable[[JobSettings], Prepared | PreparedFromFiles | PreparedFolder]
    ]:
        """What `siftlog prepare review-benchmark` builds and checks."""
        from jobs.review_benchmark.prepare import (  # noqa: PLC0415 - see above
            SUBCOMMANDS,
        )

        return SUBCOMMANDS

    def with_sample(self, settings: JobSettings) -> JobSettings:
        """Settings a run can start from: the shipped sample where no input is named."""
        return inputs.with_sample(settings)

    def require(self, settings: JobSettings) -> None:
        """Refuse settings that a run cannot start from."""
        if settings.extract is None:
            inputs.require(settings)

    def load(self, settings: JobSettings) -> ReviewDataset | ExtractionInputs:
        """Read and validate all inputs."""
        if settings.extract is not None:
            return extracted.load(settings)
        return inputs.load(settings)

    def admit(self, dataset: ReviewDataset | ExtractionInputs) -> None:
        """Refuse to search by a review's title alone, unless that is asked for."""
        if isinstance(dataset, ReviewDataset):
            inputs.admit(dataset)

    def inputs(self, settings: JobSettings) -> tuple[InputFile, ...]:
        """The files and folders that `load` reads."""
        if settings.extract is not None:
            return extracted.inputs(settings)
        return inputs.inputs(settings)

    def plan(self, dataset: ReviewDataset | ExtractionInputs) -> Iterator[TaskSpec]:
        """Search plans and what vectors are compared with, or parts of a review."""
        if isinstance(dataset, ExtractionInputs):
            return extracting_plan.plan(dataset)
        return plan.plan(dataset)

    def reaches(self, dataset: ReviewDataset | ExtractionInputs) -> frozenset[str]:
        """The stages that the data and the settings ask for."""
        if isinstance(dataset, ExtractionInputs):
            return extracting_plan.reaches(dataset)
        return plan.planned_stages(dataset)

    def request(self, dataset: ReviewDataset | ExtractionInputs, task: Task) -> Request:
        """The request of a task."""
        if isinstance(dataset, ExtractionInputs):
            return extracting_plan.request(dataset, task)
        return requests.request(dataset, task)

    def follow_up(
        self, dataset: ReviewDataset | ExtractionInputs, group: tuple[Answer, ...]
    ) -> Iterator[TaskSpec]:
        """The candidates of a search plan, their conclusion, what compares it."""
        if isinstance(dataset, ExtractionInputs):
            return extracting_plan.follow_up(dataset, group)
        return plan.follow_up(dataset, group)

    def baseline(self, request: Request) -> Content:
        """The offline answer of baseline/lexical."""
        if isinstance(
            request, ChatRequest
        ) and extracting_baseline.is_extraction_prompt(request):
            return extracting_baseline.baseline(request)
        return baseline.baseline(request)

    def score(
        self, dataset: ReviewDataset | ExtractionInputs, answers: Answers
    ) -> Scorecard:
        """All metrics, tables, figures and artifacts."""
        if isinstance(dataset, ExtractionInputs):
            from jobs.review_benchmark.extraction.score import (  # noqa: PLC0415 - see above
                score as score_extraction,
            )

            return score_extraction(dataset, answers)
        from jobs.review_benchmark.score import score  # noqa: PLC0415 - see above

        return score(dataset, answers)

    def explain(
        self,
        dataset: ReviewDataset | ExtractionInputs,
        answers: Answers | None,
        items: tuple[str, ...],
    ) -> str:
        """The course of reviews, or of papers in them.

        Raises:
            UsageError: an item names nothing, or the run reads a review's own text.
        """
        if isinstance(dataset, ExtractionInputs):
            raise UsageError(
                "explain is about runs that search papers; what was read from a "
                "review's text, with its quotes and pages, stands in extraction_<id>"
                ".json among the files of the scoring."
            )
        from jobs.review_benchmark.explain import explain  # noqa: PLC0415 - see above

        return explain(dataset, answers, items)

    @property
    def importer(self) -> Importer:
        """Reads results that agents made elsewhere."""
        from jobs.review_benchmark.importer import importer  # noqa: PLC0415 - see above

        return importer


job = ReviewBenchmark()
