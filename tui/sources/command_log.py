"""Reads the commands sent to a run: what became of each, what one more would do."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Protocol

from store.control import (
    CommandPreview,
    CommandRecord,
    CommandTail,
    Payload,
    command_log,
    preview_command,
)
from store.read.status import status
from store.runs import RunFolder
from tui.sources.connection import LogConnection


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRequests:
    """All requests to a run, and whether anybody is there to answer them."""

    records: tuple[CommandRecord, ...]  #: in the order in which they were made
    heartbeat_us: int | None
    is_alive: bool  #: a process of this machine holds the log


class RequestSource(Protocol):
    """Where requests are read: a run's folder, or a test's list.

    Raises:
        StoreError: the log cannot be read, or a request names what is not there.
        sqlite3.Error: likewise.
        OSError: the file of requests cannot be read.
    """

    async def poll(self) -> CommandRequests:
        """The requests as they are now."""
        ...

    async def preview(self, kind: str, payload: Payload) -> CommandPreview:
        """What a request would come to."""
        ...

    def close(self) -> None:
        """Let go of the log."""
        ...


class FolderRequests:
    """The requests of a run's folder, read in a thread."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._reading = LogConnection(folder)

    async def poll(self) -> CommandRequests:
        """The requests as they are now."""
        return await self._reading.ask(_requests, self._folder)

    async def preview(self, kind: str, payload: Payload) -> CommandPreview:
        """What a request would come to."""
        return await self._reading.ask(preview_command, kind, payload)

    def close(self) -> None:
        """Let go of the log."""
        self._reading.close()


def _requests(conn: sqlite3.Connection, folder: RunFolder) -> CommandRequests:
    # asked first: an answer that comes meanwhile is then seen with its request
    commands = CommandTail(folder.control).read()
    heartbeat = status(conn).heartbeat
    return CommandRequests(
        records=tuple(command_log(conn, commands)),
        heartbeat_us=None if heartbeat is None else heartbeat.at_us,
        is_alive=folder.is_alive(),
    )
