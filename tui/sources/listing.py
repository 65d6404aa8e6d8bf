"""The runs of a folder, as the Runs screen lists them.

A run whose files have not changed is not opened again, so that a folder of a hundred
finished runs costs a hundred looks at the file system and nothing more. Those that were
never read are read a few at a time, the latest first.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, TypeAlias

from store.clock import Clock
from store.present import is_working
from store.runs import RunFolder, list_runs
from tui.sources.run import RunSource, Sight, Snapshot

BATCH = 8
"""Runs opened by one look, so that it stays short."""

Stamp: TypeAlias = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One run of the list."""

    folder: RunFolder
    sight: Sight | None  #: None: not read yet


class Listing(Protocol):
    """Where lists of runs come from: a folder, or a test."""

    @property
    def runs_dir(self) -> Path:
        """The folder."""
        ...

    def look(self) -> list[Listed]:
        """Its runs, the latest first."""
        ...


class FolderListing:
    """Looks at the runs of one folder."""

    def __init__(self, runs_dir: Path, clock: Clock) -> None:
        self.runs_dir = runs_dir
        self._clock = clock
        self._seen: dict[str, tuple[Stamp, Sight]] = {}

    def look(self) -> list[Listed]:
        """Its runs, the latest first."""
        stamped = [(_stamp(folder), folder) for folder in list_runs(self.runs_dir)]
        stamped.sort(key=lambda each: (max(each[0]), each[1].run_id), reverse=True)
        unread = BATCH
        listed = []
        for stamp, folder in stamped:
            seen = self._seen.get(folder.run_id)
            if (seen is None or seen[0] != stamp) and unread:
                unread -= 1
                with RunSource(folder, self._clock, is_brief=True) as source:
                    seen = (stamp, source.look())
                self._seen[folder.run_id] = seen
            listed.append(Listed(folder=folder, sight=self._present(folder, seen)))
        return listed

    def _present(
        self, folder: RunFolder, seen: tuple[Stamp, Sight] | None
    ) -> Sight | None:
        """What was read, as of now: clocks move on where the log does not."""
        if seen is None or not isinstance(seen[1], Snapshot):
            return seen and seen[1]
        beat = seen[1].status.heartbeat
        is_alive = is_working(folder.is_alive(), beat)
        return replace(seen[1], now_us=self._clock.now_us(), is_alive=is_alive)


def _stamp(folder: RunFolder) -> Stamp:
    """What changes when the log does: time and size of its files.

    An empty WAL says nothing: whoever looks at a closed log makes one.
    """
    found = []
    for path in (folder.log, folder.log.with_name(f"{folder.log.name}-wal")):
        try:
            stat = os.stat(path)  # noqa: PTH116 - its numbers, not the path
        except OSError:
            found.append((0, 0))
        else:
            found.append((stat.st_mtime_ns if stat.st_size else 0, stat.st_size))
    return tuple(found)
