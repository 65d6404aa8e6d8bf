"""Reads a large file in a process of its own, while this one writes.

Either takes about half of an import's time, so two cores import nearly twice as fast
as one. What was read is handed over in batches through a pipe: it holds less than one,
so the reader is never more than a batch ahead, and ends when nobody reads any more.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator, Mapping
from contextlib import closing
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TypeAlias

from jobs.review_benchmark.database.formats.choice import read
from jobs.review_benchmark.database.formats.form import Form
from jobs.review_benchmark.database.paper import Found
from runner.errors import DatasetError

LEAST_BYTES = 1 << 22
"""Smaller files are read before another process has begun: it takes half a second."""

BATCH = 500

_Message: TypeAlias = tuple[Found, ...] | DatasetError
"""Records, none of them at the end of the file; or why there are no more."""


def read_file(path: Path, form: Form, mapped: Mapping[str, str]) -> Iterator[Found]:
    """The records of a file; those of a large one are read in a process of its own.

    Args:
        path: the file.
        form: its format.
        mapped: columns of a table by their names there, each with its name here.

    Raises:
        DatasetError: the file is not to be read in that format.
    """
    if not path.is_file() or path.stat().st_size < LEAST_BYTES:
        return read(path, form, mapped)
    return _ahead(path, form, mapped)


def _ahead(path: Path, form: Form, mapped: Mapping[str, str]) -> Iterator[Found]:
    # a copy of this process would share its connection to the database
    context = get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    reader = context.Process(
        target=_send, args=(sender, path, form, dict(mapped)), daemon=True
    )
    reader.start()
    sender.close()
    try:
        with closing(receiver):
            while message := _received(receiver, path):
                yield from message
    finally:
        reader.join()


def _received(receiver: Connection, path: Path) -> tuple[Found, ...]:
    try:
        message: _Message = receiver.recv()
    except EOFError as error:
        raise DatasetError(
            f"{path.name}: the process that read it was ended (import it again)."
        ) from error
    if isinstance(message, DatasetError):
        raise message
    return message


def _send(
    sender: Connection, path: Path, form: Form, mapped: Mapping[str, str]
) -> None:
    """What the other process does."""
    # an interrupt is for the process that writes; without it there is no reader here
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        for message in _messages(path, form, mapped):
            sender.send(message)
    except BrokenPipeError:
        return


def _messages(path: Path, form: Form, mapped: Mapping[str, str]) -> Iterator[_Message]:
    try:
        found = read(path, form, mapped)
        while batch := tuple(islice(found, BATCH)):
            yield batch
        yield ()
    except DatasetError as error:
        yield error
