"""Records labels: one session of one author writes one label log.

A log has one writer, so two sessions never wait for each other and cannot overwrite
anything: a session continues the author's first log that is free, or creates another.
Every call returns when its event is durable, and survives kill -9 and power loss.

    async with await LabelWriter.open(folder, author="ann", ...) as writer:
        label = await writer.record("paper-7", "include", visible=["title", "text"])
        await writer.withdraw(label)
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from store.clock import Clock
from store.database import is_held
from store.errors import (
    EventsLost,
    LogBusy,
    LogClosed,
    NotALog,
    RunExists,
    StoreError,
)
from store.events import Event
from store.filesystem import identity_of, make_folder
from store.labels.events import (
    Adjudicated,
    ItemDrawn,
    LabelRecorded,
    LabelsStarted,
    LabelWithdrawn,
    ScreeningPlanned,
    ScreeningStopped,
)
from store.labels.folder import author_of
from store.log.sqlite import SqliteLog

MOST_LOGS: Final = 1000
"""Logs of one author in a folder; reached only by a program that never closes one."""

_CONFIG: Final = hashlib.sha256(b"siftlog labels").digest()
_NOT_IN_NAMES: Final = re.compile(r"[^\w-]+")
_STEM_LENGTH: Final = 60
_AUTHOR_LENGTH: Final = 100


def check_author(author: str) -> str:
    """Return the name of an author without outer blanks.

    Raises:
        StoreError: it is empty, too long, or holds control characters.
    """
    name = author.strip()
    if not name or len(name) > _AUTHOR_LENGTH or not name.isprintable():
        raise StoreError(
            f"{author!r} is no name of an author: give 1 to {_AUTHOR_LENGTH} printable "
            "characters with --author or SIFTLOG_AUTHOR"
        )
    return name


class LabelWriter:
    """A session of an author; `open` it, and close it to let another continue."""

    def __init__(self, log: SqliteLog, path: Path, author: str) -> None:
        self._log = log
        self._identity = identity_of(path)
        self.path = path  #: the file that it writes
        self.author = author

    @classmethod
    async def open(
        cls,
        folder: Path,
        *,
        author: str,
        clock: Clock,
        owner: str,
        siftlog_version: str,
    ) -> Self:
        """Open the author's first label log in *folder* that is free, or a new one.

        Args:
            folder: of label logs; it is created if it is missing.
            author: name of the person, as `check_author` accepts it.
            clock: supplies the time of every event.
            owner: who writes, for messages: "host:process".
            siftlog_version: recorded with a new log.

        Raises:
            EventsLost: acknowledged labels are missing from a log of the author.
            StoreError: the folder cannot be written, or a log of the author is damaged.
        """
        name = check_author(author)
        try:
            make_folder(folder)
        except OSError as error:
            raise StoreError(
                f"{folder} cannot be created ({error.strerror}): name a folder for "
                "labels that can be written"
            ) from error
        for path in _candidates(folder, name):
            if is_held(path.with_suffix(".lock")):
                continue
            try:
                if author_of(path) not in {None, name}:
                    continue
                log = await _opened(path, clock=clock, owner=owner)
            except (LogBusy, NotALog, RunExists):
                continue  # of another session, or another program
            except EventsLost as error:
                raise EventsLost(
                    f"{path} has lost labels that were acknowledged: see 'siftlog "
                    "verify', then restore it from a copy, or move it and its "
                    ".heads file out of the folder to go on without them"
                ) from error
            try:
                if await _claim(log, name, siftlog_version):
                    return cls(log, path, name)
            except BaseException:
                await log.close()
                raise
            await log.close()
        raise StoreError(
            f"{folder} holds {MOST_LOGS} label logs of {name} that are in use: end "
            "other sessions"
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def record(
        self,
        item: str,
        value: str,
        *,
        field: str = "",
        reason: str = "",
        visible: Sequence[str] | None = None,
        run: str = "",
        run_task: int | None = None,
        text_sha256: str = "",
        reply_sha256: str = "",
        draw: str = "",
        probability: float | None = None,
        seconds: float | None = None,
        source: str = "",
    ) -> str:
        """Record a label; return its id once it is durable.

        The arguments are the fields of `store.labels.events.LabelRecorded`.

        Raises:
            LogClosed: the disk refused; labels acknowledged before are safe.
            Fenced: another writer has taken the log over.
        """
        (label,) = await self.record_all(
            [
                LabelRecorded(
                    author=self.author,
                    item=item,
                    field=field,
                    value=value,
                    reason=reason,
                    visible=None if visible is None else list(visible),
                    run=run,
                    run_task=run_task,
                    text_sha256=text_sha256,
                    reply_sha256=reply_sha256,
                    draw=draw,
                    probability=probability,
                    seconds=seconds,
                    source=source,
                )
            ]
        )
        return label

    async def withdraw(self, label: str, *, reason: str = "") -> str:
        """Withdraw a label or adjudication of this author; return the event's id.

        Args:
            label: id of the label. One of another author is not affected.
            reason: why, in a sentence.

        Raises:
            LogClosed: the disk refused.
            Fenced: another writer has taken the log over.
        """
        return await self._append(
            LabelWithdrawn(author=self.author, label=label, reason=reason)
        )

    async def adjudicate(
        self,
        item: str,
        value: str,
        *,
        considered: Sequence[str],
        field: str = "",
        reason: str = "",
        text_sha256: str = "",
        reply_sha256: str = "",
        run: str = "",
    ) -> str:
        """Record the final value of a field; return the event's id.

        The arguments are the fields of `store.labels.events.Adjudicated`.

        Raises:
            LogClosed: the disk refused.
            Fenced: another writer has taken the log over.
        """
        return await self._append(
            Adjudicated(
                author=self.author,
                item=item,
                field=field,
                value=value,
                reason=reason,
                considered=list(considered),
                text_sha256=text_sha256,
                reply_sha256=reply_sha256,
                run=run,
            )
        )

    async def drawn(self, *draws: ItemDrawn) -> list[str]:
        """Record draws as one unit, before any of the items is shown.

        Args:
            draws: events of this author.

        Returns:
            Their ids, for `record`.

        Raises:
            LogClosed: the disk refused; none of them was recorded.
            Fenced: another writer has taken the log over.
        """
        return await self._append_all(draws)

    async def screening(self, event: ScreeningPlanned | ScreeningStopped) -> str:
        """Record that screening to a stop began or stopped; return the event's id.

        Raises:
            LogClosed: the disk refused.
            Fenced: another writer has taken the log over.
        """
        return await self._append(event)

    async def record_all(self, labels: Sequence[LabelRecorded]) -> list[str]:
        """Record labels as one unit, all of them or none; return their ids.

        Args:
            labels: events of this author, or of others whose labels are imported.

        Raises:
            LogClosed: the disk refused; none of them was recorded.
            Fenced: another writer has taken the log over.
        """
        return await self._append_all(labels)

    async def close(self) -> None:
        """Release the log; the author's next session continues it."""
        await self._log.close()

    async def _append(self, event: Event) -> str:
        (event_id,) = await self._append_all([event])
        return event_id

    async def _append_all(self, events: Sequence[Event]) -> list[str]:
        """Append events as one unit; return their ids.

        SQLite would go on writing to a file that no longer has a name.
        """
        if not events:
            return []
        last = await self._log.append(*events)
        if identity_of(self.path) != self._identity:
            raise LogClosed(
                f"{self.path} was deleted, moved or replaced, and labels since then "
                "are not in it: restore the folder, then label again"
            )
        first = last - len(events) + 1
        return [f"{self._log.writer}:{seq}" for seq in range(first, last + 1)]


