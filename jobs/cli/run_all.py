"""The command `siftlog run-all`: runs jobs, models and settings from one file.

It is also imported for the help of all commands, so it imports hardly anything at the
top.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runner.cli import arguments, console
from runner.cli.request import OutputOptions, output_options

if TYPE_CHECKING:
    from runner.cli.progress import JointProgress
    from runner.matrix import CellResult, MatrixCell, MatrixFile
    from runner.run.context import RunContext


@click.command("run-all", short_help="Run several jobs and models together.")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--dry-run", is_flag=True, help="Show what would run, with its cost.")
@click.option(
    "--fail-fast",
    is_flag=True,
    help="Drain the other runs once a task of one run has failed.",
)
@arguments.no_score
@arguments.no_report
@arguments.figures
@arguments.strict
@arguments.runs_dir
@arguments.as_form
@arguments.as_json
def run_all(
    file: Path,
    *,
    dry_run: bool,
    fail_fast: bool,
    no_score: bool,
    runs_dir: Path,
    **parameters: Any,
) -> int:
    """Run the jobs, models and settings of FILE, side by side.

    All runs share the limits of their endpoints and one budget. Repeat the command to
    resume unfinished runs; no recorded answer is requested again. Ends with one table
    and one page of all runs.
    """
    from jobs.kit import run_matrix
    from runner.cli.console import (
        BUDGET,
        DONE,
        INTERRUPTED,
        print_json,
        print_note,
        print_text,
    )
    from runner.matrix import cells, read_matrix
    from runner.run.folder import lock_group

    matrix = read_matrix(file)
    output = output_options(parameters)
    every = cells(matrix, runs_dir)
    console.relax_collector()
    if dry_run:
        previewed_runs = run_matrix.preview_runs(every, runs_dir)
        if output.as_json:
            print_json(
                "siftlog.matrix-preview/1",
                run_matrix.preview_json(matrix, previewed_runs),
            )
        else:
            print_text(run_matrix.preview_text(matrix, previewed_runs))
        return DONE
    with lock_group(runs_dir, matrix.group) as folder:
        left = [cell for cell in every if not cell.is_over]
        if len(left) < len(every):
            print_note(
                f"{len(every) - len(left)} of {len(every)} runs are over already."
            )
        results = _carry_out(
            matrix, left, runs_dir, fail_fast=fail_fast, as_json=output.as_json
        )
        codes = _conclude(every, results, output, scores=not no_score)
        _show(matrix, every, folder, output)
    worst = _worst(codes)
    if worst in {BUDGET, INTERRUPTED}:
        print_note(f"Go on with all runs that are not over: siftlog run-all {file}")
    return worst


def _carry_out(
    matrix: MatrixFile,
    left: Sequence[MatrixCell],
    runs_dir: Path,
    *,
    fail_fast: bool,
    as_json: bool,
) -> Sequence[CellResult]:
    import asyncio

    from runner.cli.console import print_note
    from runner.cli.progress import JointProgress
    from runner.cli.run_steps import CLOCK
    from runner.matrix import carry_out

    progress = JointProgress(
        CLOCK, len(left), shares_budget=matrix.options.budget is not None
    )

    async def carry() -> Sequence[CellResult]:
        async with progress.display():
            return await carry_out(
                matrix,
                left,
                lambda cell: _run_context(cell, progress, runs_dir, as_json=as_json),
                print_note,
                fail_fast=fail_fast,
            )

    return asyncio.run(carry()) if left else []


def _run_context(
    cell: MatrixCell, progress: JointProgress, runs_dir: Path, *, as_json: bool
) -> RunContext:
    from runner.cli.console import print_json, print_note
    from runner.cli.run_steps import CLOCK
    from runner.run.context import RunContext

    run_id = cell.folder.run_id

    def launched() -> None:
        if as_json:
            print_json("siftlog.launch/1", {"event": "launch", "run": run_id})
        else:
            print_note(f"Run {run_id} of {cell.work.job.name} in {cell.folder.path}")

    return RunContext(
        clock=CLOCK,
        environment=arguments.environment(),
        runs_dir=runs_dir,
        notify=lambda sentence: print_note(f"{run_id}: {sentence}"),
        launched=launched,
        watch=progress.watch,
    )


def _conclude(
    every: Sequence[MatrixCell],
    results: Sequence[CellResult],
    output: OutputOptions,
    *,
    scores: bool,
) -> list[int]:
    """Score ended runs and those left unscored; return all exit codes."""
    from runner.cli import run_steps
    from runner.cli.console import FAILED_TASKS, print_note
    from runner.run.end import RunOutcome
    from store.database import open_reader
    from store.read.status import scorings

    by_run = {result.cell.folder.run_id: result for result in results}
    codes = []
    for cell in every:
        run = by_run.get(cell.folder.run_id)
        if run is not None and run.ended is None:
            print_note(f"siftlog: {cell.folder.run_id}: {run.error}")
            codes.append(FAILED_TASKS)
            continue
        is_unscored = True
        if run is None:
            with open_reader(cell.folder.log) as reader:
                is_unscored = not scorings(reader)
        is_cancelled = run is None and cell.state == "cancelled"
        ended = run.ended if run is not None else None
        codes.append(
            run_steps.end(
                cell.folder,
                cell.work,
                ended
                or RunOutcome(outcome="cancelled" if is_cancelled else "finished"),
                output,
                scores=scores and is_unscored,
                shows=False,  # the table has all runs
            )
        )
    return codes


def _show(
    matrix: MatrixFile, every: Sequence[MatrixCell], folder: Path, output: OutputOptions
) -> None:
    """Write the table and the page, and print the table."""
    import json

    from jobs.kit import run_matrix
    from jobs.kit.run_matrix import matrix_rows, page
    from runner.cli.console import print_json, print_raw, print_text
    from runner.cli.run_steps import CLOCK
    from runner.score.render import REPORT
    from runner.table_files import csv_lines
    from runner.table_rendering import typeset

    run_rows = matrix_rows(every, CLOCK)
    document = run_matrix.as_json(matrix.group, run_rows)
    (folder / "comparison.csv").write_text(
        csv_lines(run_matrix.COMPARISON.lines(run_rows)), "utf-8"
    )
    (folder / "comparison.json").write_text(
        json.dumps(document, indent=1) + "\n", "utf-8"
    )
    if not output.no_report:
        whole = page(matrix.group, run_rows, matrix.options.budget)
        (folder / REPORT).write_text(whole, "utf-8")
    if output.as_json:
        print_json("siftlog.matrix/1", {"event": "compared", **document})
        return
    if output.form != "text":
        print_raw(
            typeset([run_matrix.print_table(matrix.group, run_rows)], output.form)
        )
        return
    print_text(run_matrix.text(matrix.group, run_rows))
    print_text(f"files: {folder}")


def _worst(codes: Sequence[int]) -> int:
    """Return one exit code for all: the most urgent one.

    The order: interrupted, over budget, failed tasks, failed checks.
    """
    from runner.cli.console import BUDGET, CHECK_FAILED, DONE, FAILED_TASKS, INTERRUPTED

    order = (INTERRUPTED, BUDGET, FAILED_TASKS, CHECK_FAILED, DONE)
    # such as an unavailable endpoint, or a run that cannot be scored
    seen = {code if code in order else FAILED_TASKS for code in codes}
    return next((code for code in order if code in seen), DONE)
