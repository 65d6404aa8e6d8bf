"""Checks recorded runs with the code of today, in several processes.

A run is checked in two parts, which share nothing: the walk over its events, and its
scorings. So two processors are busy also with a single large run. Nothing is written
into a run.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from enum import Enum
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import NamedTuple

from runner.errors import RunnerError
from runner.fingerprint import code_fingerprint, code_hash
from runner.regress.log_walk import LogWalk, NotChecked, whole_log
from runner.regress.report import LOG, CheckedStep, Codes, RunReport
from runner.regress.scorings import check_scorings
from runner.score.repeat import Rescorer, rescorer
from store.errors import StoreError
from store.runs import RunFolder
from store.verify import verify


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
    prepare: Callable[[], None],
) -> list[RunReport]:
    """Check runs; return what was found, in their order.

    Args:
        folders: of the runs.
        processes: number of worker processes.
        progress: shows a line.
        prepare: called in each worker process before its first part.

    Raises:
        RunnerError: a worker process was killed.
    """
    listed = list(folders)
    reports = {folder.run_id: RunReport(run=folder.run_id) for folder in listed}
    units = [unit for folder in listed for unit in _units(folder)]
    units.sort(key=lambda unit: -unit.size)
    for done, report in enumerate(_checked(units, processes, prepare), 1):
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


def _checked(
    units: Sequence[Unit], processes: int, prepare: Callable[[], None]
) -> Iterator[RunReport]:
    """Check all units, in this process or in others, which end with this one.

    Raises:
        RunnerError: a worker process was killed.
    """
    workers = min(processes, len(units))
    if workers <= 1:
        yield from map(check_unit, units)
        return
    with ExitStack() as started:
        # the largest units are first, and spread
        busy = [
            started.enter_context(_worker(units[at::workers], prepare))
            for at in range(workers)
        ]
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


@contextmanager
def _worker(units: Sequence[Unit], prepare: Callable[[], None]) -> Iterator[Connection]:
    """Start a process that checks units; yield the pipe of its reports.

    It is killed at the end: an interrupt must not wait for it.
    """
    # a fork has all modules at once, and nothing has started a thread
    context = get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(units, prepare, sender), daemon=True)
    process.start()
    sender.close()
    try:
        yield receiver
    finally:
        process.kill()
        process.join()
        receiver.close()


def _work(
    units: Sequence[Unit], prepare: Callable[[], None], sender: Connection
) -> None:
    """Send a report for each unit, and None at the end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent ends this process
    prepare()
    for unit in units:
        sender.send(check_unit(unit))
    sender.send(None)


def check_unit(unit: Unit) -> RunReport:
    """Check one part of a run; the report says what cannot be read."""
    folder = RunFolder(unit.folder, unit.shard)
    report = RunReport(run=folder.run_id)
    try:
        with rescorer(folder) as run:
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
