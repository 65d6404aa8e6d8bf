"""Reads all that a run holds about one task: prompt, reply, attempts, verdicts.

The log is enough for these. What the reply says in the job's terms is not stored:
`ReplyReader` parses it again with the job's present parser, and finds its quotes in the
text of the item. It needs the job and its data, so it is separate.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, Final

import msgspec
from pydantic import BaseModel

from runner.clients.wire import decode_reply
from runner.errors import RunnerError
from runner.job import Answer, Dataset, Job, QuotedPassage
from runner.job_faults import calling
from runner.messages import AnyReply
from runner.plan import parsed_answer
from runner.sent_requests import SentRequest, SentRequests, prompt_in_data
from store.errors import CorruptLog
from store.events import AttemptAnswered
from store.log.interface import StoredReply
from store.read.status import scorings
from store.read.tasks import AttemptRow, attempts
from store.runs import RunFolder
from store.tables import payload, reply
from store.task import TaskRow
from store.verdicts import StoredVerdict, read_verdicts


@dataclass(frozen=True, slots=True, kw_only=True)
class LastReply:
    """The reply that counts for a task, or the last one that was refused."""

    stored: StoredReply
    decoded: AnyReply | None  #: None: it cannot be decoded
    is_counted: bool  #: False: it was refused and asked again


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRecord:
    """One task with all that its run stores about it."""

    row: TaskRow
    request_sha256: str | None
    prompt: SentRequest | None  #: of the last attempt; None: not known
    reply: LastReply | None
    attempts: tuple[AttemptRow, ...]
    verdicts: tuple[StoredVerdict, ...]  #: of the latest scoring


class TaskReader:
    """Reads tasks of one run.

    Args:
        reader: a reader of the run's log.
        folder: the run's folder, for the verdicts of its latest scoring.
    """

    def __init__(self, reader: sqlite3.Connection, folder: RunFolder) -> None:
        self._reader = reader
        self._requests = SentRequests(reader)
        numbers = [scoring.number for scoring in scorings(reader)]
        #: number of the latest scoring; None: the run was not scored
        self.scoring: int | None = max(numbers, default=None)
        self._verdicts = folder.scores / str(self.scoring) / "verdicts.db"

    def read(self, row: TaskRow) -> TaskRecord:
        """Return a task with its texts."""
        rows = attempts(self._reader, row.task)
        sent = self._requests.of_task(row.task)
        return TaskRecord(
            row=row,
            request_sha256=None if sent is None else sent[0],
            prompt=None if sent is None else sent[1],
            reply=self._reply(row, rows),
            attempts=tuple(rows),
            verdicts=self._verdicts_of(row.task),
        )

    def _reply(self, row: TaskRow, rows: Sequence[AttemptRow]) -> LastReply | None:
        stored = None if row.reply_seq is None else reply(self._reader, row.task)
        is_counted = stored is not None
        if stored is None:
            stored = self._last_refused(rows)
        if stored is None:
            return None
        try:
            decoded = decode_reply(stored.answered.form, stored.body)
        except RunnerError:
            decoded = None
        return LastReply(stored=stored, decoded=decoded, is_counted=is_counted)

    def _last_refused(self, rows: Sequence[AttemptRow]) -> StoredReply | None:
        for attempt in reversed(rows):
            if isinstance(attempt.outcome, AttemptAnswered) and attempt.ended_seq:
                body = payload(self._reader, attempt.ended_seq) or b""
                return StoredReply(
                    seq=attempt.ended_seq, answered=attempt.outcome, body=body
                )
        return None

    def _verdicts_of(self, task: int) -> tuple[StoredVerdict, ...]:
        try:
            if self._verdicts.is_file():
                return tuple(read_verdicts(self._verdicts, task))
        except sqlite3.Error:
            pass  # a damaged file of an old scoring hides nothing else
        return ()


class ReplyReader:
    """Parses replies with a job's present parsers, and finds their quotes.

    Args:
        job: the job of the run.
        dataset: its data, under the settings of the run.
    """

    def __init__(self, job: Job, dataset: Dataset) -> None:
        self._job = job
        self._dataset = dataset
        self._stages = {stage.name: stage for stage in job.stages}

    def parsed(self, detail: TaskRecord) -> Answer | None:
        """Return the answer with its reply parsed; None if there is no such reply."""
        reply = detail.reply
        if reply is None or reply.decoded is None or not reply.is_counted:
            return None
        if detail.row.stage not in self._stages:
            raise CorruptLog(
                f"{self._job.name} has no stage {detail.row.stage!r} any more; install "
                "the siftlog that made the run"
            )
        answer = parsed_answer(self._stages, self._dataset, detail.row, reply.stored)
        return None if answer.reply is None else answer

    def prompt(self, row: TaskRow) -> SentRequest | None:
        """Return the prompt of an imported reply, if the job's data hold it."""
        return prompt_in_data(self._job, self._dataset, row)

    def quotes(self, answer: Answer) -> tuple[QuotedPassage, ...]:
        """Return the quotes of a parsed answer.

        Raises:
            RunnerError: the job raised.
        """
        with calling(self._job, "quotes"):
            return tuple(self._job.quotes(self._dataset, answer))


_DEEPEST: Final = 12
"""Levels of a parsed value; deeper ones are shown as Python shows them."""


def plain_value(  # noqa: PLR0911 - one a kind of value
    value: object, depth: int = 0
) -> Any:  # noqa: ANN401 - JSON
    """Return a parsed value as JSON can hold it.

    >>> plain_value({"p": float("nan"), "models": frozenset({"b", "a"})})
    {'p': None, 'models': ['a', 'b']}
    """
    below = depth + 1
    match value:
        case enum.Enum():
            return plain_value(value.value, below)
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else None
        case _ if depth >= _DEEPEST:
            return repr(value)
        case BaseModel():
            return plain_value(dict(value), below)
        case Mapping():
            return {str(key): plain_value(inner, below) for key, inner in value.items()}
        case AbstractSet():
            return sorted((plain_value(inner, below) for inner in value), key=str)
        case Sequence() if not isinstance(value, bytes):
            return [plain_value(inner, below) for inner in value]
        case _ if dataclasses.is_dataclass(value) or isinstance(value, msgspec.Struct):
            return {name: plain_value(inner, below) for name, inner in _fields(value)}
        case _:
            return repr(value)


def _fields(value: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - of any class
    module = msgspec.structs if isinstance(value, msgspec.Struct) else dataclasses
    for field in module.fields(value):
        if not field.name.startswith("_"):
            yield field.name, getattr(value, field.name)
