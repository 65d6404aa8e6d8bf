"""Asks for computed results in a child process, and caches them.

What needs a job's code, such as a comparison or a partial scorecard, is not computed
here: the monitor imports neither jobs nor `runner`. A child process does it, through
the entry that `runner.compute` declares: one JSON object as the request, lines of JSON
as the response, of which the last ends it.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections import OrderedDict
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar

from store.database import open_reader
from store.runs import RunFolder
from store.tables import last_seq

T = TypeVar("T")

Record: TypeAlias = dict[str, Any]

ENTRY = ("-P", "-m", "runner.compute")
"""How this Python starts the entry; `-P`: a folder called runner where the monitor was
started is not imported."""
_OUTPUT = 32 * 2**20
"""Bytes that a child may print: a scorecard has some hundred kilobytes."""
_STDERR_BYTES = 16 * 2**10
"""Bytes kept of what it says to people: the last of them has the reason."""
_CHUNK = 64 * 2**10


class CommandFailed(Exception):
    """A child gave no answer; the message is one sentence with the next step."""


class CommandRunner(Protocol):
    """Whom to ask: a process, or a test's answers."""

    async def records(self, *arguments: str) -> list[Record]:
        """What `siftlog ARGUMENTS` prints, a record for each line.

        One question at a time: a second one waits. Cancelling it ends the process.

        Raises:
            CommandFailed: there is no answer; the message says why.
        """
        ...

    def close(self) -> None:
        """End what is running."""
        ...


class ChildProcess:
    """Runs the command; owns one process at most."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._process: Process | None = None
        self._closings = 0

    async def records(self, *arguments: str) -> list[Record]:
        """What `siftlog ARGUMENTS` prints, a record for each line.

        Raises:
            CommandFailed: there is no answer; the message says why.
        """
        async with self._turn:
            request = {"command": arguments[0], "arguments": arguments[1:]}
            words = (sys.executable, *ENTRY, json.dumps(request))
            closings, self._process = self._closings, None
            try:
                process = await _whole(self._start(words))
                if closings != self._closings:
                    process.kill()  # it ran before there was anything to be closed
                printed, stderr = await _read_output(process)
            except OSError as error:
                raise CommandFailed(
                    f"siftlog {arguments[0]} could not be started ({error.strerror}): "
                    "run it yourself"
                ) from error
            except _TooMuch as error:
                raise CommandFailed(
                    f"siftlog {arguments[0]} printed more than {_OUTPUT:,} bytes: run "
                    "it yourself, into a file"
                ) from error
            finally:
                await _whole(self._end())
            return _records(arguments[0], process.returncode, printed, stderr)

    async def _start(self, words: Sequence[str]) -> Process:
        self._process = await asyncio.create_subprocess_exec(
            *words, stdin=DEVNULL, stdout=PIPE, stderr=PIPE
        )
        return self._process

    async def _end(self) -> None:
        """End it if it runs, and wait until it is gone."""
        if self._process is None:
            return  # it could not be started
        if self._process.returncode is None:
            self._process.kill()
        # reads what is left in the pipes: they are closed only when they are empty
        await self._process.communicate()

    def close(self) -> None:
        """End what is running; whoever waits for it hears that it failed."""
        self._closings += 1
        if self._process is not None and self._process.returncode is None:
            self._process.kill()


class _TooMuch(Exception):
    """More was printed than is kept."""


async def _read_output(process: Process) -> tuple[bytes, bytes]:
    """All that was printed, and the last of what was said, at the process's end."""
    try:
        async with asyncio.TaskGroup() as both:
            printed = both.create_task(_all(process.stdout))
            stderr = both.create_task(_last(process.stderr))
    except* _TooMuch as errors:
        raise _TooMuch from errors
    await process.wait()
    return printed.result(), stderr.result()


async def _all(stream: asyncio.StreamReader | None) -> bytes:
    buffer = bytearray()
    while stream is not None and (chunk := await stream.read(_CHUNK)):
        buffer += chunk
        if len(buffer) > _OUTPUT:
            raise _TooMuch
    return bytes(buffer)


async def _last(stream: asyncio.StreamReader | None) -> bytes:
    tail = b""
    while stream is not None and (chunk := await stream.read(_CHUNK)):
        tail = (tail + chunk)[-_STDERR_BYTES:]
    return tail


async def _whole(work: Coroutine[object, object, T]) -> T:
    """Wait for the end of *work*; who is cancelled meanwhile is so after it.

    A start that is broken off leaves a process that runs and that nobody knows of.
    """
    task = asyncio.get_running_loop().create_task(work)
    cancelled = None
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is None:
        return task.result()
    if not task.cancelled():
        task.exception()  # nobody else looks at it
    raise cancelled


def _records(
    command: str, code: int | None, printed: bytes, stderr: bytes
) -> list[Record]:
    """The records of a complete response."""
    if code:
        raise CommandFailed(_reason(command, code, stderr.decode(errors="replace")))
    try:
        *records, end = (json.loads(line) for line in printed.splitlines())
        error = end["error"]
    except (ValueError, TypeError, KeyError):
        records, error = [None], ""
    if error:
        raise CommandFailed(error)
    if not all(isinstance(record, dict) for record in records):
        raise CommandFailed(f"siftlog {command} printed no records: run it yourself")
    return records


def _reason(command: str, code: int, stderr: str) -> str:
    """Why a child ended before its response did: the last line that it wrote."""
    if stderr := stderr.strip():
        return stderr.rpartition("\n")[2].removesuffix(".")
    exit_status = f"signal {-code}" if code < 0 else f"code {code}"
    return (
        f"siftlog {command} ended with {exit_status} and printed "
        "nothing: run it yourself"
    )


MAX_ANSWERS = 16
"""Answers held: as many as a person may go to and fro between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogAt:
    """A log as far as it was written; equal ones hold the same."""

    run_id: str
    file: tuple[int, int]  #: device and inode: another log may come to stand there
    seq: int


LogPositions: TypeAlias = tuple[LogAt, ...]


class CommandAnswers:
    """Answers by what was asked and what the logs held; the last used are kept.

    Pure: what is asked, and of which logs, is given.
    """

    def __init__(self, max_answers: int = MAX_ANSWERS) -> None:
        self._max_answers = max_answers
        self._answers: OrderedDict[tuple[tuple[str, ...], LogPositions], list[Record]]
        self._answers = OrderedDict()

    def get(self, arguments: Sequence[str], logs: LogPositions) -> list[Record] | None:
        """What was answered; None: nobody has asked this yet, or it is forgotten."""
        key = (tuple(arguments), logs)
        if key not in self._answers:
            return None
        self._answers.move_to_end(key)
        return self._answers[key]

    def put(
        self, arguments: Sequence[str], logs: LogPositions, records: list[Record]
    ) -> None:
        """Keep an answer."""
        key = (tuple(arguments), logs)
        self._answers[key] = records
        self._answers.move_to_end(key)
        while len(self._answers) > self._max_answers:
            self._answers.popitem(last=False)


def log_at(folder: RunFolder) -> LogAt:
    """How far a run's log is written now.

    Raises:
        StoreError: it cannot be opened.
        sqlite3.DatabaseError: it cannot be read.
    """
    with open_reader(folder.log) as reader:
        file_stat = os.stat(folder.log)  # noqa: PTH116 - its numbers, not the path
        return LogAt(
            run_id=folder.run_id,
            file=(file_stat.st_dev, file_stat.st_ino),
            seq=last_seq(reader),
        )
