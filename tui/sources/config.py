"""Reads the configuration of a run from its log and folder."""

from __future__ import annotations

import sqlite3
import tomllib
from dataclasses import dataclass
from typing import Any, Protocol

from store.events import RunStarted
from store.read.status import run_started, status
from store.runs import RunFolder
from tui.sources.connection import LogConnection


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSetup:
    """The configuration of a run."""

    began: RunStarted
    planned: dict[str, int]  #: tasks by stage
    config: dict[str, Any] | None  #: content of `run.toml`; None: unreadable


class ConfigSource(Protocol):
    """Source of a configuration: a folder, or a test."""

    @property
    def run_id(self) -> str:
        """The run's id."""
        ...

    async def read(self) -> RunSetup:
        """Return the run's configuration."""
        ...

    def close(self) -> None:
        """Close the log."""
        ...


class FolderConfig:
    """Reads a run's log and its `run.toml`."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._reading = LogConnection(folder)

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self._folder.run_id

    async def read(self) -> RunSetup:
        """Return the run's configuration.

        Raises:
            StoreError: the log cannot be read.
            sqlite3.DatabaseError: the log cannot be read.
        """
        return await self._reading.ask(self._setup)

    def close(self) -> None:
        """Close the log."""
        self._reading.close()

    def _setup(self, conn: sqlite3.Connection) -> RunSetup:
        planned: dict[str, int] = {}
        for queue in status(conn).queues:
            planned[queue.stage] = planned.get(queue.stage, 0) + sum(
                queue.states.values()
            )
        return RunSetup(began=run_started(conn), planned=planned, config=self._config())

    def _config(self) -> dict[str, Any] | None:
        try:
            return tomllib.loads(self._folder.config.read_text("utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
            return None
