"""Lists the runs of a folder.

A refresh costs nearly the same for ten runs and a thousand. The folder is read again if
it has changed; live runs are checked each time, and others in turn, so that a resumed
one is noticed after a while. Unread runs are read a few at a time, the latest first.
"""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypeAlias

from store.clock import Clock
from store.errors import StoreError
from store.read.live import is_working
from store.runs import RunFolder
from tui.sources.run_snapshot import RunSnapshot, RunSource, SnapshotOrProblem

BATCH = 4
"""Maximum runs opened by one refresh: each takes one to two ms."""
ROUND = 60
"""Runs at rest whose files one refresh checks for changes."""

Stamp: TypeAlias = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRun:
    """One run of the list."""

    folder: RunFolder
    snapshot: SnapshotOrProblem | None  #: None: not read yet


class RunListSource(Protocol):
    """Source of lists of runs: a folder, or a test."""

    @property
    def runs_dir(self) -> Path:
        """The folder."""
        ...

    def poll(self) -> list[ListedRun]:
        """Return its runs, the latest first."""
        ...


@dataclass(slots=True, kw_only=True)
class _RunEntry:
    """State of one folder."""

    folder: RunFolder
    stamp: Stamp | None = None  #: stamp of its files at the last check; None: no log
    read: Stamp | None = None  #: stamp of its files at the last read
    snapshot: SnapshotOrProblem | None = None
    is_at_rest: bool = False  #: no process works on it, as expected


class FolderRuns:
    """Lists the runs of one folder."""

    def __init__(self, runs_dir: Path, clock: Clock) -> None:
        self.runs_dir = runs_dir
        self._clock = clock
        self._changed: int | None = None  # modification time of the folder
        self._entries: dict[str, _RunEntry] = {}
        self._turn = 0

    def poll(self) -> list[ListedRun]:
        """Return its runs, the latest first."""
        self._scan()
        for entry in self._due():
            entry.stamp = _stamp(entry.folder)
        runs = [entry for entry in self._entries.values() if entry.stamp]
        runs.sort(key=lambda k: (max(k.stamp or ()), k.folder.run_id), reverse=True)
        unread = [entry for entry in runs if entry.read != entry.stamp]
        # unread runs come first, or a busy folder would hide them forever
        for entry in sorted(unread, key=lambda k: k.snapshot is not None)[:BATCH]:
            self._read(entry)
        return [ListedRun(folder=k.folder, snapshot=self._present(k)) for k in runs]

    def _scan(self) -> None:
        """Add new folders, and remove missing ones."""
        try:
            changed = os.stat(self.runs_dir).st_mtime_ns  # noqa: PTH116 - as below
        except OSError:
            self._entries, self._changed = {}, None
            return
        if changed == self._changed:
            return
        try:
            with os.scandir(self.runs_dir) as entries:
                names = sorted(entry.name for entry in entries if entry.is_dir())
        except OSError:
            return  # it may have become unreadable: known runs stay
        self._changed = changed
        before, path = self._entries, self.runs_dir
        self._entries = {
            name: before.get(name) or _RunEntry(folder=RunFolder(path / name))
            for name in names
        }

    def _due(self) -> list[_RunEntry]:
        """Return the runs to check in this refresh."""
        at_rest = [entry for entry in self._entries.values() if entry.is_at_rest]
        first = self._turn % len(at_rest) if at_rest else 0
        self._turn = first + ROUND
        some = (at_rest[first:] + at_rest[:first])[:ROUND]
        # runs waiting to be read were checked, and will be again
        return some + [
            entry
            for entry in self._entries.values()
            if not entry.is_at_rest and (entry.read or not entry.stamp)
        ]

    def _read(self, entry: _RunEntry) -> None:
        entry.stamp = entry.read = _stamp(entry.folder)
        with RunSource(entry.folder, self._clock, is_brief=True) as source:
            entry.snapshot = source.poll()
        seen = entry.snapshot
        entry.is_at_rest = not isinstance(seen, RunSnapshot) or seen.is_ended

    def _present(self, entry: _RunEntry) -> SnapshotOrProblem | None:
        """Return the data as of now: time passes without events."""
        seen = entry.snapshot
        if not isinstance(seen, RunSnapshot) or entry.is_at_rest:
            return seen
        is_held = entry.folder.is_alive()
        seen = replace(
            seen,
            now_us=self._clock.now_us(),
            is_alive=is_working(is_held, seen.status.heartbeat),
        )
        entry.snapshot, entry.is_at_rest = seen, seen.is_ended
        return seen


def _stamp(folder: RunFolder) -> Stamp | None:
    """Return times and sizes of the log's files; None without a log.

    An empty WAL is ignored: opening a closed log creates one.
    """
    with suppress(StoreError):  # reported when it is read
        folder.refresh()
    log = str(folder.log)
    stamps = []
    for path in (log, f"{log}-wal"):
        try:
            stat = os.stat(path)  # noqa: PTH116 - its numbers, not the path
        except OSError:
            stamps.append((0, 0))
        else:
            stamps.append((stat.st_mtime_ns if stat.st_size else 0, stat.st_size))
    return tuple(stamps) if any(stamps[0]) else None
