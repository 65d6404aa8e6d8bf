"""The command regress: runs the code of today over all recorded runs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from runner.cli import arguments, console
from runner.cli.console import CHECK_FAILED, DONE, print_json, print_note, print_text

if TYPE_CHECKING:
    from runner.regress.report import RunReport, StepTally
    from store.document import Block, Column, TableBlock

DETAILED: Final = 10
"""Runs whose differences are listed below the table."""


@click.command()
@click.argument(
    "runs_dir", type=click.Path(path_type=Path), default=Path("runs"), required=False
)
@click.option(
    "--processes",
    type=click.IntRange(min=1),
    metavar="N",
    help="Worker processes.  [default: the number of processors]",
)
@arguments.as_json
def regress(runs_dir: Path, processes: int | None, as_json: bool) -> int:
    """Check what today's code changes in the runs of RUNS_DIR; exit 6 if anything.

    RUNS_DIR is a folder of runs, or one run; the default is runs.

    For each run, repeats the plan, the hashes of all requests, the parse of all
    replies, and the recorded scorings: their verdicts and the bytes of scorecard.json.
    Of several scorings with the same settings, inputs and answers, the newest counts,
    so siftlog score RUN accepts a change.

    The table counts what differs, and names the first event that does and the cause:
    files of the job, the kit, the metrics or the engine, or a dependency. No model is
    called, and nothing is written.
    """
    from runner.cli.paced import paced_progress
    from runner.errors import UsageError
    from runner.regress.check import check_runs
    from store.clock import SystemClock
    from store.document import as_text
    from store.runs import RunFolder, list_runs

    console.relax_collector()
    folder = RunFolder(runs_dir)
    is_run = folder.log.is_file() or bool(folder.shards())
    folders = [folder] if is_run else list_runs(runs_dir)
    if not folders:
        raise UsageError(f"There is no run in {runs_dir}: name a folder of runs.")
    with paced_progress(SystemClock()) as progress:
        reports = check_runs(
            folders,
            processes=processes or os.cpu_count() or 1,
            progress=progress,
        )
    if as_json:
        for report in reports:
            print_json("siftlog.regression/1", _values(report))
    else:
        print_text(as_text([_table(reports), *_details(reports)]))
    for report in reports:
        for sentence in _unchecked(report):
            print_note(f"note: {report.run}: {sentence}")
    return CHECK_FAILED if any(report.differs for report in reports) else DONE


def _values(report: RunReport) -> dict[str, Any]:
    return {
        "run": report.run,
        "job": report.job,
        "differs": report.differs,
        "causes": list(report.causes),
        "steps": {step.value: asdict(tally) for step, tally in report.steps.items()},
        "problem": report.problem or None,
    }


def _table(reports: Sequence[RunReport]) -> TableBlock:
    from runner.regress.report import CheckedStep
    from store.document import Numbers, TableBlock, Words

    columns: list[Column] = [
        Words("run", 20, keeps_end=True),
        *map(Numbers, ("plan", "request", "parse", "score", "card")),
        Numbers("event"),
        Words("cause", 14),
    ]
    rows = [
        (
            report.run,
            *(_count(report.steps[step]) for step in CheckedStep),
            report.first.seq if report.first else "",
            ", ".join(report.causes),
        )
        for report in reports
    ]
    return TableBlock(columns, rows, indent=0, is_wide=True)


def _count(tally: StepTally) -> str | int | None:
    """Return the number of differences; "=": none; None: nothing was compared."""
    if tally.differs:
        return tally.differs
    return "=" if tally.compared else None


def _details(reports: Sequence[RunReport]) -> Iterator[Block]:
    """Yield the first difference of each step, and a summary."""
    from runner.regress.report import LOG, UNKNOWN
    from store.document import Fact, Heading, plural

    differing = [report for report in reports if report.differs]
    for report in islice(differing, DETAILED):
        yield Heading(report.run)
        for step, tally in report.steps.items():
            if (first := tally.first) is not None:
                count = f"{tally.differs:,} of {tally.compared:,} differ"
                yield Fact(step.value, count)
                yield Fact("first", f"event {first.seq:,}, {first.where}")
                yield Fact("recorded", first.recorded)
                yield Fact("now", first.now)
                yield Fact("cause", ", ".join((*tally.causes, *tally.changes)))
    if len(differing) > DETAILED:
        yield f"{len(differing) - DETAILED:,} further runs differ: see --json."
    yield ""
    causes = {cause for report in differing for cause in report.causes}
    if UNKNOWN in causes:
        yield "unknown: recorded before logs had a hash of each class of files."
    if LOG in causes:
        yield "log: the log is damaged; see siftlog verify RUN."
    unchecked = sum(bool(report.problem) for report in reports)
    yield (
        f"{plural(len(reports), 'run')}: {len(differing):,} differ, "
        f"{len(reports) - len(differing) - unchecked:,} do not, "
        f"{unchecked:,} not checked."
    )


def _unchecked(report: RunReport) -> Iterator[str]:
    """Yield what was not checked, and why; the same reason once."""
    if report.problem:
        yield f"not checked: {report.problem}"
    steps: dict[str, list[str]] = {}
    for step, tally in report.steps.items():
        if tally.unchecked:
            steps.setdefault(tally.unchecked, []).append(step.value)
    for reason, names in steps.items():
        yield f"{', '.join(names)} not checked: {reason}"
