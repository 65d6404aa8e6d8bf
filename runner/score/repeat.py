"""Repeats a recorded scoring: same settings, same inputs, same events."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

from pydantic import BaseModel

from runner.errors import DatasetError, RunnerError, UsageError
from runner.fingerprint import input_hashes
from runner.job import Dataset, InputFile, Job
from runner.registry import job_of
from runner.score.log_answers import ParsedFolder
from runner.score.render import (
    OPERATIONS,
    FigureFormat,
    operations_json,
    write_reports,
)
from runner.score.result_files import write_files
from runner.score.scoring import (
    Scoring,
    names,
    put_back,
    replayed,
    reported,
)
from runner.workload import as_json, validated
from store.database import open_reader
from store.events import Input, RunStarted, ScoringRecorded
from store.notable import NotableItems
from store.query import parse_query
from store.read.status import run_started, scorings, status
from store.read.tasks import changed_tasks, parts
from store.read.usage import usage_counts
from store.runs import RunFolder
from store.time_travel import LogPrefix, moment_of


def chosen(
    run_id: str,
    recorded_scorings: Sequence[ScoringRecorded],
    number: int | None,
    *,
    is_alive: bool = False,
) -> ScoringRecorded:
    """Return a scoring by number, or the newest.

    Args:
        run_id: the run.
        recorded_scorings: of the run, oldest first.
        number: of the scoring; None: the newest.
        is_alive: whether the run goes on, so that none can be recorded now.

    Raises:
        UsageError: there is none.
    """
    if not recorded_scorings and is_alive:
        raise UsageError(
            f"Run {run_id} is still running and has no scoring yet: it is scored at "
            f"its end. siftlog score {run_id} prints the metrics so far, and siftlog "
            f"status {run_id} how far it is."
        )
    if not recorded_scorings:
        raise UsageError(
            f"Run {run_id} has no scoring; make one with: siftlog score {run_id}"
        )
    by_number = {scoring.number: scoring for scoring in recorded_scorings}
    if number is None:
        return recorded_scorings[-1]
    if number not in by_number:
        raise UsageError(
            f"Run {run_id} has no scoring {number}; its newest is "
            f"{len(recorded_scorings)}."
        )
    return by_number[number]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoringBasis:
    """Inputs of a scoring, except the code."""

    settings: Mapping[str, Any]  #: plain values, defaults included
    inputs: tuple[Input, ...]
    seq: int  #: the last event of the log that is read

    def is_like(self, other: ScoringBasis) -> bool:
        """Return whether settings and input contents are equal, ignoring paths."""
        inputs, other_inputs = (
            [
                (recorded_input.setting, recorded_input.sha256)
                for recorded_input in basis.inputs
            ]
            for basis in (self, other)
        )
        placed = {setting for setting, _ in inputs}
        return inputs == other_inputs and all(
            self.settings.get(name) == other.settings.get(name)
            for name in {*self.settings, *other.settings} - placed
        )

    @classmethod
    def of(cls, job: Job, recorded: ScoringRecorded) -> Self:
        """Return the basis of a recorded scoring; new settings have defaults.

        Raises:
            UsageError: the job no longer has all of its settings.
        """
        settings = validated(job, json.loads(recorded.settings))
        return cls(
            settings=json.loads(as_json(settings)),
            inputs=tuple(recorded.inputs),
            seq=recorded.seq,
        )


@dataclass(frozen=True, slots=True)
class RunData:
    """Data of a run, which its rescorers share: files are read and hashed once."""

    datasets: dict[str, Dataset] = field(default_factory=dict)  #: by settings
    unchanged: dict[Input, bool] = field(default_factory=dict)
    """By input: whether the file is still the one that was read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rescorer:
    """Scores one run repeatedly while it is open; records nothing."""

    folder: RunFolder
    job: Job
    started: RunStarted
    reader: sqlite3.Connection
    scratch: Path  #: folder for inputs restored from the log
    data: RunData
    _opened: ExitStack
    _input_paths: dict[Input, Path] = field(default_factory=dict, init=False)
    _readers: dict[int, sqlite3.Connection] = field(default_factory=dict, init=False)

    def scorings(self) -> list[ScoringRecorded]:
        """Return all recorded scorings, oldest first."""
        return scorings(self.reader)

    def recorded(self, number: int | None = None) -> ScoringRecorded:
        """Return a recorded scoring by number, or the newest.

        Raises:
            UsageError: there is none.
        """
        return chosen(
            self.folder.run_id, self.scorings(), number, is_alive=self.folder.is_alive()
        )

    def repeated(self, recorded: ScoringRecorded) -> Scoring:
        """Repeat a recorded scoring with the current code.

        Raises:
            DatasetError: an input was changed, and the log does not have it.
            UsageError: the job no longer has all of its settings.
        """
        return self.scored(ScoringBasis.of(self.job, recorded))

    def scored(
        self, basis: ScoringBasis, parsed: ParsedFolder | None = None
    ) -> Scoring:
        """Score the run by *basis*.

        Details can be read while this is open.

        Args:
            basis: settings, inputs and the last event.
            parsed: parsed replies of earlier scorings; None: parse all of them.

        Raises:
            DatasetError: an input was changed, and the log does not have it; or
                settings and inputs do not match.
            UsageError: the settings are inconsistent.
        """
        settings = self.placed(basis)
        reader = self.reader_at(basis.seq)
        return replayed(
            self.job,
            reader,
            settings,
            list(basis.inputs),
            through_seq=basis.seq,
            parsed=parsed,
            load=self.load,
        )

    def load(self, settings: BaseModel) -> Dataset:
        """Return the data for some settings, loaded once.

        Raises:
            DatasetError: an input file is invalid.
        """
        key = as_json(settings)
        datasets = self.data.datasets
        if key not in datasets:
            datasets[key] = self.job.load(settings)
        return datasets[key]

    def placed(self, basis: ScoringBasis) -> BaseModel:
        """Return the settings of *basis*, with paths of unchanged inputs.

        Raises:
            DatasetError: an input was changed, and the log does not have it.
            UsageError: the settings are inconsistent.
        """
        values = dict(basis.settings)
        for recorded_input in basis.inputs:
            path = str(self._path_of(basis, recorded_input))
            if path != recorded_input.path:
                values |= _renamed(values, recorded_input, path)
        return validated(self.job, values)

    def stored(self, recorded: ScoringRecorded) -> bytes | None:
        """Return the original `scorecard.json` of a scoring; None: it is lost."""
        key = bytes.fromhex(recorded.digest)
        if contents := parts(self.reader, [key]):
            return contents[key]
        # scorings recorded before logs stored scorecards
        file = self.folder.scores / str(recorded.number) / "scorecard.json"
        content = file.read_bytes() if file.exists() else b""
        return content if hashlib.sha256(content).digest() == key else None

    def is_still_after(self, seq: int) -> bool:
        """Return whether no answer has changed since that event."""
        return not changed_tasks(self.reader, parse_query(""), seq, 1)

    def reader_at(self, seq: int) -> sqlite3.Connection:
        """Return a reader of the log up to that event."""
        if self.is_still_after(seq):
            return self.reader
        if seq not in self._readers:
            prefix = self._opened.enter_context(LogPrefix(self.folder.log))
            prefix.move_to(moment_of(self.reader, seq))
            self._readers[seq] = self._opened.enter_context(prefix.open_reader())
        return self._readers[seq]

    def _path_of(self, basis: ScoringBasis, recorded_input: Input) -> Path:
        """Return a path with the content of an input."""
        if recorded_input not in self._input_paths:
            if self._is_unchanged(basis, recorded_input):
                self._input_paths[recorded_input] = Path(recorded_input.path)
            elif recorded_input.kept:
                folder = self.scratch / str(len(self._input_paths))
                folder.mkdir()
                self._input_paths[recorded_input] = put_back(
                    self.reader, recorded_input, folder
                )
            else:
                raise DatasetError(
                    f"{recorded_input.path} ({recorded_input.setting}) is not the "
                    "file that the scoring read, and the log does not keep it: "
                    "put the old one back."
                )
        return self._input_paths[recorded_input]

    def _is_unchanged(self, basis: ScoringBasis, recorded_input: Input) -> bool:
        """Return whether an input is unchanged, by the job's own hash if any."""
        known = self.data.unchanged
        if recorded_input not in known:
            known[recorded_input] = self._has_hash(basis, recorded_input)
        return known[recorded_input]

    def _has_hash(self, basis: ScoringBasis, recorded_input: Input) -> bool:
        if not Path(recorded_input.path).exists():
            return False
        bytewise = InputFile(
            setting=recorded_input.setting, path=Path(recorded_input.path)
        )
        files = {
            (file.setting, file.path): file
            for file in self.job.inputs(validated(self.job, basis.settings))
        }
        file = files.get((bytewise.setting, bytewise.path), bytewise)
        return input_hashes([file])[0].sha256 == recorded_input.sha256


