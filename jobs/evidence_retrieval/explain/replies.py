"""What each stage was asked and answered about a query, as it was read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from jobs.evidence_retrieval.asking import request as asking
from jobs.evidence_retrieval.asking.listing import listing
from jobs.evidence_retrieval.dataset import Dataset
from jobs.evidence_retrieval.explain.query import Query
from jobs.evidence_retrieval.parsing.values import (
    Assessment,
    EndpointScores,
    Ordering,
    PostAssessment,
    PostVectors,
)
from jobs.evidence_retrieval.reading import PARSERS
from jobs.text import (
    WIDTH,
    cut,
    hanging_lines,
    joined_words,
    one_line,
    plural,
    quoted_lines,
)
from runner.clients.wire_shared import skeleton
from runner.job import Answer, Task
from runner.messages import ParseFailure

HASH_LENGTH = 16
"""Digits that are shown of a prompt's hash; enough to tell the prompts of a run."""

Line: TypeAlias = tuple[str, str]
"""A label and what it is of."""


def reply_lines(
    dataset: Dataset, query: Query, answers: Iterable[Answer]
) -> Iterator[str]:
    """Each answer: its task and prompt, the reply, and what was made of it."""
    for answer in answers:
        task = answer.task
        yield cut(
            f"  {task.stage:<10}  {one_line(task.model)}, replicate {task.replicate}, "
            f"task {task.number}",
            WIDTH,
        )
        if answer.skip is None:
            yield f"    prompt  {prompt_hash(dataset, task)}"
        if answer.chat is not None:
            yield from quoted_lines(answer.chat.text)
            if answer.chat.finish_reason != "stop":
                yield f"    ended   {one_line(answer.chat.finish_reason)}"
        for label, line in _reading(dataset, query, answer):
            yield from hanging_lines(f"    {label:<6}  ", line)


def prompt_hash(dataset: Dataset, task: Task) -> str:
    """The hash under which the log has the request, or that it cannot be built.

    It is that of the request as these settings make it: a run that was sent with other
    ones, or asked again after an unreadable reply, has another hash in its log.
    """
    try:
        request = asking.request(dataset, task)
    except KeyError:
        return "unknown: the data no longer hold the item"
    return skeleton(request, task.model).sha256[:HASH_LENGTH]


def _reading(dataset: Dataset, query: Query, answer: Answer) -> Iterator[Line]:
    """What was read, what had to be mended for that, or what went wrong."""
    if answer.skip is not None:
        yield "skip", one_line(answer.skip)
    elif answer.error is not None:
        yield "error", one_line(answer.error)
    elif answer.reply is None:
        yield "open", "not answered yet"
    else:
        task = answer.task
        parsed = PARSERS[task.stage](dataset, task, answer.reply)
        yield from _value(dataset, query, task, parsed)


def _value(
    dataset: Dataset, query: Query, task: Task, parsed: object
) -> Iterator[Line]:
    match parsed:
        case ParseFailure(reason=reason, detail=detail):
            yield "failed", reason + (f": {one_line(detail)}" if detail else "")
        case Assessment():
            yield from _assessment(parsed)
        case PostAssessment():
            yield from _noted(parsed.noted)
            own = parsed.criteria.get(query.criterion_id)
            if own is None:
                yield "read", "nothing of this criterion, which is asked alone"
            else:
                yield from _value(dataset, query, task, own)
        case Ordering():
            listed = listing(dataset, task)
            order = (listed.places[place] + 1 for place in parsed.places)
            window = f"window {listed.window + 1} of {len(listed.spans)}"
            yield "read", f"{window}, best first: {joined_words(order)}"
            yield from _noted(parsed.noted)
        case PostVectors():
            n = len(parsed.criteria) + len(parsed.sentences)
            length = parsed.criteria.shape[1]
            yield "read", f"{plural(n, 'vector')} of {plural(length, 'number')}"
        case EndpointScores():
            there = sum(score is not None for score in parsed.scores)
            pool = plural(len(parsed.scores), "sentence")
            yield "read", f"{plural(there, 'score')} for {pool}"
            yield from _noted(parsed.noted)
        case _:
            raise AssertionError(parsed)


def _assessment(read: Assessment) -> Iterator[Line]:
    listed = [f"{place + 1} ({rated})" for place, rated in read.relevance.items()]
    sentences = ", ".join(listed) or "none"
    yield "read", f"probability {read.probability:g}, relevant sentences {sentences}"
    yield from _noted(read.noted)


def _noted(noted: Mapping[str, int]) -> Iterator[Line]:
    if noted:
        yield "noted", ", ".join(f"{name} {n}" for name, n in noted.items())
