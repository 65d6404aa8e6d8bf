from pydantic import BaseModel, Field

from jobs.kit import frames, metrics
from jobs.kit.inputs import cells
from jobs.kit.inputs.rows import RowModel
from jobs.kit.questions import QuestionJob, QuestionSettings
from jobs.runs import Run, arun, run
from jobs.runs import open_run as open  # noqa: A004 - it is read as siftlog.open
from runner.errors import DatasetError, RunnerError, UsageError
from runner.job import Answer, Answers, InputFile, Job, Stage, Task, TaskSpec
from runner.job_faults import guarded
from runner.messages import (
    ChatRequest,
    Message,
    ParseFailure,
    Reply,
    Schema,
    TextPart,
)
from runner.scorecard import Finding, Metric, Scorecard, Table, Verdict
from runner.structured import read_object, schema_of
from store.errors import StoreError

__all__ = [
    "Answer",
    "Answers",
    "BaseModel",
    "ChatRequest",
    "DatasetError",
    "Field",
    "Finding",
    "InputFile",
    "Job",
    "Message",
    "Metric",
    "ParseFailure",
    "QuestionJob",
    "QuestionSettings",
    "Reply",
    "RowModel",
    "Run",
    "RunnerError",
    "Schema",
    "Scorecard",
    "Stage",
    "StoreError",
    "Table",
    "Task",
    "TaskSpec",
    "TextPart",
    "UsageError",
    "Verdict",
    "arun",
    "cells",
    "frames",
    "guarded",
    "metrics",
    "open",
    "read_object",
    "run",
    "schema_of",
]
