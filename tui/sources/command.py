"""Requests computed results from a child process, and caches them.

Results that need a job's code, such as a comparison or a partial scorecard, are not
computed here: the monitor imports neither jobs nor `runner`. A child process computes
them through `runner.compute`: the request is one JSON object, the response lines of
JSON, of which the last one ends it.
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
from store.tables import visible_seq

T = TypeVar("T")

Record: TypeAlias = dict[str, Any]

ENTRY = ("-P", "-m", "runner.compute")
"""Arguments of Python for the child; `-P`: do not import a folder named runner in the
current directory."""
_OUTPUT = 32 * 2**20
"""Maximum output of a child in bytes: a scorecard has some hundred kilobytes."""
_STDERR_BYTES = 16 * 2**10
"""Bytes kept of its messages: the last line has the reason."""
_CHUNK = 64 * 2**10


class CommandFailed(Exception):
    """A child gave no answer; the message is one sentence with the next step."""


class CommandRunner(Protocol):
    """Runs commands: in a process, or with a test's answers."""

    async def records(self, *arguments: str) -> list[Record]:
        """Return the output of `siftlog ARGUMENTS`, a record per line.

        Requests run one at a time. Cancelling one ends its process.

        Raises:
            CommandFailed: there is no answer; the message says why.
        """
        ...

    def close(self) -> None:
        """Stop the running process."""
        ...


class ChildProcess:
    """Runs commands in at most one process."""

    def __init__(self) -> None:
        self._turn = asyncio.Lock()
        self._process: Process | None = None
        self._closings = 0

    async def records(self, *arguments: str) -> list[Record]:
        """Return the output of `siftlog ARGUMENTS`, a record per line.

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
                    process.kill()  # closed while it was starting
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
        """Kill the process if it runs, and wait for its end."""
        if self._process is None:
            return  # it could not be started
        if self._process.returncode is None:
            self._process.kill()
        # drains the pipes: they are closed only when they are empty
        await self._process.communicate()

    def close(self) -> None:
        """Stop the running process; its caller gets an error."""
        self._closings += 1
        if self._process is not None and self._process.returncode is None:
            self._process.kill()


class _TooMuch(Exception):
    """The output is larger than the limit."""


async def _read_output(process: Process) -> tuple[bytes, bytes]:
    """Return the output, and the end of stderr, when the process ends."""
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
    """Wait for the end of *work*, even if cancelled meanwhile.

    An interrupted start would leave an unknown running process.
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
        task.exception()  # mark it as retrieved
    raise cancelled


def _records(
    command: str, code: int | None, printed: bytes, stderr: bytes
) -> list[Record]:
    """Parse the records of a complete response."""
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
    """Return why a child ended before its response: the last line of stderr."""
    if stderr := stderr.strip():
        return stderr.rpartition("\n")[2].removesuffix(".")
    exit_status = f"signal {-code}" if code < 0 else f"code {code}"
    return (
        f"siftlog {command} ended with {exit_status} and printed "
        "nothing: run it yourself"
    )


MAX_ANSWERS = 16
"""Maximum cached answers: enough for going back and forth between views."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogAt:
    """A log up to an event; equal values mean equal content."""

    run_id: str
    file: tuple[int, int]  #: device and inode: another log may replace it
    seq: int


LogPositions: TypeAlias = tuple[LogAt, ...]


class CommandAnswers:
    """Cache of answers by arguments and log positions; the last used are kept.

    Pure: arguments and log positions are given.
    """

    def __init__(self, max_answers: int = MAX_ANSWERS) -> None:
        self._max_answers = max_answers
        self._answers: OrderedDict[tuple[tuple[str, ...], LogPositions], list[Record]]
        self._answers = OrderedDict()

    def get(self, arguments: Sequence[str], logs: LogPositions) -> list[Record] | None:
        """Return a cached answer, or None."""
        key = (tuple(arguments), logs)
        if key not in self._answers:
            return None
        self._answers.move_to_end(key)
        return self._answers[key]

    def put(
        self, arguments: Sequence[str], logs: LogPositions, records: list[Record]
    ) -> None:
        """Store an answer."""
        key = (tuple(arguments), logs)
        self._answers[key] = records
        self._answers.move_to_end(key)
        while len(self._answers) > self._max_answers:
            self._answers.popitem(last=False)


def log_at(folder: RunFolder) -> LogAt:
    """Return the current position of a run's log.

    Raises:
        StoreError: it cannot be opened.
        sqlite3.DatabaseError: it cannot be read.
    """
    with open_reader(folder.log) as reader:
        file_stat = os.stat(folder.log)  # noqa: PTH116 - its numbers, not the path
        return LogAt(
            run_id=folder.run_id,
            file=(file_stat.st_dev, file_stat.st_ino),
            seq=visible_seq(reader),
        )
