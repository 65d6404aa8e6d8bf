"""Reads a folder of label logs, again and again while people add to it.

A run's labels are in `RUN/labels/`; labels that several runs share are in a folder of
their own. Every `*.db` in it is the label log of one author, and an author who works in
two places at a time has two. A folder that is not there has no labels.

    folder = LabelFolder(run.labels)
    labels = folder.refresh()  # reads what is new, and returns a LabelSet
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from store.database import SQL, UNION, LogReader, open_reader, read_only
from store.errors import NotALog, StoreError, ignore_progress
from store.filesystem import identity_of
from store.labels.events import LabelsStarted
from store.labels.fold import EventId, LabelEntry, LabelSet
from store.log.integrity import LogEnd, compare_end
from store.tables import last_seq, recorded
from store.verify import VerifyReport, verify

LABELS_FOLDER: Final = "labels"
"""Name of the folder of a run's labels, in the run's folder."""
GOLD: Final = "gold"
"""Folder, in that of a run's labels, of the files of truth made from labels."""

PAGE: Final = 5000
"""Events read at a time."""


def label_logs(folder: Path) -> list[Path]:
    """The label logs in a folder, by name; none where it is missing.

    Raises:
        StoreError: it cannot be read.
    """
    try:
        return sorted(
            path
            for path in folder.iterdir()
            if path.suffix == ".db" and not path.name.startswith(".")
        )
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StoreError(
            f"{folder} cannot be read ({error.strerror}): name a folder of label logs"
        ) from error


def is_label_gold(path: Path) -> bool:
    """Return whether a file of truth was made from labels."""
    return path.parts[-3:-1] == (LABELS_FOLDER, GOLD)


def author_of(log: Path) -> str | None:
    """The author of a label log; None where there is no such log, or no event in it.

    Raises:
        NotALog: it is the log of a run, or another file.
        StoreError: it cannot be read.
    """
    if not log.exists() or _is_empty(log):
        return None
    with open_reader(log) as reader:
        first = recorded(reader, 0, 1, None)
    if not first:
        return None
    match first[0].event:
        case LabelsStarted(author=author):
            return author
        case _:
            raise NotALog(
                f"{log} is no label log, but begins with {first[0].kind!r}: move it "
                "out of the folder of labels"
            )


def _is_empty(log: Path) -> bool:
    """Return whether a writer has only begun to create the file, or died at it."""
    try:
        with read_only(log) as reader:
            return not reader.execute(SQL["tables"]).fetchone()[0]
    except (StoreError, sqlite3.Error):
        return False  # who opens it reports what is wrong


@dataclass(slots=True)
class _File:
    """State of reading a label log."""

    identity: tuple[int, int] | None = None
    seq: int = 0
    writers: dict[int, str] = field(default_factory=dict)  #: id in hex, by epoch
    entries: list[LabelEntry] = field(default_factory=list)


class LabelFolder:
    """The label logs of a folder and what has been read of them."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._files: dict[Path, _File] = {}
        self._labels = LabelSet((), (), ())
        self._is_folded = True

    @property
    def entries(self) -> list[LabelEntry]:
        """All events read so far, file by file; `LabelSet.of` folds them."""
        return [entry for file in self._files.values() for entry in file.entries]

    def refresh(self) -> LabelSet:
        """Read what was recorded since the last call, and return the labels.

        Costs about a millisecond a file; the same value is returned until something
        changes. A file that was replaced is read again from its start.

        Raises:
            NotALog: a file in the folder is no label log.
            StoreError: a file cannot be read.
        """
        self.poll()
        if not self._is_folded:
            self._labels = LabelSet.of(self.entries)
            self._is_folded = True
        return self._labels

    def poll(self) -> bool:
        """Read what was recorded since the last call; return whether there is any.

        For readers who fold `entries` themselves; raises as `refresh` does.
        """
        logs = label_logs(self.path)
        changed = False
        for gone in self._files.keys() - set(logs):
            del self._files[gone]
            changed = True
        for log in logs:
            changed |= self._read(log)
        self._is_folded &= not changed
        return changed

    def _read(self, log: Path) -> bool:
        """Read what is new in a file; return whether its entries changed."""
        identity = identity_of(log)
        file = self._files.get(log)
        if file is None or file.identity != identity:
            if author_of(log) is None:
                return self._files.pop(log, None) is not None
            file = self._files[log] = _File(identity)
        with open_reader(log) as reader:
            if last_seq(reader) < file.seq:  # overwritten by an older copy
                file = self._files[log] = _File(identity)
            return self._read_on(reader, file)

    @staticmethod
    def _read_on(reader: LogReader, file: _File) -> bool:
        before = file.seq
        while events := recorded(reader, file.seq, PAGE, None):
            if any(event.epoch not in file.writers for event in events):
                file.writers = {
                    epoch: writer.hex()
                    for epoch, writer in reader.execute(UNION["writers"]).fetchall()
                }
            file.entries += (
                LabelEntry(
                    event.ts_us,
                    EventId(file.writers[event.epoch], event.seq),
                    event.event,
                )
                for event in events
            )
            file.seq = events[-1].seq
        return file.seq != before


def read_labels(folder: Path, *, until_us: int | None = None) -> LabelSet:
    """The labels in a folder, as of a moment.

    Args:
        folder: a folder of label logs; a missing one has no labels.
        until_us: leave out what was recorded later; None: nothing.

    Raises:
        NotALog: a file in the folder is no label log.
        StoreError: a file cannot be read.
    """
    opened = LabelFolder(folder)
    labels = opened.refresh()
    return (
        labels if until_us is None else LabelSet.of(opened.entries, until_us=until_us)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelLogReport:
    """The check of one label log."""

    log: Path
    report: VerifyReport | None  #: None: it could not be read at all
    end: LogEnd | None  #: likewise
    problem: str = ""  #: why it could not be read, or that it is no label log

    @property
    def is_sound(self) -> bool:
        """Whether nothing is wrong with it."""
        return not self.problems

    @property
    def problems(self) -> list[str]:
        """Return a sentence for each problem."""
        problems = [self.problem] if self.problem else []
        if self.report is not None:
            problems += [
                f"{fault.where}: {fault.message}" for fault in self.report.faults
            ]
        if self.end is not None and self.end.has_loss:
            problems.append(self.end.sentence)
        return problems


def verify_labels(
    folder: Path, progress: Callable[[str], None] = ignore_progress
) -> list[LabelLogReport]:
    """Check every label log in a folder, as `store.verify.verify` checks a log.

    Raises:
        StoreError: the folder cannot be read.
    """
    return [_verified(log, progress) for log in label_logs(folder)]


def _verified(log: Path, progress: Callable[[str], None]) -> LabelLogReport:
    try:
        if _is_empty(log):  # its writer died before its first event, or is at it
            return LabelLogReport(log=log, report=None, end=None)
        end = compare_end(log)
        with open_reader(log) as reader:
            report = verify(reader, progress)
        if report.is_sound:
            author_of(log)
    except StoreError as error:
        return LabelLogReport(log=log, report=None, end=None, problem=str(error))
    return LabelLogReport(log=log, report=report, end=end)
