"""Checks recorded runs with the code of today, in several processes.

A run is checked in two parts, the walk over its events and its scorings, which share
its data alone. One process does both, unless the run is larger than its share of the
work: then its data are loaded first, and two processes do a part each. Nothing is
written into a run.
"""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from enum import Enum
from itertools import groupby
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import NamedTuple, TypeAlias

from runner.errors import RunnerError
from runner.fingerprint import code_fingerprint, code_hash
from runner.regress.log_walk import LogWalk, NotChecked, basis_at, whole_log
from runner.regress.report import LOG, CheckedStep, Codes, RunReport
from runner.regress.scorings import check_scorings
from runner.score.repeat import Rescorer, RunData, rescorer
from store.errors import StoreError
from store.runs import RunFolder
from store.verify import verify

_Loaded: TypeAlias = Mapping[Path, RunData]
"""Data of runs, by the folder of the run."""


class Part(Enum):
    """What is done at a time."""

    WALK = "walk"
    SCORINGS = "scorings"


class Unit(NamedTuple):
    """A part of the check of one log."""

    folder: Path  #: of the run
    shard: str  #: suffix of the names of its files; empty: the whole run
    part: Part
    size: int  #: bytes of the log: the largest begin first


def check_runs(
    folders: Iterable[RunFolder],
    *,
    processes: int,
    progress: Callable[[str], None],
) -> list[RunReport]:
    """Check runs; return what was found, in their order.

    Args:
        folders: of the runs.
        processes: number of worker processes.
        progress: shows a line.

    Raises:
        RunnerError: a worker process was killed.
    """
    listed = list(folders)
    reports = {folder.run_id: RunReport(run=folder.run_id) for folder in listed}
    units = [unit for folder in listed for unit in _units(folder)]
    for done, report in enumerate(_checked(units, processes), 1):
        reports[report.run].merge(report)
        progress(f"{done:,} of {len(units):,} checks of {len(listed):,} runs")
    return list(reports.values())


def _units(folder: RunFolder) -> Iterator[Unit]:
    """Yield the parts of a run's check; of a split run, a walk for each shard here."""
    for log in folder.shards() or (folder,):
        size = log.log.stat().st_size if log.log.exists() else 0
        yield Unit(log.path, log.part, Part.WALK, size)
    if folder.log.exists():
        yield Unit(folder.path, "", Part.SCORINGS, folder.log.stat().st_size)


def _checked(units: Sequence[Unit], processes: int) -> Iterator[RunReport]:
    """Check all units, in this process or in others, which end with this one.

    Raises:
        RunnerError: a worker process was killed.
    """
    workers = min(processes, len(units))
    if workers <= 1:
        yield from _check_all(units, {})
        return
    shares, parted = _shares(units, workers)
    loaded = {path: _data(path) for path in parted}
    gc.freeze()  # a collection in a worker would copy the pages of all data
    with ExitStack() as started:
        busy = [started.enter_context(_worker(share, loaded)) for share in shares]
        while busy:
            ready = wait(busy)
            for receiver in [pipe for pipe in busy if pipe in ready]:
                try:
                    report = receiver.recv()
                except EOFError as error:
                    raise RunnerError(
                        "A process of the check was killed, maybe for lack of memory: "
                        "try again with --processes 1."
                    ) from error
                if report is None:
                    busy.remove(receiver)
                else:
                    yield report


def _shares(units: Sequence[Unit], workers: int) -> tuple[list[list[Unit]], list[Path]]:
    """Return the units of each worker, and the runs that several of them check.

    The largest runs are given away first, each to the worker that has least.
    """
    by_run: dict[Path, list[Unit]] = {}
    for unit in sorted(units, key=lambda unit: -unit.size):
        by_run.setdefault(unit.folder, []).append(unit)
    most = sum(unit.size for unit in units) / workers
    shares: list[list[Unit]] = [[] for _ in range(workers)]
    parted = []
    for path, of_run in by_run.items():
        is_parted = sum(unit.size for unit in of_run) > most
        parted += [path] if is_parted else []
        for piece in [[unit] for unit in of_run] if is_parted else [of_run]:
            share = min(shares, key=lambda share: sum(unit.size for unit in share))
            share += piece
    return [share for share in shares if share], parted


def _data(path: Path) -> RunData:
    """Return the data of a run by its first settings; none if they cannot be had."""
    loaded = RunData()
    # each part of the check meets the same fault, and reports it
    with suppress(Exception), rescorer(RunFolder(path), loaded) as run:
        started = run.started
        run.load(run.placed(basis_at(run, started.settings, started.inputs, 1)))
    return loaded


@contextmanager
def _worker(units: Sequence[Unit], loaded: _Loaded) -> Iterator[Connection]:
    """Start a process that checks units; yield the pipe of its reports.

    It is killed at the end: an interrupt must not wait for it.
    """
    # a fork has all modules at once, and nothing has started a thread
    context = get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(units, loaded, sender), daemon=True)
    process.start()
    sender.close()
    try:
        yield receiver
    finally:
        process.kill()
        process.join()
        receiver.close()


def _work(
    units: Sequence[Unit],
    loaded: _Loaded,
    sender: Connection,
) -> None:
    """Send a report for each unit, and None at the end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    for report in _check_all(units, loaded):
        sender.send(report)
    sender.send(None)


def _check_all(units: Sequence[Unit], loaded: _Loaded) -> Iterator[RunReport]:
    """Check units; those of a run follow each other, and share its data."""
    for path, of_run in groupby(units, key=lambda unit: unit.folder):
        data = loaded.get(path) or RunData()
        for unit in of_run:
            yield check_unit(unit, data)


def check_unit(unit: Unit, data: RunData | None = None) -> RunReport:
    """Check one part of a run; the report says what cannot be read.

    Args:
        unit: the part.
        data: of the run; what is loaded is added.
    """
    folder = RunFolder(unit.folder, unit.shard)
    report = RunReport(run=folder.run_id)
    try:
        with rescorer(folder, data) as run:
            report.job = run.job.name
            now = Codes(code_fingerprint(run.job), code_hash(run.job))
            if unit.part is Part.WALK:
                _walk(run, report, now)
            else:
                check_scorings(run, report.steps, now)
            if report.differs and not verify(run.reader).is_sound:
                report.blame(LOG)
    except (RunnerError, StoreError) as error:
        report.problem = str(error)
    return report


def _walk(run: Rescorer, report: RunReport, now: Codes) -> None:
    """Compare plan, requests and parses, each with the code that wrote the event."""
    steps = (CheckedStep.PLAN, CheckedStep.REQUESTS, CheckedStep.PARSE)
    with whole_log(run) as reader:
        walk = LogWalk(run, reader, report.steps)
        try:
            walk.all()
        except NotChecked as error:
            for step in steps:
                report.steps[step].unchecked = str(error)
    for step in steps:
        tally = report.steps[step]
        if (first := tally.first) is not None:
            writer = max(seq for seq in walk.writers if seq <= first.seq)
            tally.explain(walk.writers[writer], now, step)
