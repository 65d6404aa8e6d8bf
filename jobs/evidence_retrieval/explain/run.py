"""What a run holds: every prediction, and the answers about one post."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from jobs.evidence_retrieval.dataset import Dataset, query_key
from jobs.evidence_retrieval.importing.sheet import given_sheet
from jobs.evidence_retrieval.pipeline import Config
from jobs.evidence_retrieval.predicting import predict
from jobs.evidence_retrieval.predicting.gathering import gather
from jobs.evidence_retrieval.predicting.outputs import Outputs
from jobs.evidence_retrieval.queries import Predictions, Sheet
from runner.job import Answers
from runner.task import Answer, Task


@dataclass(frozen=True, slots=True, kw_only=True)
class PostAnswers:
    """The answers about one post; a `runner.job.Answers`."""

    held: tuple[tuple[Answer, ...], ...]
    models: tuple[str, ...]
    replicates: int
    imported: bool

    def families(self) -> Iterator[tuple[Answer, ...]]:
        """Each first-stage answer with all that descend from it."""
        return iter(self.held)

    def about(self, query: str, post: str, model: str) -> Iterator[Answer]:
        """What *model* said of a query, and what other roles said for all models."""
        for family in self.held:
            for answer in family:
                task = answer.task
                is_shared = task.model not in self.models
                if item(task) in {query, post} and (is_shared or task.model == model):
                    yield answer


class Run:
    """A run's predictions, and its answers post by post."""

    def __init__(self, dataset: Dataset, answers: Answers) -> None:
        self.dataset = dataset
        self._answers = answers
        self.is_imported = answers.imported
        # gates are fitted on all posts, so that one query needs every answer
        make = given_sheet if answers.imported else predict
        self.sheet: Sheet = make(dataset, answers)

    def predictions(self, model: str) -> Sequence[tuple[Config, Predictions]]:
        """Those of one model of a run of our own, with their configuration."""
        by_name = {config.name: config for config in self.dataset.configs}
        return [
            (by_name[each.config], each)
            for each in self.sheet.predictions
            if each.model == model
        ]

    def headline(self, model: str) -> Predictions:
        """What tables speak of."""
        return next(
            each
            for each in self.sheet.predictions
            if (each.model, each.config) == (model, self.sheet.headline)
        )

    def about(self, post: str) -> PostAnswers:
        """The answers about one post."""
        criteria = self.sheet.queries.criteria
        own = {post, *(query_key(post, criterion) for criterion in criteria)}
        answers = self._answers
        return PostAnswers(
            held=tuple(f for f in answers.families() if item(f[0].task) in own),
            models=answers.models,
            replicates=answers.replicates,
            imported=answers.imported,
        )

    def outputs(self, about: PostAnswers) -> Outputs:
        """The same, read; gold plays no part."""
        return gather(replace(self.dataset, gold=None), about)


def item(task: Task) -> str:
    """The post or query that a task is about."""
    return task.key.rpartition("#")[0] if task.stage == "rerank" else task.key
