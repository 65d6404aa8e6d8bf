"""What the engine makes of each stage's replies.

Never raises on model output, nor on an item that the set no longer holds: both are a
`ParseFailure`, counted by its reason.
"""

from __future__ import annotations

from jobs.screening.corpus import Criteria
from jobs.screening.dataset import Dataset
from jobs.screening.judgement import Judgement
from jobs.screening.parsing.criteria import parse_criteria
from jobs.screening.parsing.screen import parse_screen
from runner.job import Stage, Task
from runner.messages import ParseFailure, Reply


def read_criteria(
    dataset: Dataset, task: Task, reply: Reply
) -> Criteria | ParseFailure:
    """What a review asks for."""
    if not dataset.records_of(task.key):
        return ParseFailure(reason="unknown_review")
    return parse_criteria(reply)


def read_screen(dataset: Dataset, task: Task, reply: Reply) -> Judgement | ParseFailure:
    """What a reply decides about a record; an import without a set knows of none."""
    if dataset.validation_set is not None and dataset.find(task.key) is None:
        return ParseFailure(reason="unknown_record")
    return parse_screen(reply)


STAGES = (
    Stage(name="criteria", parse=read_criteria, gathers=True, once=True),
    Stage(name="title", parse=read_screen, gathers=True),
    Stage(name="abstract", parse=read_screen, gathers=True),
    Stage(name="fulltext", parse=read_screen, follows=False),
)
"""Those with something after them gather: a failed call must not end a record."""