@contextmanager
def rescorer(folder: RunFolder, data: RunData | None = None) -> Iterator[Rescorer]:
    """Open a run to repeat its scorings.

    Args:
        folder: the run's folder.
        data: of the run, to which is added what is loaded; None: nothing is known.

    Raises:
        UsageError: the run's job is not installed.
    """
    with ExitStack() as opened:
        reader = opened.enter_context(open_reader(folder.log))
        scratch = opened.enter_context(TemporaryDirectory(prefix="siftlog-"))
        started = run_started(reader)
        yield Rescorer(
            folder=folder,
            job=job_of(started),
            started=started,
            reader=reader,
            scratch=Path(scratch),
            data=RunData() if data is None else data,
            _opened=opened,
        )


def _renamed(
    values: Mapping[str, object], recorded_input: Input, new_path: str
) -> dict[str, object]:
    """Return the settings that name an input, with the new path.

    Raises:
        DatasetError: none does: it is a part of a folder that a setting names.
    """
    renamed: dict[str, object] = {}
    for name, value in values.items():
        if value == recorded_input.path:
            renamed[name] = new_path
        elif isinstance(value, list) and recorded_input.path in value:
            renamed[name] = [
                new_path if path == recorded_input.path else path for path in value
            ]
    if not renamed:
        raise _changed(recorded_input)
    return renamed


