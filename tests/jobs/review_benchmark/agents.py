"""Answers of invented agents about invented reviews, in memory."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

from jobs.review_benchmark.data import Review
from jobs.review_benchmark.database.papers import ImportedRecord
from jobs.review_benchmark.database.reader import PaperDatabase
from jobs.review_benchmark.inputs import ReviewDataset
from jobs.review_benchmark.parsing import read_plan
from jobs.review_benchmark.plan import searched
from jobs.review_benchmark.result_files import AgentResult
from jobs.review_benchmark.settings import ReviewBenchmarkSettings
from runner.job import Answer, Task
from runner.messages import Reply, Usage
from tests.jobs.review_benchmark.small_review import stocked

UNREADABLE = "?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Answers in memory, as a log would give them; a `runner.job.Answers`."""

    models: tuple[str, ...]
    each: Sequence[tuple[Answer, ...]]
    replicates: int = 1
    imported: bool = False

    def families(self) -> Iterator[tuple[Answer, ...]]:
        """All of them, in their order."""
        yield from self.each


def database_of(path: Path, entries: Iterable[ImportedRecord]) -> PaperDatabase:
    """A paper database with some papers, numbered from 1."""
    return PaperDatabase(stocked(path, *entries))


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """How an invented model searches and scores; the same in all replicates."""

    model: str
    queries: Mapping[str, Sequence[object]]
    """Of each review, as the schema has them; a review without any is not asked."""
    score: Callable[[str, int, int], float | str | None]
    """By review, paper and replicate: a score, the class of a failure, or no answer.

    A question mark is a reply that cannot be read.
    """


@dataclass(slots=True, kw_only=True)
class Asked:
    """What some agents answer."""

    dataset: ReviewDataset
    agents: Sequence[Agent]
    replicates: int = 1
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def answers(self) -> Given:
        """A family for each agent, review and replicate."""
        return Given(
            models=tuple(agent.model for agent in self.agents),
            each=[
                tuple(self._family(agent, review, replicate))
                for review in self.dataset.reviews
                for agent in self.agents
                for replicate in range(1, self.replicates + 1)
                if review.id in agent.queries
            ],
            replicates=self.replicates,
        )

    def failing(self, error: str) -> Given:
        """All search plans fail."""
        return Given(
            models=tuple(agent.model for agent in self.agents),
            each=[
                (Answer(task=self._task("plan", review.id, agent, 1), error=error),)
                for review in self.dataset.reviews
                for agent in self.agents
            ],
        )

    def _family(self, agent: Agent, review: Review, replicate: int) -> Iterator[Answer]:
        plan = self._answer(
            self._task("plan", review.id, agent, replicate),
            json.dumps({"queries": agent.queries[review.id], "rationale": ""}),
        )
        yield plan
        assert plan.chat is not None
        parsed = read_plan(self.dataset, plan.task, plan.chat)
        for paper in searched(self.dataset, review, parsed).candidates:
            task = self._task("score", f"{review.id}:{paper}", agent, replicate)
            said = agent.score(review.id, paper, replicate)
            if said == UNREADABLE:
                yield self._answer(task, said)
            elif isinstance(said, str):
                yield Answer(task=task, error=said)
            elif said is not None:
                text = json.dumps({"score": said, "rationale": "By its title."})
                yield self._answer(task, text)

    def _task(self, stage: str, key: str, agent: Agent, replicate: int) -> Task:
        return Task(
            number=next(self._numbers),
            stage=stage,
            key=key,
            model=agent.model,
            replicate=replicate,
        )

    @staticmethod
    def _answer(task: Task, text: str) -> Answer:
        usage = Usage(tokens_in=100, tokens_out=10)
        return Answer(task=task, reply=Reply(text=text, usage=usage), cost_usd=0.001)


def dataset_of(
    reviews: Sequence[Review], database: PaperDatabase | None, **settings: object
) -> ReviewDataset:
    """A data set with settings that are not the defaults."""
    return ReviewDataset(
        settings=ReviewBenchmarkSettings.model_validate(settings),
        reviews=tuple(reviews),
        database=database,
    )


def imported(*results: AgentResult) -> Given:
    """Results as an import brings them; of one agent and review they are replicates."""
    numbers: Counter[tuple[str, str]] = Counter()
    each = []
    for number, result in enumerate(results, start=1):
        numbers[result.label, result.review] += 1
        task = Task(
            number=number,
            stage="result",
            key=result.review,
            model=result.label,
            replicate=numbers[result.label, result.review],
        )
        each.append((Answer(task=task, reply=Reply(text=_text(result))),))
    return Given(
        models=tuple(dict.fromkeys(result.label for result in results)),
        each=each,
        replicates=max(numbers.values()),
        imported=True,
    )


def _text(result: AgentResult) -> str:
    def rows(*, included: bool) -> list[dict[str, object]]:
        return [
            {
                "document_id": each.document,
                "pmid": each.pmid,
                "doi": each.doi,
                "title": each.title,
                "year": each.year,
                "relevance_score": each.score,
            }
            for each in result.records
            if each.included == included
        ]

    return json.dumps(
        {
            "cochrane_id": result.review,
            "included_papers": rows(included=True),
            "excluded_papers": rows(included=False),
            "conclusion": result.conclusion,
        }
    )
