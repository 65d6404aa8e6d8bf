"""Computes the job's current headline metrics in a child process.

Only the job can compute a scorecard, and the monitor imports no jobs.
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
from tui.sources.result import Headline, HeadlineMetric

EVERY_S = 60.0
"""Minimum seconds between two automatic computations."""
REST = 20
"""Minimum time between two starts, as a multiple of the computation's duration."""


class HeadlineSource(Protocol):
    """Source of headlines: a child process, or a test."""

    async def read(self) -> Headline:
        """Return the current headline; may take minutes."""
        ...

    def close(self) -> None:
        """Stop a running computation."""
        ...


class ChildHeadline:
    """Computes it with `siftlog score`, without recording; caches the result."""

    def __init__(
        self, folder: RunFolder, child: CommandRunner, answers: CommandAnswers
    ) -> None:
        self._folder = folder
        self._child = child
        self._answers = answers

    @property
    def command(self) -> tuple[str, ...]:
        """The arguments of the command."""
        path = str(self._folder.path.absolute())
        return ("score", path, "--json", "--no-record", "--no-report")

    async def read(self) -> Headline:
        """Return the current headline.

        Raises:
            CommandFailed: it cannot be scored; the message says why.
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
        """Stop a running computation."""
        self._child.close()


def headline_of(records: list[Record]) -> Headline:
    """Parse the output of `siftlog score --json`.

    Raises:
        CommandFailed: the output is invalid.
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
    """Times of requests and results; each step returns a new value."""

    headline: Headline | None = None
    began_s: float | None = None  #: time of the last request, on a monotonic clock
    ended_s: float | None = None  #: time of its answer; None: running
    received_s: float | None = None  #: time of the headline
    failure: str = ""  #: error of the last request

    @property
    def is_busy(self) -> bool:
        """Whether a computation is running."""
        return self.began_s is not None and self.ended_s is None

    def is_due(self, now_s: float, ended: int) -> bool:
        """Return whether to compute again: after more tasks have ended and some time.

        Long computations run less often: they use at most a twentieth of a core.

        Args:
            now_s: the present, on a monotonic clock.
            ended: tasks that have ended.
        """
        if self.is_busy or self.failure:
            return False
        if self.headline is None or self.began_s is None or self.ended_s is None:
            return True
        rest = max(EVERY_S, REST * (self.ended_s - self.began_s))
        return self.headline.ended != ended and now_s - self.began_s >= rest

    def started(self, now_s: float) -> HeadlineProgress:
        """Return the state after a start."""
        return replace(self, began_s=now_s, ended_s=None, failure="")

    def answered(self, now_s: float, headline: Headline) -> HeadlineProgress:
        """Return the state after a result."""
        return replace(self, headline=headline, ended_s=now_s, received_s=now_s)

    def failed(self, now_s: float, failure: str) -> HeadlineProgress:
        """Return the state after a failure; the previous headline stays."""
        return replace(self, ended_s=now_s, failure=failure)
