"""What the engine makes of each stage's replies; never raises on model output."""

from __future__ import annotations

from jobs.property_extraction.answered import Choice, Extraction, Requoted, Verdict
from jobs.property_extraction.dataset import Dataset
from jobs.property_extraction.importing.told import STAGE, parse_rows
from jobs.property_extraction.parsing.extraction import parse_extraction
from jobs.property_extraction.parsing.requote import parse_requote
from jobs.property_extraction.parsing.verdict import parse_choice, parse_verdict
from jobs.property_extraction.row import Prediction
from runner.job import Stage, Task
from runner.messages import ParseFailure, Reply


def read_extraction(
    dataset: Dataset, _task: Task, reply: Reply
) -> Extraction | ParseFailure:
    """The values that a paper, or a piece of it, is said to report."""
    return parse_extraction(reply, partial=dataset.settings.partial)


def read_requote(
    _dataset: Dataset, _task: Task, reply: Reply
) -> Requoted | ParseFailure:
    """New quotes for values, and withdrawals."""
    return parse_requote(reply)


def read_verdict(
    dataset: Dataset, task: Task, reply: Reply
) -> Verdict | Choice | ParseFailure:
    """Whether names mean one property; an import knows pairs alone."""
    question = dataset.questions.get(task.key)
    if question is not None and question.is_choice:
        return parse_choice(reply, question.targets)
    return parse_verdict(reply)


def read_rows(
    _dataset: Dataset, task: Task, reply: Reply
) -> tuple[Prediction, ...] | ParseFailure:
    """Rows of a file."""
    return parse_rows(task.key, reply)


STAGES = (
    Stage(name="extract", parse=read_extraction, gathers=True),
    Stage(name="requote", parse=read_requote, follows=False),
    Stage(name="verify", parse=read_verdict, follows=False),
    Stage(name=STAGE, parse=read_rows, follows=False),
)
"""The pieces of a paper are gathered: its quotes are asked for again all at once.

`rows` is of imports alone, and `verify` of runs of that mode."""
