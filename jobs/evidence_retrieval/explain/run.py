"""What a run holds: every prediction, and the answers about a few posts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property

from jobs.evidence_retrieval.dataset import Dataset
from jobs.evidence_retrieval.explain.query import Query
from jobs.evidence_retrieval.explain.selection import Selection
from jobs.evidence_retrieval.pipeline import Config
from jobs.evidence_retrieval.predicting.gathering import gather
from jobs.evidence_retrieval.predicting.outputs import Outputs
from jobs.evidence_retrieval.queries import FoldGate, Predictions
from jobs.evidence_retrieval.reading import STAGES
from jobs.evidence_retrieval.sheet import sheet_of
from jobs.replies import AnswerSubset
from runner.job import Answer, Answers, Task

_ROLES = {stage.name: stage.role for stage in STAGES}


class Run:
    """A run as pages about some queries need it."""

    def __init__(self, dataset: Dataset, answers: Answers) -> None:
        self.dataset = dataset
        self.is_imported = answers.imported
        # gates are fitted on all posts, so that one query needs every answer
        self.sheet = sheet_of(dataset, answers)

    def headline(self, model: str) -> Predictions:
        """What tables speak of."""
        return next(
            each
            for each in self.sheet.predictions
            if (each.model, each.config) == (model, self.sheet.headline)
        )

    def gates(self, model: str, fold: str | None) -> Mapping[str, FoldGate]:
        """What was fitted and chosen for a fold, by configuration."""
        return {
            gate.config: gate
            for gate in self.sheet.gates
            if (gate.model, gate.fold) == (model, fold)
        }

    def configured(self, model: str) -> Sequence[tuple[Config, Predictions]]:
        """A model's predictions with their configurations, which no import has."""
        by_name = {config.name: config for config in self.dataset.configs}
        return [
            (by_name[each.config], each)
            for each in self.sheet.predictions
            if each.model == model
        ]


class Told:
    """What a run's answers say of the chosen queries; read when it is first wanted."""

    def __init__(
        self, dataset: Dataset, answers: Answers, chosen: Iterable[Selection]
    ) -> None:
        self._dataset = dataset
        self._every = answers
        queries = [query for selection in chosen for query in selection.queries]
        self._items = {item for each in queries for item in (each.key, each.post_id)}

    @cached_property
    def _answers(self) -> AnswerSubset:
        return AnswerSubset.where(self._every, lambda task: item(task) in self._items)

    @cached_property
    def outputs(self) -> Outputs:
        """What was read; gold plays no part."""
        return gather(replace(self._dataset, gold=None), self._answers)

    def about(self, query: Query, model: str) -> Iterator[Answer]:
        """What *model* said of a query, and what other roles said for all models."""
        for family in self._answers.held:
            for answer in family:
                task = answer.task
                is_shared = _ROLES[task.stage] != "subject"
                is_about = item(task) in {query.key, query.post_id}
                if is_about and (is_shared or task.model == model):
                    yield answer


def item(task: Task) -> str:
    """The post or query that a task is about."""
    return task.key.rpartition("#")[0] if task.stage == "rerank" else task.key
