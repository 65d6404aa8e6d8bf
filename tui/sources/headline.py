"""The job's own headline metrics so far, as a child process reckons them.

What a scorecard is only the job knows, and the monitor imports none.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace
from typing import Protocol

from store.runs import RunFolder
from tui.sources.command import (
    CommandAnswers,
    CommandFailed,
    CommandRunner,
    Record,
    log_at,
)

EVERY_S = 60.0
"""Seconds from one reckoning to the next that nobody asked for, at least."""
REST = 5
"""Times as long as it took."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadlineMetric:
    """A metric of one model with what tells how sure it is."""

    path: str
    model: str
    value: float | None  #: None: undefined
    n: int
    lo: float | None  #: None: it has no interval
    hi: float | None
    name: str = ""  #: what a reader calls it; empty: nobody named it


@dataclass(frozen=True, slots=True, kw_only=True)
class Headline:
    """What a run's answers come to, as far as it has them."""

    metrics: tuple[HeadlineMetric, ...]  #: the one it is judged by first
    level: float | None  #: of the intervals, such as 0.95; None: the job has none
    seq: int  #: the log's last event that was read
    ended: int  #: tasks that came to an end by then
    is_partial: bool  #: the run is unfinished


class HeadlineSource(Protocol):
    """Where headlines come from: a child process, or a test."""

    async def read(self) -> Headline:
        """The headline of the run as it stands; may take minutes."""
        ...

    def close(self) -> None:
        """Stop whatever is being reckoned."""
        ...


class ChildHeadline:
    """Has `siftlog score` reckon it, which records nothing; keeps what it said."""

    def __init__(
        self, folder: RunFolder, child: CommandRunner, answers: CommandAnswers
    ) -> None:
        self._folder = folder
        self._child = child
        self._answers = answers

    @property
    def command(self) -> tuple[str, ...]:
        """The words of the command that reckons it."""
        path = str(self._folder.path.absolute())
        return ("score", path, "--json", "--no-record", "--no-report")

    async def read(self) -> Headline:
        """The headline of the run as it stands.

        Raises:
            ChildFailed: it cannot be scored; the message says why.
            StoreError: the log cannot be opened.
            sqlite3.DatabaseError: it cannot be read.
        """
        logs = (await asyncio.to_thread(log_at, self._folder),)
        command = self.command
        records = self._answers.get(command, logs)
        if records is None:
            records = await self._child.records(*command)
            self._answers.put(command, logs, records)
        return headline_of(records)

    def close(self) -> None:
        """Stop whatever is being reckoned."""
        self._child.close()


def headline_of(records: list[Record]) -> Headline:
    """What `siftlog score --json` printed.

    Raises:
        ChildFailed: it printed something else.
    """
    try:
        (record,) = records
        return Headline(
            metrics=tuple(
                HeadlineMetric(
                    path=path,
                    name=model_record["metrics"][path].get("name", ""),
                    model=model,
                    **{name: model_record["metrics"][path][name] for name in _FIELDS},
                )
                for path in record["headlines"]
                for model, model_record in record["models"].items()
                if path in model_record["metrics"]
            ),
            level=record["settings"].get("level"),
            seq=record["seq"],
            ended=record["ended"],
            is_partial=record["partial"],
        )
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CommandFailed(
            "this monitor cannot read the output of siftlog score: reinstall both"
        ) from error


_FIELDS = ("value", "n", "lo", "hi")


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadlineProgress:
    """When a headline was asked for and came; a value for each step."""

    headline: Headline | None = None
    began_s: float | None = None  #: when the latest was asked for, by a steady clock
    ended_s: float | None = None  #: when its answer came; None: it is under way
    received_s: float | None = None  #: when the headline came
    failure: str = ""  #: why the latest gave none

    @property
    def is_busy(self) -> bool:
        """Whether a child reckons."""
        return self.began_s is not None and self.ended_s is None

    def is_due(self, now_s: float, seq: int) -> bool:
        """Whether to ask again unasked: something happened, and enough time passed.

        A child that takes long is asked the less often: its share of a processor stays
        below a fifth.
        """
        if self.is_busy or self.failure:
            return False
        if self.headline is None or self.began_s is None or self.ended_s is None:
            return True
        rest = max(EVERY_S, REST * (self.ended_s - self.began_s))
        return self.headline.seq != seq and now_s - self.began_s >= rest

    def started(self, now_s: float) -> HeadlineProgress:
        """A child begins."""
        return replace(self, began_s=now_s, ended_s=None, failure="")

    def answered(self, now_s: float, headline: Headline) -> HeadlineProgress:
        """It has come to an end."""
        return replace(self, headline=headline, ended_s=now_s, received_s=now_s)

    def failed(self, now_s: float, failure: str) -> HeadlineProgress:
        """It gave no answer; the one before stands."""
        return replace(self, ended_s=now_s, failure=failure)
