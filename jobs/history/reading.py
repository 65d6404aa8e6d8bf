"""The rows of all runs in a folder: of each log, one event is read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from jobs.history.row import Row
from store.database import open_reader
from store.errors import CorruptLog, StoreError
from store.events import ScoringRecorded
from store.read.status import newest_scoring
from store.results import ItemParts, Milestone, parts_of
from store.runs import RunFolder, list_runs
from store.tables import created_us, payload


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """A run, and what its newest scoring left behind."""

    folder: RunFolder
    at_us: int
    milestone: Milestone

    def rows(self) -> Iterable[Row]:
        """A row for each model."""
        return (
            Row(
                run=self.folder.run_id,
                at_us=self.at_us,
                model=model,
                milestone=self.milestone,
            )
            for model in self.milestone.standings
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a folder of runs holds of a job."""

    runs: tuple[Remembered, ...]  #: in order of time
    unread: tuple[str, ...]  #: why logs could not be read, a sentence each


def found(runs_dir: Path, job: str) -> Found:
    """The runs of *job* that were scored and have a history."""
    runs: list[Remembered] = []
    unread: list[str] = []
    for folder in list_runs(runs_dir):
        try:
            run = _remembered(folder)
        except StoreError as error:
            unread.append(f"{error}.")
            continue
        if run is not None and run.milestone.job == job:
            runs.append(run)
    return Found(
        runs=tuple(sorted(runs, key=lambda own: (own.at_us, own.folder.run_id))),
        unread=tuple(unread),
    )


def parts(run: Remembered) -> ItemParts:
    """What lies below a run's milestone.

    Raises:
        CorruptLog: it cannot be read.
    """
    with open_reader(run.folder.log) as reader:
        scoring = newest_scoring(reader)
        stored = None if scoring is None else payload(reader, scoring.seq)
    try:
        return parts_of(stored or b"")
    except ValueError as error:
        raise CorruptLog(
            f"{run.folder.log} has a damaged scoring ({error}): see 'siftlog verify', "
            "or score the run again"
        ) from error


def _remembered(folder: RunFolder) -> Remembered | None:
    with open_reader(folder.log) as reader:
        scoring = newest_scoring(reader)
        if scoring is None:
            return None
        event, at_us = scoring.event, created_us(reader)
    if not isinstance(event, ScoringRecorded) or event.milestone is None:
        return None
    return Remembered(folder=folder, at_us=at_us, milestone=event.milestone)


def rows(runs: Sequence[Remembered]) -> tuple[Row, ...]:
    """The rows of some runs, in their order."""
    return tuple(row for own in runs for row in own.rows())
