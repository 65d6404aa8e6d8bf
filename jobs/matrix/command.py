"""The verb `siftlog run-all`: several jobs, models and settings from one file.

It is imported for the help of all verbs too, and so imports almost nothing itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runner.cli import choices, collector

if TYPE_CHECKING:
    from runner.launching.shell import Shell
    from runner.matrix.cell import Cell
    from runner.matrix.file import MatrixFile
    from runner.matrix.working import Came


@click.command("run-all")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--dry-run", is_flag=True, help="Only say what would run, and its cost.")
@click.option(
    "--fail-fast",
    is_flag=True,
    help="Once something failed in a run, start no call of the others.",
)
@choices.no_score
@choices.no_report
@choices.strict
@choices.runs_dir
@choices.as_form
@choices.as_json
def run_all(file: Path, *, dry_run: bool, **given: Any) -> int:
    """Run the jobs, models and settings of FILE, side by side.

    All runs share the limits of their endpoints and one budget. Each is a run like any
    other; typed again, this goes on with those that are not over and asks nothing
    twice. At the end there is one table, and one page, of them all.
    """
    from jobs.matrix import foretold
    from runner.cli.speech import BUDGET, DONE, INTERRUPTED, record, tell, text
    from runner.launching.group import held
    from runner.matrix.cell import cells
    from runner.matrix.file import read_matrix

    matrix = read_matrix(file)
    runs_dir = given["runs_dir"]
    every = cells(matrix, runs_dir)
    collector.calm()
    if dry_run:
        made = foretold.foretold(every, runs_dir)
        if given["as_json"]:
            record(foretold.as_json(matrix, made))
        else:
            text(foretold.text(matrix, made))
        return DONE
    with held(runs_dir, matrix.group) as folder:
        left = [cell for cell in every if not cell.is_over]
        if len(left) < len(every):
            tell(f"{len(every) - len(left)} of {len(every)} runs are over already.")
        came = _carry_out(matrix, left, given)
        codes = _conclude(every, came, given)
        _show(matrix, every, folder, given)
    worst = _worst(codes)
    if worst in {BUDGET, INTERRUPTED}:
        tell(f"Go on with all runs that are not over: siftlog run-all {file}")
    return worst


def _carry_out(
    matrix: MatrixFile, left: Sequence[Cell], given: dict[str, Any]
) -> Sequence[Came]:
    import asyncio

    from runner.cli.joint_progress import JointProgress
    from runner.cli.session import CLOCK
    from runner.cli.speech import tell
    from runner.matrix.working import carry_out

    progress = JointProgress(
        CLOCK, len(left), shares_budget=matrix.options.budget is not None
    )

    async def carry() -> Sequence[Came]:
        async with progress.shown():
            return await carry_out(
                matrix,
                left,
                lambda cell: _shell(cell, progress, given),
                tell,
                fail_fast=given["fail_fast"],
            )

    return asyncio.run(carry()) if left else []


def _shell(cell: Cell, progress: Any, given: dict[str, Any]) -> Shell:  # noqa: ANN401 - its class is imported late
    from runner.cli.session import CLOCK
    from runner.cli.speech import record, tell
    from runner.launching.shell import Shell

    run_id = cell.folder.run_id

    def launched() -> None:
        if given["as_json"]:
            record({"event": "launch", "run": run_id})
        else:
            tell(f"Run {run_id} of {cell.work.job.name} in {cell.folder.path}")

    return Shell(
        clock=CLOCK,
        environment=choices.environment(),
        runs_dir=given["runs_dir"],
        tell=lambda sentence: tell(f"{run_id}: {sentence}"),
        launched=launched,
        watch=progress.watch,
    )


def _conclude(
    every: Sequence[Cell], came: Sequence[Came], given: dict[str, Any]
) -> list[int]:
    """Score what ended, and what an earlier process left unscored; all exit codes."""
    from runner.cli import session
    from runner.cli.speech import FAILED_TASKS, tell
    from runner.control.ending import Ended
    from store.database import open_reader
    from store.read.status import scorings

    by_run = {each.cell.folder.run_id: each for each in came}
    codes = []
    for cell in every:
        run = by_run.get(cell.folder.run_id)
        if run is not None and run.ended is None:
            tell(f"siftlog: {cell.folder.run_id}: {run.why}")
            codes.append(FAILED_TASKS)
            continue
        scores = not given["no_score"]
        if run is None:
            with open_reader(cell.folder.log) as reader:
                scores = scores and not scorings(reader)
        is_cancelled = run is None and cell.state == "cancelled"
        ended = run.ended if run is not None else None
        codes.append(
            session.end(
                cell.folder,
                cell.work,
                ended or Ended(outcome="cancelled" if is_cancelled else "finished"),
                given,
                scores=scores,
                shows=False,  # the table does, of all runs
            )
        )
    return codes


def _show(
    matrix: MatrixFile, every: Sequence[Cell], folder: Path, given: dict[str, Any]
) -> None:
    """Write the table and the page, and print the table."""
    import json

    from jobs.matrix import rendering
    from jobs.matrix.page import page
    from jobs.matrix.standing import standings
    from runner.cli.session import CLOCK
    from runner.cli.speech import raw, record, text
    from runner.records.render import csv_lines
    from runner.records.reporting import REPORT
    from runner.typeset import typeset

    found = standings(every, CLOCK)
    shown = rendering.as_json(matrix.group, found)
    (folder / "comparison.csv").write_text(csv_lines(rendering.rows(found)), "utf-8")
    (folder / "comparison.json").write_text(json.dumps(shown, indent=1) + "\n", "utf-8")
    if not given["no_report"]:
        whole = page(matrix.group, found, matrix.options.budget)
        (folder / REPORT).write_text(whole, "utf-8")
    if given["as_json"]:
        record({"event": "compared", **shown})
        return
    if given["form"] != "text":
        raw(typeset([rendering.sheet(matrix.group, found)], given["form"]))
        return
    text(rendering.text(matrix.group, found))
    text(f"files: {folder}")


def _worst(codes: Sequence[int]) -> int:
    """One exit code for all: what a person must see to first.

    Something interrupted, then money, then what failed, then what a check found.
    """
    from runner.cli.speech import BUDGET, CHECK_FAILED, DONE, FAILED_TASKS, INTERRUPTED

    order = (INTERRUPTED, BUDGET, FAILED_TASKS, CHECK_FAILED, DONE)
    # an endpoint that is out, or a run that cannot be scored, failed here
    seen = {code if code in order else FAILED_TASKS for code in codes}
    return next((code for code in order if code in seen), DONE)
