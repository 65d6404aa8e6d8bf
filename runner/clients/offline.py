"""Answers calls offline: from a job's baseline, a function, a file or another run.

A file holds JSON objects, one a line or spread over lines: `key` and `response`, and
optionally `stage`, `model`, `replicate` and `finish_reason`. A run gives its replies
byte for byte, as they were received.

If several models answered, append `#` and the name of one:
`recorded:answers.jsonl#openai/gpt-x`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from inspect import isawaitable
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

import msgspec

from runner.clients.client import (
    Call,
    ClientOptions,
    ClientStatistics,
    ClientTally,
    Received,
)
from runner.clients.wire import decode_reply, encode_answer
from runner.clients.wire_openai import OPENAI_CHAT, encode_reply
from runner.clients.wire_shared import UNREADABLE
from runner.errors import BadRequest, DatasetError, UsageError
from runner.job import Job, Task
from runner.json_entries import BOM, entries_of
from runner.messages import (
    AnyReply,
    ChatRequest,
    EmbedRequest,
    Ranking,
    Reply,
    Request,
    RerankRequest,
    Vectors,
)
from store.database import open_reader
from store.printable import printable
from store.read.tasks import tasks
from store.runs import resolve
from store.tables import reply

Answerer: TypeAlias = Callable[[Call], AnyReply | Awaitable[AnyReply]]
"""Answers a call, at once or later, or raises an `AttemptError`."""


class FunctionClient:
    """A client whose endpoint is a plain function.

    Tests of all code above the client use it:

        FunctionClient(lambda call: Reply(text=call.task.key))
    """

    def __init__(self, answer: Answerer) -> None:
        self._answer = answer
        self._tally = ClientTally()

    async def call(self, call: Call) -> Received:
        """Return the function's answer in the stored form of its kind."""
        with self._tally.attempt():
            reply = self._answer(call)
            if isawaitable(reply):
                reply = await reply
            form, body = encode_answer(reply)
            self._tally.bytes_received += len(body)
            return Received(body=body, form=form, reply=reply)

    def statistics(self) -> ClientStatistics:
        """Return the client's figures."""
        return self._tally.statistics()

    async def close(self) -> None:
        """Do nothing."""


class BaselineClient:
    """Calls `job.baseline`, which sees only the request.

    A baseline searches whole papers in pure Python: 10 ms and more for each. It runs in
    one thread, so that heartbeats, commits and signals continue; a second thread would
    only compete for the interpreter.
    """

    def __init__(self, job: Job) -> None:
        self._job = job
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="baseline")
        self._client = FunctionClient(self._answer)

    async def call(self, call: Call) -> Received:
        """Return the baseline's answer."""
        return await self._client.call(call)

    async def _answer(self, call: Call) -> AnyReply:
        answer = await asyncio.get_running_loop().run_in_executor(
            self._thread, self._job.baseline, call.request
        )
        return Reply(text=answer) if isinstance(answer, str) else answer

    def statistics(self) -> ClientStatistics:
        """Return the client's figures."""
        return self._client.statistics()

    async def close(self) -> None:
        """End the thread."""
        self._thread.shutdown()


NAMES: Final = 200
"""Maximum characters of an entry's keys in an error."""

PAGE: Final = 1000
"""Tasks read from a log at a time."""


class Recording(Protocol):
    """Storage of recorded answers."""

    def find(self, task: Task) -> tuple[str, bytes] | None:
        """Return form and body of the answer to *task*, from any model."""
        ...

    def close(self) -> None:
        """Release the file."""
        ...


class _Line(msgspec.Struct):
    key: str
    response: str | dict[str, Any] | list[Any]  #: an object means its JSON text
    stage: str | None = None
    model: str | None = None
    replicate: int = 1
    finish_reason: str = "stop"

    @property
    def text(self) -> str:
        """Return the reply."""
        if isinstance(self.response, str):
            return self.response
        return msgspec.json.encode(self.response).decode()


@dataclass(frozen=True, slots=True)
class _AnswerKey:
    stage: str | None  #: None: missing in the file; matches any stage
    key: str
    replicate: int


