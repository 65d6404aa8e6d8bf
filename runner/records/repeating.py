"""A recorded scoring made again: its settings, its inputs, the log up to its event.

The answers are replayed by the code of today. Inputs count by their content: a file
that is not what it was is taken from the log, where that keeps it. What a scoring goes
by may also be mixed from two of them, which is how a difference's causes are found.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from pydantic import BaseModel

from runner.errors import DatasetError
from runner.fingerprint import input_hashes
from runner.job import InputFile, Job
from runner.records.choosing import chosen
from runner.records.keeping import put_back
from runner.records.scoring import Scoring, replayed
from runner.registry import load_job
from runner.settings import as_json, validated
from store.database import open_reader
from store.events import Input, RunStarted, ScoringRecorded
from store.query import parse_query
from store.read.status import run_started, scorings
from store.read.tasks import changed_tasks, parts
from store.runs import RunFolder
from store.time_travel import LogPrefix, moment_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Basis:
    """What a scoring goes by, the code aside."""

    settings: Mapping[str, Any]  #: plain values, defaults included
    inputs: tuple[Input, ...]
    seq: int  #: the log's last event that is read

    def is_like(self, other: Basis) -> bool:
        """Whether settings and the content of inputs are equal, wherever they lie."""
        mine, theirs = (
            [(given.setting, given.sha256) for given in each.inputs]
            for each in (self, other)
        )
        placed = {setting for setting, _ in mine}
        return mine == theirs and all(
            self.settings.get(name) == other.settings.get(name)
            for name in {*self.settings, *other.settings} - placed
        )

    @classmethod
    def of(cls, job: Job, recorded: ScoringRecorded) -> Self:
        """That of a recorded scoring; settings that came later have their default.

        Raises:
            UsageError: the job has not all of its settings any more.
        """
        settings = validated(job, json.loads(recorded.settings))
        return cls(
            settings=json.loads(as_json(settings)),
            inputs=tuple(recorded.inputs),
            seq=recorded.seq,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeater:
    """Scores one run as often as wanted, while it is open; nothing is recorded."""

    folder: RunFolder
    job: Job
    started: RunStarted
    reader: sqlite3.Connection
    scratch: Path  #: for inputs that are taken from the log
    _opened: ExitStack
    _found: dict[Input, Path] = field(default_factory=dict, init=False)
    _readers: dict[int, sqlite3.Connection] = field(default_factory=dict, init=False)

    def scorings(self) -> list[ScoringRecorded]:
        """All that were recorded, oldest first."""
        return scorings(self.reader)

    def recorded(self, number: int | None = None) -> ScoringRecorded:
        """The scoring of that number; the newest where none is named.

        Raises:
            UsageError: the run has none.
        """
        return chosen(self.folder.run_id, self.scorings(), number)

    def repeated(self, recorded: ScoringRecorded) -> Scoring:
        """A recorded scoring, made again by the code of today.

        Raises:
            DatasetError: an input is not what it was, and the log does not keep it.
            UsageError: the job has not all of its settings any more.
        """
        return self.scored(Basis.of(self.job, recorded))

    def scored(self, basis: Basis) -> Scoring:
        """What the run comes to by *basis*.

        Its details may be read while this is open.

        Raises:
            DatasetError: an input is not what it was, and the log does not keep it;
                or settings and inputs do not fit one another.
            UsageError: the settings do not fit one another.
        """
        settings = self.placed(basis)
        reader = self._reader(basis.seq)
        return replayed(self.job, reader, settings, list(basis.inputs), upto=basis.seq)

    def placed(self, basis: Basis) -> BaseModel:
        """The settings of *basis*, naming files that hold what its inputs held.

        Raises:
            DatasetError: an input is not what it was, and the log does not keep it.
            UsageError: the settings do not fit one another.
        """
        values = dict(basis.settings)
        for given in basis.inputs:
            place = str(self._place(basis, given))
            if place != given.path:
                values |= _renamed(values, given, place)
        return validated(self.job, values)

    def stored(self, recorded: ScoringRecorded) -> bytes | None:
        """`scorecard.json` of a scoring as it was; None: it is nowhere any more."""
        key = bytes.fromhex(recorded.digest)
        if found := parts(self.reader, [key]):
            return found[key]
        # scorings that were recorded before logs kept them
        file = self.folder.scores / str(recorded.number) / "scorecard.json"
        content = file.read_bytes() if file.exists() else b""
        return content if hashlib.sha256(content).digest() == key else None

    def is_still_after(self, seq: int) -> bool:
        """Whether no answer has come, gone or been asked again since that event."""
        return not changed_tasks(self.reader, parse_query(""), seq, 1)

    def _reader(self, seq: int) -> sqlite3.Connection:
        """The log as it was after that event."""
        if self.is_still_after(seq):
            return self.reader
        if seq not in self._readers:
            prefix = self._opened.enter_context(LogPrefix(self.folder.log))
            prefix.move_to(moment_of(self.reader, seq))
            self._readers[seq] = self._opened.enter_context(prefix.open_reader())
        return self._readers[seq]

    def _place(self, basis: Basis, given: Input) -> Path:
        """Where the content of an input lies."""
        if given not in self._found:
            if self._is_there(basis, given):
                self._found[given] = Path(given.path)
            elif given.kept:
                place = self.scratch / str(len(self._found))
                place.mkdir()
                self._found[given] = put_back(self.reader, given, place)
            else:
                raise DatasetError(
                    f"{given.path} ({given.setting}) is not the file that the scoring "
                    "read, and the log does not keep it: put the old one back."
                )
        return self._found[given]

    def _is_there(self, basis: Basis, given: Input) -> bool:
        """Whether the file or folder still is what it was; the job may say by what."""
        if not Path(given.path).exists():
            return False
        bytewise = InputFile(setting=given.setting, path=Path(given.path))
        files = {
            (file.setting, file.path): file
            for file in self.job.inputs(validated(self.job, basis.settings))
        }
        file = files.get((bytewise.setting, bytewise.path), bytewise)
        return input_hashes([file])[0].sha256 == given.sha256


@contextmanager
def repeater(folder: RunFolder) -> Iterator[Repeater]:
    """Open a run for scoring it again.

    Raises:
        UsageError: the run's job is not installed.
    """
    with ExitStack() as opened:
        reader = opened.enter_context(open_reader(folder.log))
        scratch = opened.enter_context(TemporaryDirectory(prefix="siftlog-"))
        started = run_started(reader)
        yield Repeater(
            folder=folder,
            job=load_job(started.job),
            started=started,
            reader=reader,
            scratch=Path(scratch),
            _opened=opened,
        )


def _renamed(
    values: Mapping[str, object], given: Input, place: str
) -> dict[str, object]:
    """The settings that name an input, naming another place instead.

    Raises:
        DatasetError: none does: it is a part of a folder that a setting names.
    """
    found: dict[str, object] = {}
    for name, value in values.items():
        if value == given.path:
            found[name] = place
        elif isinstance(value, list) and given.path in value:
            found[name] = [place if each == given.path else each for each in value]
    if not found:
        raise _changed(given)
    return found


def _changed(given: Input) -> DatasetError:
    return DatasetError(
        f"{given.path} ({given.setting}) is not the file that the scoring read, and "
        "what the log keeps of it cannot stand in its place: put the old one back."
    )
