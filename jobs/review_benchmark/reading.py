"""What the engine makes of each stage's replies.

Never raises on model output: what cannot be read is a `ParseFailure`, counted by its
reason.
"""

from __future__ import annotations

from jobs.review_benchmark.answered import (
    Conclusion,
    Likeness,
    Relevance,
    SearchPlan,
    Vector,
)
from jobs.review_benchmark.dataset import Dataset
from jobs.review_benchmark.extracting.asking import parsing
from jobs.review_benchmark.extracting.asking.answers import Meta, Places, References
from jobs.review_benchmark.extracting.extract import Extract
from jobs.review_benchmark.inputs.results import AgentResult
from jobs.review_benchmark.parsing.conclusion import parse_conclusion, parse_likeness
from jobs.review_benchmark.parsing.plan import parse_plan
from jobs.review_benchmark.parsing.result import parse_result
from jobs.review_benchmark.parsing.score import parse_score
from jobs.review_benchmark.parsing.vector import parse_vector
from jobs.review_benchmark.settings import ENDS
from runner.job import Stage, Task
from runner.messages import ParseFailure, Reply, Vectors


def read_plan(dataset: Dataset, task: Task, reply: Reply) -> SearchPlan | ParseFailure:
    """What is searched for a review."""
    if dataset.find(task.key) is None:
        return ParseFailure(reason="unknown_review")
    return parse_plan(reply, dataset.settings.queries)


def read_score(dataset: Dataset, task: Task, reply: Reply) -> Relevance | ParseFailure:
    """How relevant a paper is."""
    del task
    return parse_score(reply, ENDS[dataset.settings.scale])


def read_conclusion(
    dataset: Dataset, task: Task, reply: Reply
) -> Conclusion | ParseFailure:
    """What the included papers come to."""
    del dataset, task
    return parse_conclusion(reply)


def read_likeness(
    dataset: Dataset, task: Task, reply: Reply
) -> Likeness | ParseFailure:
    """How alike two conclusions are."""
    del dataset, task
    return parse_likeness(reply)


def read_vector(dataset: Dataset, task: Task, reply: Vectors) -> Vector | ParseFailure:
    """Where a conclusion lies."""
    del dataset, task
    return parse_vector(reply)


def read_result(
    dataset: Dataset, task: Task, reply: Reply
) -> AgentResult | ParseFailure:
    """What an agent made elsewhere."""
    if dataset.find(task.key) is None:
        return ParseFailure(reason="unknown_review")
    return parse_result(reply, f"{task.key} of {task.model}")


def read_places(extract: Extract, task: Task, reply: Reply) -> Places | ParseFailure:
    """Where sections of a review stand."""
    del extract, task
    return parsing.parse_places(reply)


def read_meta(extract: Extract, task: Task, reply: Reply) -> Meta | ParseFailure:
    """What a review says of itself."""
    del extract, task
    return parsing.parse_meta(reply)


def read_references(
    extract: Extract, task: Task, reply: Reply
) -> References | ParseFailure:
    """The references of a chunk."""
    del extract, task
    return parsing.parse_references(reply)


STAGES = (
    Stage(name="plan", parse=read_plan),
    Stage(name="score", parse=read_score, gathers=True),
    Stage(name="conclude", parse=read_conclusion),
    Stage(name="judge", parse=read_likeness, role="judge", follows=False),
    Stage(name="embed", parse=read_vector, role="embed", follows=False),
    Stage(name="result", parse=read_result, follows=False),
    Stage(name="x.places", parse=read_places),
    Stage(name="x.meta", parse=read_meta, follows=False),
    Stage(name="x.refs", parse=read_references, follows=False),
    Stage(name="x.excluded", parse=read_references, follows=False),
)
"""Candidates are gathered: a conclusion waits for all of them, failed ones included.

`result` is of imports alone, and `x.` of runs that read a review's own text."""
