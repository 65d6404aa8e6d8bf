"""The job as the runner sees it; each of its parts lives in a module of its own.

Preparing, scoring and importing are loaded when they are used: they bring libraries
that `siftlog jobs` and a run's first call must not wait for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING

from jobs.property_extraction import baseline, inputs, plan, tasks
from jobs.property_extraction.data import PropertyDataset
from jobs.property_extraction.plan import STAGES
from jobs.property_extraction.prompts import WORDING
from jobs.property_extraction.settings import PropertySettings as JobSettings
from runner.job import (
    Answer,
    Answers,
    Importer,
    InputFile,
    Job,
    ModelLimits,
    Prepared,
    PreparedFolder,
    Task,
    TaskSpec,
)
from runner.messages import ChatRequest, Content
from runner.scorecard import Booking, Scorecard

if TYPE_CHECKING:
    from jobs.property_extraction.aliases.differences import Bookable


class PropertyExtraction(Job):
    """Which values of which properties does a model find in papers?"""

    name = "property-extraction"
    version = "2"
    Settings = JobSettings
    stages = STAGES
    prompts = WORDING

    @property
    def prepare(
        self,
    ) -> Mapping[str, Callable[[JobSettings], Prepared | PreparedFolder]]:
        """What `siftlog prepare property-extraction` builds and checks."""
        from jobs.property_extraction.aliases.preparing import (  # noqa: PLC0415 - see above
            prepare_aliases,
        )
        from jobs.property_extraction.lint import lint  # noqa: PLC0415 - see above

        return {"aliases": prepare_aliases, "lint": lint}

    def with_sample(self, settings: JobSettings) -> JobSettings:
        """Settings a run can start from: the shipped sample where no input is named."""
        return inputs.with_sample(settings)

    def fit(
        self, settings: JobSettings, limits: Mapping[str, ModelLimits]
    ) -> JobSettings:
        """Settings whose prompts and replies fit the models of a new run."""
        return plan.fit(settings, limits)

    def require(self, settings: JobSettings) -> None:
        """Refuse settings that a run cannot start from."""
        inputs.require(settings)

    def load(self, settings: JobSettings) -> PropertyDataset:
        """Read and validate all inputs."""
        return inputs.load(settings)

    def inputs(self, settings: JobSettings) -> tuple[InputFile, ...]:
        """The files and folders that `load` reads."""
        return inputs.inputs(settings)

    def plan(self, dataset: PropertyDataset) -> Iterator[TaskSpec]:
        """Papers, or pieces of papers, by id; or pairs of names."""
        return plan.plan(dataset)

    def reaches(self, dataset: PropertyDataset) -> frozenset[str]:
        """The stages that the settings ask for."""
        return plan.planned_stages(dataset)

    def replicates(self, settings: JobSettings) -> int:
        """How often each item is asked, where `--replicates` does not say it."""
        if settings.mode == "verify":
            return settings.verify_replicates
        return max(1, settings.consensus)

    def request(self, dataset: PropertyDataset, task: Task) -> ChatRequest:
        """The request of a task."""
        return plan.request(dataset, task)

    def item(self, dataset: PropertyDataset, spec: TaskSpec) -> str:
        """The paper of which a spec names a piece; or the pair of names."""
        if dataset.settings.mode == "verify":
            return spec.key
        return tasks.paper_of(spec.key)[0]

    def follow_up(
        self, dataset: PropertyDataset, group: tuple[Answer, ...]
    ) -> Iterator[TaskSpec]:
        """The second request for quotes that are not in the paper."""
        return plan.follow_up(dataset, group)

    def explain(
        self, dataset: PropertyDataset, answers: Answers | None, items: tuple[str, ...]
    ) -> str:
        """Why rows count as they do, and names stand for others; or who said so."""
        if dataset.settings.mode == "verify":
            from jobs.property_extraction.score_name_verification import (  # noqa: PLC0415 - see above
                explain_verification,
            )

            return explain_verification(dataset, answers, items)
        from jobs.property_extraction.explain import (  # noqa: PLC0415 - see above
            explain,
        )

        return explain(dataset, answers, items)

    def baseline(self, request: ChatRequest) -> Content:
        """The offline answer of baseline/lexical."""
        return baseline.baseline(request)

    def score(self, dataset: PropertyDataset, answers: Answers) -> Scorecard:
        """All metrics, tables, figures and artifacts."""
        if dataset.settings.mode == "verify":
            from jobs.property_extraction.score_name_verification import (  # noqa: PLC0415 - see above
                score_verification,
            )

            return score_verification(dataset, answers)
        from jobs.property_extraction.score import score  # noqa: PLC0415 - see above

        return score(dataset, answers)

    def causes(
        self, names: frozenset[str], before: Bookable, after: Bookable
    ) -> Booking | None:
        """Rows that a change of aliases gained or lost, booked on one alias each."""
        from jobs.property_extraction.aliases.differences import (  # noqa: PLC0415 - see above
            booked_on_aliases,
        )

        return booked_on_aliases(names, before, after)

    @property
    def importer(self) -> Importer:
        """Reads predictions that were made elsewhere."""
        from jobs.property_extraction.importer import (  # noqa: PLC0415 - see above
            importer,
        )

        return importer


job = PropertyExtraction()
