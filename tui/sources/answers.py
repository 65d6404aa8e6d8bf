"""What children answered, kept for whoever asks the same of the same logs again."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from store.runs import RunFolder
from store.views import last_seq, open_reader
from tui.sources.child import Record

KEPT = 16
"""Answers held: as many as a person may go to and fro between."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogAt:
    """A log as far as it was written; equal ones hold the same."""

    run_id: str
    file: tuple[int, int]  #: device and inode: another log may come to stand there
    seq: int


Logs: TypeAlias = tuple[LogAt, ...]


class Answers:
    """Answers by what was asked and what the logs held; the last used are kept.

    Pure: what is asked, and of which logs, is given.
    """

    def __init__(self, kept: int = KEPT) -> None:
        self._kept = kept
        self._held: OrderedDict[tuple[tuple[str, ...], Logs], list[Record]]
        self._held = OrderedDict()

    def get(self, arguments: Sequence[str], logs: Logs) -> list[Record] | None:
        """What was answered; None: nobody has asked this yet, or it is forgotten."""
        key = (tuple(arguments), logs)
        if key not in self._held:
            return None
        self._held.move_to_end(key)
        return self._held[key]

    def put(self, arguments: Sequence[str], logs: Logs, found: list[Record]) -> None:
        """Keep an answer."""
        key = (tuple(arguments), logs)
        self._held[key] = found
        self._held.move_to_end(key)
        while len(self._held) > self._kept:
            self._held.popitem(last=False)


def log_at(folder: RunFolder) -> LogAt:
    """How far a run's log is written now.

    Raises:
        StoreError: it cannot be opened.
        sqlite3.DatabaseError: it cannot be read.
    """
    with open_reader(folder.log) as reader:
        found = os.stat(folder.log)  # noqa: PTH116 - its numbers, not the path
        return LogAt(
            run_id=folder.run_id,
            file=(found.st_dev, found.st_ino),
            seq=last_seq(reader),
        )
