"""Reads the commands sent to a run, with outcomes, and previews further ones."""

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
    """All commands sent to a run, and whether a process can answer them."""

    records: tuple[CommandRecord, ...]  #: in the order of sending
    heartbeat_us: int | None
    is_alive: bool  #: a process of this machine holds the log


class RequestSource(Protocol):
    """Source of commands: a run's folder, or a test's list.

    Raises:
        StoreError: the log cannot be read, or a command names an unknown stage or
            model.
        sqlite3.Error: the log cannot be read.
        OSError: the file of requests cannot be read.
    """

    async def poll(self) -> CommandRequests:
        """Return the current commands."""
        ...

    async def preview(self, kind: str, payload: Payload) -> CommandPreview:
        """Return the effect of a command."""
        ...

    def close(self) -> None:
        """Close the log."""
        ...


class FolderRequests:
    """The commands of a run's folder, read in a thread."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._reading = LogConnection(folder)

    async def poll(self) -> CommandRequests:
        """Return the current commands."""
        return await self._reading.ask(_requests, self._folder)

    async def preview(self, kind: str, payload: Payload) -> CommandPreview:
        """Return the effect of a command."""
        return await self._reading.ask(preview_command, kind, payload)

    def close(self) -> None:
        """Close the log."""
        self._reading.close()


def _requests(conn: sqlite3.Connection, folder: RunFolder) -> CommandRequests:
    # read first, so that later answers are found together with their commands
    commands = CommandTail(folder.control).read()
    heartbeat = status(conn).heartbeat
    return CommandRequests(
        records=tuple(command_log(conn, commands)),
        heartbeat_us=None if heartbeat is None else heartbeat.at_us,
        is_alive=folder.is_alive(),
    )
