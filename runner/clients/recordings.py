"""Where recorded answers lie: a file of them, or the log of another run.

A file holds JSON objects, one a line or spread over lines: `key` and `response`, and
where they matter `stage`, `model`, `replicate` and `finish_reason`. A run gives its
replies byte for byte, as they were received.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from runner.errors import DatasetError, UsageError
from runner.json_entries import BOM, entries_of
from runner.task import Task
from runner.wire import OPENAI_CHAT, UNREADABLE, encode_reply
from store.database import open_reader
from store.printable import printable
from store.read.tasks import tasks
from store.tables import reply

NAMES: Final = 200
"""Characters of an entry's keys that an error shows."""

PAGE: Final = 1000
"""Tasks read from a log at a time."""


class Recording(Protocol):
    """Where recorded answers lie."""

    def find(self, task: Task) -> tuple[str, bytes] | None:
        """Form and body of the answer to *task*, whatever its model."""
        ...

    def close(self) -> None:
        """Release the file."""
        ...


class _Line(msgspec.Struct):
    key: str
    response: str | dict[str, Any] | list[Any]  #: an object stands for its JSON text
    stage: str | None = None
    model: str | None = None
    replicate: int = 1
    finish_reason: str = "stop"

    @property
    def text(self) -> str:
        """The reply."""
        if isinstance(self.response, str):
            return self.response
        return msgspec.json.encode(self.response).decode()


@dataclass(frozen=True, slots=True)
class _Place:
    stage: str | None  #: None: the file does not say, any stage will do
    key: str
    replicate: int


class RecordedFile:
    """A file of JSON objects; only their places are held in memory.

    Raises:
        DatasetError: A line cannot be read, or answers what another one answers.
        UsageError: Several models answered, and none or another one is asked for.
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
            self._places = self._index(model)
        except BaseException:
            self._file.close()
            raise

    def find(self, task: Task) -> tuple[str, bytes] | None:
        """The answer to *task* in the form of chat completions."""
        for stage in (task.stage, None):
            place = _Place(stage, task.key, task.replicate)
            if (offset := self._places.get(place)) is not None:
                start, size = offset
                self._file.seek(start)
                line = self._decoder.decode(self._file.read(size))
                return OPENAI_CHAT, encode_reply(line.text, line.finish_reason)
        return None

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def _index(self, model: str | None) -> dict[_Place, tuple[int, int]]:
        """Offset and size of each answer of the chosen model."""
        by_model: dict[str | None, dict[_Place, tuple[int, int]]] = {}
        for number, start, raw in entries_of(self._file, str(self._path)):
            data = raw.removeprefix(BOM)
            line = self._line(number, data)
            place = _Place(line.stage, line.key, line.replicate)
            places = by_model.setdefault(line.model, {})
            if place in places:
                raise DatasetError(
                    f"{self._path} line {number}: {line.key} was answered "
                    "before; keep one line for each answer."
                )
            places[place] = (start + len(raw) - len(data), len(data))
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
        """What an entry should hold, and what this one holds."""
        try:
            found = list(msgspec.json.decode(data, type=dict[str, Any]))
        except UNREADABLE:
            return "a line holds a JSON object with key and response"
        names = printable(", ".join(found)[:NAMES])
        return f"an object with key and response is expected, and this has {names}"


class RecordedRun:
    """An earlier run; only the numbers of its answered tasks are held in memory.

    Raises:
        StoreError: The log cannot be read.
        UsageError: Several models answered, and none or another one is asked for.
    """

    def __init__(self, log: Path, name: str, model: str | None) -> None:
        self._reader = open_reader(log)
        try:
            self._tasks = self._index(name, model)
        except BaseException:
            self._reader.close()
            raise

    def find(self, task: Task) -> tuple[str, bytes] | None:
        """The reply that counts for the same task of that run."""
        number = self._tasks.get(_Place(task.stage, task.key, task.replicate))
        stored = None if number is None else reply(self._reader, number)
        return None if stored is None else (stored.answered.form, stored.body)

    def close(self) -> None:
        """Close the log."""
        self._reader.close()

    def _index(self, name: str, model: str | None) -> dict[_Place, int]:
        by_model: dict[str | None, dict[_Place, int]] = {}
        after = 0
        while rows := tasks(self._reader, after=after, limit=PAGE):
            after = rows[-1].task
            for row in rows:
                if row.reply_seq is not None:
                    place = _Place(row.stage, row.key, row.replicate)
                    by_model.setdefault(row.model, {})[place] = row.task
        return by_model[chosen_model(name, by_model, model)]


def chosen_model(
    name: str, models: Iterable[str | None], model: str | None
) -> str | None:
    """Which of a recording's models answers; raise `UsageError` where that is open."""
    known = list(models)
    if model is None and len(known) == 1:
        return known[0]
    if model in known:
        return model
    named = ", ".join(sorted(str(each) for each in known)) or "no model"
    raise UsageError(
        f"{name} holds answers of {named}; name one as recorded:{name}#MODEL."
    )