class RecordedFile:
    """A file of JSON objects; only their offsets are held in memory.

    Raises:
        DatasetError: A line is invalid, or answers the same task as another.
            UsageError: Several models answered, and none of them is named.
    """

    def __init__(self, path: Path, model: str | None) -> None:
        self._path = path
        self._decoder = msgspec.json.Decoder(_Line)
        try:
            self._file = path.open("rb")
        except OSError as error:
            raise DatasetError(
                f"The recording {path} cannot be read: {error.strerror}."
            ) from None
        try:
            self._offsets = self._index(model)
        except BaseException:
            self._file.close()
            raise

    def find(self, task: Task) -> tuple[str, bytes] | None:
        """Return the answer to *task* in the form of chat completions."""
        for stage in (task.stage, None):
            key = _AnswerKey(stage, task.key, task.replicate)
            if (offset := self._offsets.get(key)) is not None:
                start, size = offset
                self._file.seek(start)
                line = self._decoder.decode(self._file.read(size))
                return OPENAI_CHAT, encode_reply(line.text, line.finish_reason)
        return None

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _index(self, model: str | None) -> dict[_AnswerKey, tuple[int, int]]:
        """Return offset and size of each answer of the chosen model."""
        by_model: dict[str | None, dict[_AnswerKey, tuple[int, int]]] = {}
        for number, start, raw in entries_of(self._file, str(self._path)):
            data = raw.removeprefix(BOM)
            line = self._line(number, data)
            key = _AnswerKey(line.stage, line.key, line.replicate)
            offsets = by_model.setdefault(line.model, {})
            if key in offsets:
                raise DatasetError(
                    f"{self._path} line {number}: {line.key} was answered "
                    "before; keep one line for each answer."
                )
            offsets[key] = (start + len(raw) - len(data), len(data))
        return by_model[chosen_model(str(self._path), by_model, model)]

    def _line(self, number: int, data: bytes) -> _Line:
        try:
            return self._decoder.decode(data)
        except UNREADABLE as error:
            raise DatasetError(
                f"{self._path} line {number}: {error}; {self._expected(data)} "
                "(docs/file-formats.md, Recorded replies)."
            ) from None

    @staticmethod
    def _expected(data: bytes) -> str:
        """Describe the expected entry, and this one."""
        try:
            keys = list(msgspec.json.decode(data, type=dict[str, Any]))
        except UNREADABLE:
            return "a line holds a JSON object with key and response"
        names = printable(", ".join(keys)[:NAMES])
        return f"an object with key and response is expected, and this has {names}"


class RecordedRun:
    """An earlier run; only the numbers of its answered tasks are held in memory.

    Raises:
        StoreError: The log cannot be read.
        UsageError: Several models answered, and none of them is named.
    """

    def __init__(self, log: Path, name: str, model: str | None) -> None:
        self._reader = open_reader(log)
        try:
            self._tasks = self._index(name, model)
        except BaseException:
            self._reader.close()
            raise

    def find(self, task: Task) -> tuple[str, bytes] | None:
        """Return the reply that counts for the same task of that run."""
        number = self._tasks.get(_AnswerKey(task.stage, task.key, task.replicate))
        stored = None if number is None else reply(self._reader, number)
        return None if stored is None else (stored.answered.form, stored.body)

    def close(self) -> None:
        """Close the log."""
        self._reader.close()

    def _index(self, name: str, model: str | None) -> dict[_AnswerKey, int]:
        by_model: dict[str | None, dict[_AnswerKey, int]] = {}
        after = 0
        while rows := tasks(self._reader, after=after, limit=PAGE):
            after = rows[-1].task
            for row in rows:
                if row.reply_seq is not None:
                    key = _AnswerKey(row.stage, row.key, row.replicate)
                    by_model.setdefault(row.model, {})[key] = row.task
        return by_model[chosen_model(name, by_model, model)]


def chosen_model(
    name: str, models: Iterable[str | None], model: str | None
) -> str | None:
    """Return the model to read from a recording; `UsageError` if ambiguous."""
    recorded_models = list(models)
    if model is None and len(recorded_models) == 1:
        return recorded_models[0]
    if model in recorded_models:
        return model
    names = (
        ", ".join(sorted(str(recorded_model) for recorded_model in recorded_models))
        or "no model"
    )
    raise UsageError(
        f"{name} holds answers of {names}; name one as recorded:{name}#MODEL."
    )


REPLIES: Final[Mapping[type[Request], type[AnyReply]]] = {
    ChatRequest: Reply,
    EmbedRequest: Vectors,
    RerankRequest: Ranking,
}
"""Type of reply for each type of request."""


class RecordedClient:
    """Answers from a recording; a missing task is a bad request."""

    def __init__(self, name: str, recording: Recording) -> None:
        self._name = name
        self._recording = recording
        self._tally = ClientTally()

    async def call(self, call: Call) -> Received:
        """Return the recorded answer.

        Raises:
            BadRequest: The recording has none.
        """
        with self._tally.attempt():
            recorded_reply = self._recording.find(call.task)
            if recorded_reply is None:
                task = call.task
                raise BadRequest(
                    f"{self._name} holds no answer to {task.stage} {task.key} "
                    f"(replicate {task.replicate}); request it from a model."
                )
            form, body = recorded_reply
            self._tally.bytes_received += len(body)
            reply = decode_reply(form, body)
            if not isinstance(reply, REPLIES[type(call.request)]):
                raise BadRequest(
                    f"What {self._name} holds for {call.task.stage} "
                    f"{call.task.key} is not a reply of that kind; name a run "
                    "with the same requests, since a file of recordings has "
                    "texts only."
                )
            return Received(body=body, form=form, reply=reply)

    def statistics(self) -> ClientStatistics:
        """Return the client's figures."""
        return self._tally.statistics()

    async def close(self) -> None:
        """Release the recording."""
        self._recording.close()


def open_recorded(name: str, options: ClientOptions) -> RecordedClient:
    """Open the client for `recorded:NAME`, where NAME is a file or a run.

    Raises:
        DatasetError: A line of the file is invalid.
        StoreError: No run has that name, or its log cannot be read.
        UsageError: Several models answered, and none of them is named.
    """
    source, _, model = name.partition("#")
    path = Path(source)
    if path.is_file() or path.suffix == ".jsonl":
        return RecordedClient(name, RecordedFile(path, model or None))
    log = resolve(options.runs_dir, source).log
    return RecordedClient(name, RecordedRun(log, source, model or None))