def _changed(recorded_input: Input) -> DatasetError:
    return DatasetError(
        f"{recorded_input.path} ({recorded_input.setting}) is not the "
        "file that the scoring read, and the log holds no full copy: "
        "restore the old file."
    )


def redraw(
    folder: RunFolder,
    recorded: ScoringRecorded,
    figures: Sequence[FigureFormat] = (),
) -> Path:
    """Write the reports of a scoring again, or its whole folder if missing.

    Args:
        folder: the run's folder.
        recorded: the scoring.
        figures: formats of the files of figures; empty: `FIGURE_FORMATS`.

    Returns:
        The scoring's folder.

    Raises:
        DatasetError: an input was changed, and the log does not have it.
        RunnerError: the replay gives other numbers than the scoring, which must not be
            mixed with its folder.
    """
    target = folder.scores / str(recorded.number)
    with rescorer(folder) as run:
        reader = run.reader
        repeated = run.repeated(recorded)
        if repeated.digest != recorded.digest:
            raise RunnerError(
                f"Scoring {recorded.number} of {folder.run_id} cannot be drawn again: "
                "the code has changed since, and a replay gives other numbers; "
                f"siftlog score {folder.run_id} makes a new scoring."
            )
        # the run may have continued since; the folder has its earlier state
        operations_file = target / OPERATIONS
        operations = (
            operations_file.read_bytes()
            if operations_file.exists()
            else operations_json(
                status(reader), usage_counts(reader), repeated.scorecard
            )
        )
        folder.scores.mkdir(exist_ok=True)
        with TemporaryDirectory(prefix=".", dir=folder.scores) as drafts:
            draft = Path(drafts) / "draft"
            items = NotableItems()
            write_files(draft, repeated.scorecard, repeated.content, operations, items)
            before = set(names(draft))
            settings = validated(run.job, json.loads(recorded.settings))
            report_source = reported(
                run.job,
                run.reader_at(recorded.seq),
                settings,
                repeated,
                items,
                titles=folder.titles,
                figures=figures,
            )
            write_reports(draft, report_source)
            if not target.exists():
                draft.replace(target)
                return target
            for name in sorted({*names(draft)} - before):
                (target / name).parent.mkdir(parents=True, exist_ok=True)
                (draft / name).replace(target / name)
    return target
