"""From a run's answers to what they say; replies are read here and nowhere later.

One pass over the families. Gold plays no part: whoever calls hands over a data set
without it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from jobs.evidence_retrieval.asking.listing import final_order
from jobs.evidence_retrieval.asking.plan import plan
from jobs.evidence_retrieval.asking.request import assessed
from jobs.evidence_retrieval.dataset import Dataset, query_key
from jobs.evidence_retrieval.parsing.values import (
    Assessment,
    EndpointScores,
    Ordering,
    PostAssessment,
    PostVectors,
)
from jobs.evidence_retrieval.predicting.outputs import Cosines, Outputs, SubjectOutputs
from jobs.evidence_retrieval.reading import PARSERS, STAGES
from jobs.evidence_retrieval.stages.ordering import DECIMALS
from jobs.lexical import cosines
from runner.job import Answer, Answers, Task
from runner.messages import ParseFailure

_ROLES = {stage.name: stage.role for stage in STAGES}


class Planned:
    """Which first-stage answers the present plan asks for; each is taken once."""

    def __init__(self, dataset: Dataset, answers: Answers) -> None:
        subjects = len(answers.models)
        self._left = Counter(
            {
                (spec.stage, spec.key): answers.replicates
                * (subjects if _ROLES[spec.stage] == "subject" else 1)
                for spec in plan(dataset)
            }
        )

    def takes(self, head: Task) -> bool:
        """Whether a first-stage task belongs to the plan; else its family is stale."""
        is_asked = self._left[head.stage, head.key] > 0
        if is_asked:
            self._left[head.stage, head.key] -= 1
        return is_asked

    @property
    def left(self) -> int:
        """How many of its answers were not met so far."""
        return sum(self._left.values())


def gather(dataset: Dataset, answers: Answers) -> Outputs:
    """Everything that the answers say, read by the present rules."""
    gathering = _Gathering(dataset, answers)
    for family in answers.families():
        gathering.add(family)
    return gathering.outputs()


class _Gathering:
    """One pass, with what it has found so far."""

    def __init__(self, dataset: Dataset, answers: Answers) -> None:
        self._dataset = dataset
        self._subjects = {model: SubjectOutputs() for model in answers.models}
        self._cosines: dict[str, Cosines] = {}
        self._endpoint: dict[str, tuple[float | None, ...]] = {}
        self._planned = Planned(dataset, answers)
        self._open = 0
        self._stale = 0

    def add(self, family: tuple[Answer, ...]) -> None:
        """Take in a first-stage answer with what descends from it."""
        if not self._planned.takes(family[0].task):
            self._stale += sum(answer.reply is not None for answer in family)
            return
        windows: dict[tuple[str, str, int], list[Answer]] = {}
        for answer in family:
            self._open += answer.is_open
            read = replace(answer, parsed=self._parsed(answer))
            task = read.task
            match task.stage:
                case "assess":
                    self._take_assess(read)
                case "rerank":
                    query, _, _ = task.key.rpartition("#")
                    of = (task.model, query, task.replicate)
                    windows.setdefault(of, []).append(read)
                case _:
                    self._take_shared(read)
        for (model, key, replicate), own in windows.items():
            if model in self._subjects:
                _take_order(self._dataset, self._subjects[model], key, replicate, own)

    def outputs(self) -> Outputs:
        """What was found."""
        return Outputs(
            subjects=self._subjects,
            cosines=self._cosines,
            endpoint=self._endpoint,
            missing=self._open + self._planned.left,
            stale=self._stale,
        )

    def _parsed(self, answer: Answer) -> object:
        if answer.reply is None:
            return None
        return PARSERS[answer.task.stage](self._dataset, answer.task, answer.reply)

    def _take_shared(self, read: Answer) -> None:
        """Vectors and scores, which serve every subject.

        Further replicates would only say the same again.
        """
        match read.parsed:
            case PostVectors() as found:
                near = cosines(found.criteria, found.sentences).T
                between = cosines(found.sentences, found.sentences)
                self._cosines.setdefault(
                    read.task.key,
                    Cosines(
                        query=np.round(near, DECIMALS),
                        between=np.round(between, DECIMALS),
                    ),
                )
            case EndpointScores() as found:
                self._endpoint.setdefault(read.task.key, found.scores)
            case _:
                return

    def _take_assess(self, read: Answer) -> None:
        task, parsed = read.task, read.parsed
        subject = self._subjects.get(task.model)
        if subject is None:
            return
        if read.error is not None:
            subject.counts[f"error.{read.error}"] += 1
        if read.skip is not None:
            post, criteria = assessed(self._dataset, task.key)
            for criterion in criteria:
                subject.skipped[query_key(post.id, criterion.id)] = read.skip
        for key, value in _assessments(task.key, parsed):
            if isinstance(value, ParseFailure):
                subject.counts[value.reason] += 1
            else:
                subject.counts.update(value.noted)
                subject.assessed.setdefault(key, {})[task.replicate] = value
        if isinstance(parsed, PostAssessment):
            subject.counts.update(parsed.noted)


def _take_order(
    dataset: Dataset,
    subject: SubjectOutputs,
    key: str,
    replicate: int,
    windows: list[Answer],
) -> None:
    for answer in windows:
        match answer.parsed:
            case ParseFailure() as failure:
                subject.counts[failure.reason] += 1
            case Ordering() as ordering:
                subject.counts.update(ordering.noted)
            case _:
                pass  # no reply
        if answer.error is not None:
            subject.counts[f"error.{answer.error}"] += 1
    order = final_order(dataset, [(own.task, own.parsed) for own in windows])
    if order is not None:
        subject.orders.setdefault(key, {})[replicate] = order


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
        case _:
            return
