"""From a run's answers to what they say; replies are read here and nowhere later.

One pass over the families. Gold plays no part: whoever calls hands over a data set
without it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from jobs.evidence_retrieval.dataset import Dataset, query_key
from jobs.evidence_retrieval.parsing.values import (
    Assessment,
    EndpointScores,
    PostAssessment,
    PostVectors,
)
from jobs.evidence_retrieval.predicting.outputs import (
    Cosines,
    Outputs,
    SubjectOutputs,
)
from jobs.evidence_retrieval.stages.likeness import cosines
from runner.job import Answers, Stage
from runner.reply import ParseFailure
from runner.task import Answer, TaskSpec

Order: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Readers:
    """What reading needs to know of how a run asks."""

    stages: Sequence[Stage]
    plan: Callable[[Dataset], Iterable[TaskSpec]]
    final_order: Callable[[Dataset, tuple[Answer, ...]], Order | ParseFailure]
    """The order of the whole pool after all windows of one query and replicate, given
    as answers with their parsed values by falling place in the list."""


def gather(dataset: Dataset, answers: Answers, readers: Readers) -> Outputs:
    """Everything that the answers say."""
    gathering = _Gathering(dataset, answers, readers)
    for family in answers.families():
        gathering.add(family)
    return gathering.outputs()


class _Gathering:
    """One pass, with what it has found so far."""

    def __init__(self, dataset: Dataset, answers: Answers, readers: Readers) -> None:
        self._dataset = dataset
        self._readers = readers
        self._parsers = {stage.name: stage.parse for stage in readers.stages}
        self._subjects = {model: SubjectOutputs() for model in answers.models}
        self._cosines: dict[str, Cosines] = {}
        self._endpoint: dict[str, tuple[float | None, ...]] = {}
        self._expected = _expected(dataset, answers, readers)
        self._open = 0
        self._stale = 0

    def add(self, family: tuple[Answer, ...]) -> None:
        """Take in a first-stage answer with what descends from it."""
        head = family[0].task
        if self._expected[head.stage, head.key] <= 0:
            self._stale += sum(answer.reply is not None for answer in family)
            return
        self._expected[head.stage, head.key] -= 1
        windows: dict[tuple[str, str, int], list[Answer]] = {}
        for answer in family:
            self._open += answer.is_open
            parsed = self._parsed(answer)
            task = answer.task
            if task.stage == "rerank":
                of = (task.model, task.key.rpartition("#")[0], task.replicate)
                windows.setdefault(of, []).append(replace(answer, parsed=parsed))
                continue
            whole_post = answer is family[0] and self._dataset.settings.batch == "post"
            self._take(answer, parsed, whole_post=whole_post)
        for (model, key, replicate), own in windows.items():
            if model in self._subjects:
                self._take_order(self._subjects[model], key, replicate, own)

    def outputs(self) -> Outputs:
        """What was found."""
        return Outputs(
            subjects=self._subjects,
            cosines=self._cosines,
            endpoint=self._endpoint,
            missing=self._open + sum(self._expected.values()),
            stale=self._stale,
        )

    def _parsed(self, answer: Answer) -> object:
        if answer.reply is None:
            return None
        return self._parsers[answer.task.stage](
            self._dataset, answer.task, answer.reply
        )

    def _take(self, answer: Answer, parsed: object, *, whole_post: bool) -> None:
        task = answer.task
        match parsed:
            case PostVectors():
                # further replicates of an embedding would only say the same again
                self._cosines.setdefault(
                    task.key,
                    Cosines(
                        query=cosines(parsed.sentences, parsed.criteria),
                        between=cosines(parsed.sentences, parsed.sentences),
                    ),
                )
            case EndpointScores():
                self._endpoint.setdefault(task.key, parsed.scores)
        subject = self._subjects.get(task.model)
        if subject is None or task.stage != "assess":
            return
        if answer.skip is not None:
            for key in self._keys(task.key, whole_post=whole_post):
                subject.skipped[key] = answer.skip
        elif answer.error is not None:
            subject.counts[f"error.{answer.error}"] += 1
        for key, value in _assessments(task.key, parsed):
            if isinstance(value, ParseFailure):
                subject.counts[value.reason] += 1
            else:
                subject.counts.update(value.noted)
                subject.assessed.setdefault(key, {})[task.replicate] = value
        if isinstance(parsed, PostAssessment):
            subject.counts.update(parsed.noted)

    def _take_order(
        self, subject: SubjectOutputs, key: str, replicate: int, own: list[Answer]
    ) -> None:
        if any(answer.skip is not None for answer in own):
            return
        order = self._readers.final_order(self._dataset, tuple(own))
        for answer in own:
            subject.counts.update(getattr(answer.parsed, "noted", {}))
        if isinstance(order, ParseFailure):
            subject.counts[order.reason] += 1
        else:
            subject.orders.setdefault(key, {})[replicate] = order

    def _keys(self, key: str, *, whole_post: bool) -> Iterator[str]:
        if not whole_post:
            yield key
            return
        for criterion in self._dataset.criteria:
            yield query_key(key, criterion.id)


def _assessments(
    key: str, parsed: object
) -> Iterator[tuple[str, Assessment | ParseFailure]]:
    """By query, what a reply about one query or a whole post says."""
    match parsed:
        case Assessment() | ParseFailure():
            yield key, parsed
        case PostAssessment():
            for criterion, value in parsed.criteria.items():
                yield query_key(key, criterion), value


def _expected(
    dataset: Dataset, answers: Answers, readers: Readers
) -> Counter[tuple[str, str]]:
    """How many first-stage answers the plan asks for, by stage and key."""
    roles: Mapping[str, str] = {stage.name: stage.role for stage in readers.stages}
    crossed = {
        name: answers.replicates * (len(answers.models) if role == "subject" else 1)
        for name, role in roles.items()
    }
    return Counter(
        {(spec.stage, spec.key): crossed[spec.stage] for spec in readers.plan(dataset)}
    )
