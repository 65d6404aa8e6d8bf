"""What the Events screen reads: stretches of the log, its end, and one event whole."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Protocol

from store.event_query import EventQuery
from store.events import AttemptStarted, Recorded
from store.runs import RunFolder
from store.views import Found, Stretch, find_events, last_seq, phase
from tui.sources.reading import Reading
from tui.sources.task_texts import body_text
from tui.sources.tasks import Names, names_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Tip:
    """Where the log ends at a moment."""

    seq: int  #: its last event
    phase: str  #: kind of the last event that began or ended work
    is_alive: bool  #: a process of this machine holds the log


class EventSource(Protocol):
    """Where the Events screen reads: a log, or a test's list.

    Whoever cancels a question thereby stops it.
    """

    @property
    def run_id(self) -> str:
        """The run's id."""
        ...

    async def tip(self) -> Tip:
        """Where the log ends now.

        Raises:
            StoreError: the log is gone, or is another file by now.
        """
        ...

    async def find(
        self, query: EventQuery, stretch: Stretch, *, limit: int, is_backward: bool
    ) -> Found:
        """The next events of a stretch that a filter lets through."""
        ...

    async def names(self) -> Names:
        """What filters can name."""
        ...

    async def body(self, event: Recorded) -> str:
        """The payload beside an event, as a person reads it; it may hold anything."""
        ...

    def close(self) -> None:
        """Let go of the log."""
        ...


class LogEvents:
    """The events of a run's log."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._quick = Reading(folder)
        self._slow = Reading(folder)

    @property
    def run_id(self) -> str:
        """The run's id."""
        return self._folder.run_id

    async def tip(self) -> Tip:
        """Where the log ends now."""
        # asked before reading: what a dying writer committed last is not missed
        is_alive = self._folder.is_alive()
        seq, phase_ = await self._quick.ask(_end)
        return Tip(seq=seq, phase=phase_, is_alive=is_alive)

    async def find(
        self, query: EventQuery, stretch: Stretch, *, limit: int, is_backward: bool
    ) -> Found:
        """The next events of a stretch that a filter lets through."""
        return await self._slow.ask(
            find_events, query, stretch, limit=limit, is_backward=is_backward
        )

    async def names(self) -> Names:
        """What filters can name."""
        return await self._quick.ask(names_of)

    async def body(self, event: Recorded) -> str:
        """The payload beside an event, as a person reads it."""
        is_request = isinstance(event.event, AttemptStarted)
        return await self._quick.ask(body_text, event.seq, is_request=is_request)

    def close(self) -> None:
        """Let go of the log."""
        self._quick.close()
        self._slow.close()


def _end(conn: sqlite3.Connection) -> tuple[int, str]:
    return last_seq(conn), phase(conn)
