"""Reads the answers of a run into outputs by model, query and replicate.

One pass over the families. Gold labels are not used: callers pass a data set without
them.

Vectors are not stored: of an embedding only the cosines remain, which is all that any
stage needs and takes a hundredth of the memory.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
from msgspec import structs

from jobs.evidence_retrieval.data import EvidenceDataset, query_key
from jobs.evidence_retrieval.parsing import (
    Assessment,
    EndpointScores,
    Ordering,
    PostAssessment,
    PostVectors,
)
from jobs.evidence_retrieval.plan import PARSERS, STAGES, plan
from jobs.evidence_retrieval.prompts import assessed
from jobs.evidence_retrieval.sentence_order import DECIMALS, final_order
from jobs.kit.lexical import cosines
from jobs.kit.metrics.columns import Floats
from runner.job import Answer, Answers, Task
from runner.messages import ParseFailure


@dataclass(frozen=True, slots=True, kw_only=True)
class Cosines:
    """Cosine similarities from a post's embedding."""

    query: Floats  #: (sentences, criteria) similarity to each criterion
    between: Floats  #: (sentences, sentences)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubjectOutputs:
    """Parsed answers of one model under test; queries by their key."""

    assessed: dict[str, dict[int, Assessment]] = field(default_factory=dict)
    """By query and replicate; only readable ones."""
    orders: dict[str, dict[int, tuple[int, ...]]] = field(default_factory=dict)
    """Indices of the whole pool, best first, by query and replicate of its rerank."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Reason why a query was not assessed, by query."""
    counts: Counter[str] = field(default_factory=Counter)
    """Repairs of replies, and reasons why some could not be used."""


@dataclass(slots=True, kw_only=True)
class Outputs:
    """All parsed answers; subjects share embeddings and endpoint scores."""

    subjects: Mapping[str, SubjectOutputs]
    cosines: dict[str, Cosines] = field(default_factory=dict)  #: by post
    endpoint: dict[str, tuple[float | None, ...]] = field(default_factory=dict)
    """By query: a score per sentence of the pool, None if missing."""
    missing: int = 0  #: tasks of the current plan that the run does not have
    stale: int = 0  #: replies that the current plan does not need


_ROLES = {stage.name: stage.role for stage in STAGES}


class ExpectedAnswers:
    """First-stage answers of the current plan; each is matched once."""

    def __init__(self, dataset: EvidenceDataset, answers: Answers) -> None:
        subjects = len(answers.models)
        self._left = Counter(
            {
                (spec.stage, spec.key): answers.replicates
                * (subjects if _ROLES[spec.stage] == "subject" else 1)
                for spec in plan(dataset)
            }
        )

    def takes(self, head: Task) -> bool:
        """Return whether the plan has a first-stage task; else its family is stale."""
        is_expected = self._left[head.stage, head.key] > 0
        if is_expected:
            self._left[head.stage, head.key] -= 1
        return is_expected

    @property
    def left(self) -> int:
        """Number of planned answers that have not occurred yet."""
        return sum(self._left.values())


def gather(dataset: EvidenceDataset, answers: Answers) -> Outputs:
    """Parse all answers by the current rules."""
    planned = ExpectedAnswers(dataset, answers)
    outputs = Outputs(subjects={model: SubjectOutputs() for model in answers.models})
    for family in answers.families():
        if planned.takes(family[0].task):
            _take_family(dataset, outputs, family)
        else:
            outputs.stale += sum(answer.reply is not None for answer in family)
    outputs.missing += planned.left
    return outputs


def _take_family(
    dataset: EvidenceDataset, outputs: Outputs, family: tuple[Answer, ...]
) -> None:
    """Add a first-stage answer and its follow-ups."""
    windows: dict[tuple[str, str, int], list[Answer]] = {}
    for answer in family:
        outputs.missing += answer.is_open
        task, parsed = answer.task, None
        if answer.reply is not None:
            parsed = PARSERS[task.stage](dataset, task, answer.reply)
        read = structs.replace(answer, parsed=parsed)
        match task.stage:
            case "assess":
                if task.model in outputs.subjects:
                    _take_assess(dataset, outputs.subjects[task.model], read)
            case "rerank":
                query, _, _ = task.key.rpartition("#")
                of = (task.model, query, task.replicate)
                windows.setdefault(of, []).append(read)
            case _:
                _take_shared(outputs, read)
    for (model, key, replicate), window_answers in windows.items():
        if model in outputs.subjects:
            subject = outputs.subjects[model]
            _take_order(dataset, subject, key, replicate, window_answers)


def _take_shared(outputs: Outputs, read: Answer) -> None:
    """Add vectors and scores, which all subjects share.

    Further replicates would be identical.
    """
    match read.parsed:
        case PostVectors() as parsed:
            near = cosines(parsed.criteria, parsed.sentences).T
            between = cosines(parsed.sentences, parsed.sentences)
            rounded = Cosines(
                query=np.round(near, DECIMALS), between=np.round(between, DECIMALS)
            )
            outputs.cosines.setdefault(read.task.key, rounded)
        case EndpointScores() as parsed:
            outputs.endpoint.setdefault(read.task.key, parsed.scores)
        case _:
            return


def _take_assess(
    dataset: EvidenceDataset, subject: SubjectOutputs, read: Answer
) -> None:
    task, parsed = read.task, read.parsed
    if read.error is not None:
        subject.counts[f"error.{read.error}"] += 1
    if read.skip is not None:
        post, criteria = assessed(dataset, task.key)
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
    dataset: EvidenceDataset,
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
    order = final_order(dataset, [(answer.task, answer.parsed) for answer in windows])
    if order is not None:
        subject.orders.setdefault(key, {})[replicate] = order


def _assessments(
    key: str, parsed: object
) -> Iterator[tuple[str, Assessment | ParseFailure]]:
    """Yield the assessments in a reply about a query or a post, by query."""
    match parsed:
        case Assessment() | ParseFailure():
            yield key, parsed
        case PostAssessment():
            for criterion, value in parsed.criteria.items():
                yield query_key(key, criterion), value
        case _:
            return
