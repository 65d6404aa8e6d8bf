"""What the engine makes of each stage's replies; never raises on model output."""

from __future__ import annotations

from jobs.property_extraction.dataset import Dataset
from jobs.property_extraction.importing.told import STAGE, parse_rows
from jobs.property_extraction.row import Prediction
from runner.job import Stage
from runner.reply import ParseFailure, Reply
from runner.task import Task


def read_rows(
    _dataset: Dataset, task: Task, reply: Reply
) -> tuple[Prediction, ...] | ParseFailure:
    """Rows of a file."""
    return parse_rows(task.key, reply)


STAGES = (Stage(name=STAGE, parse=read_rows, follows=False),)
