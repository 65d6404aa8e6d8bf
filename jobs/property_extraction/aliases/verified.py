"""Verdicts that a new set goes by: of CSV files, and of runs, read from their logs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from jobs.property_extraction.aliases.verdicts import Verdict
from jobs.property_extraction.gathering.verdicts import verdicts_of
from jobs.property_extraction.inputs.verdicts import read_verdicts
from runner.errors import DatasetError, UsageError
from runner.registry import load_job
from runner.score.scoring import answers, effective_settings
from runner.workload import input_hashes
from store.database import open_reader
from store.errors import StoreError
from store.events import Input
from store.read.status import run_started
from store.runs import RunFolder, resolve
from store.tables import last_seq

RUNS_DIR = "SIFTLOG_RUNS_DIR"
"""Names the folder of runs, where it is not `runs`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified:
    """All verdicts, and the ids of the runs that some of them are from."""

    verdicts: tuple[Verdict, ...]
    runs: tuple[str, ...]


def verified(sources: Iterable[Path]) -> Verified:
    """Read what is named: a file, or else a run by its folder, its id or the beginning.

    Raises:
        UsageError: it is neither, or a run of another kind.
        DatasetError: a file is off.
    """
    verdicts: list[Verdict] = []
    runs: list[str] = []
    for path in sources:
        if path.is_file() or path.suffix == ".csv":
            verdicts += read_verdicts(path)
        else:
            folder = _run(path)
            verdicts += _verdicts(folder)
            runs.append(folder.run_id)
    return Verified(verdicts=tuple(verdicts), runs=tuple(runs))


def _run(path: Path) -> RunFolder:
    folder = RunFolder(path)
    if folder.log.is_file():
        return folder
    try:
        # settings are paths, and a run's id was taken for one
        return resolve(Path(os.environ.get(RUNS_DIR, "runs")), path.name)
    except StoreError as error:
        raise UsageError(
            f"--verdicts {path.name}: neither a CSV file nor a run; {error}."
        ) from error


def _verdicts(folder: RunFolder) -> tuple[Verdict, ...]:
    with open_reader(folder.log) as reader:
        started = run_started(reader)
        job = load_job(started.job)
        settings = effective_settings(job, folder, {})
        if getattr(settings, "mode", None) != "verify":
            raise UsageError(
                f"Run {folder.run_id} verifies no names: name one that was made with "
                "siftlog run property-extraction --mode verify."
            )
        _refuse_changes(folder, started.inputs, input_hashes(job.inputs(settings)))
        dataset = job.load(settings)
        found = answers(reader, started, last_seq(reader))
        return tuple(verdicts_of(dataset, found))


def _refuse_changes(
    folder: RunFolder, then: Iterable[Input], now: Iterable[Input]
) -> None:
    """The candidates say which pair a task is about; with others verdicts get lost."""
    before = {each.sha256 for each in then if each.setting == "candidates"}
    for each in now:
        if each.setting == "candidates" and each.sha256 not in before:
            raise DatasetError(
                f"{each.path} is not the file that run {folder.run_id} was started "
                "with (put that one back, or name alias_verification_all__MODEL.csv of "
                "a scoring of the run instead)."
            )