def _candidates(folder: Path, author: str) -> Iterator[Path]:
    """The files that may be the author's, in the order they are tried."""
    stem = _NOT_IN_NAMES.sub("_", author)[:_STEM_LENGTH]
    for number in range(1, MOST_LOGS + 1):
        yield folder / f"{stem}{'' if number == 1 else f'-{number}'}.db"


async def _opened(path: Path, *, clock: Clock, owner: str) -> SqliteLog:
    """Open a label log, or create it, also where a process died creating it.

    Raises:
        LogBusy: another session writes it.
        RunExists: another session has created it meanwhile, or it is another program's.
        StoreError: it cannot be written, or is damaged.
    """
    if not _is_new(path):
        try:
            return await SqliteLog.open(path, clock=clock, owner=owner)
        except NotALog:
            pass  # created by a process that died before its first table, or foreign
    return await SqliteLog.create(
        path,
        run_id=f"labels/{path.stem}",
        config_sha256=_CONFIG,
        clock=clock,
        owner=owner,
    )


async def _claim(log: SqliteLog, author: str, siftlog_version: str) -> bool:
    """Return whether an open log is the author's; a new one becomes it."""
    first = await log.events(limit=1)
    if not first:
        await log.append(LabelsStarted(author=author, siftlog_version=siftlog_version))
        return True
    return isinstance(first[0].event, LabelsStarted) and first[0].event.author == author


def _is_new(path: Path) -> bool:
    """Return whether a log is missing, or a process died before its first byte."""
    return not path.exists() or not path.stat().st_size
