"""The command `siftlog history`: shows the scores of runs, and alerts on drops.

It is also imported for the help of all commands, so it imports hardly anything at the
top.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runner.cli import arguments

if TYPE_CHECKING:
    from jobs.kit.history import History, PartChange, RowComparison, ScoredRun


@click.command()
@click.argument("job", metavar="JOB")
@click.option(
    "--against",
    metavar="last|best|RUN",
    help="Compare the newest run with this one; exit with 6 on a regression.",
)
@click.option(
    "--max-drop",
    type=click.FloatRange(0, 1),
    help="Maximum drop of the mean.  [default: 0]",
)
@click.option(
    "--across-databases",
    "across",
    is_flag=True,
    help="Also compare runs that searched different databases.",
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path, file_okay=False),
    help="Write history.svg and history.png into this folder.",
)
@arguments.option(
    "--runs-dir",
    "--history",
    "runs_dir",
    type=click.Path(path_type=Path),
    default=Path("runs"),
    show_default=True,
    help="Folder of runs.",
)
@arguments.as_form
@arguments.as_json
def history(job: str, runs_dir: Path, against: str | None, **options: Any) -> int:
    """Show the newest scoring of every run of JOB.

    With --against, compares the newest run on the items for which both runs asked the
    same of the same data. Exits with 6 if the mean falls by more than --max-drop, or an
    item that passed fails; with replicates, by more than their spread. With nothing to
    compare, says so and exits with 0.
    """
    from jobs.kit import history, history_rendering
    from jobs.kit.history import chosen_comparisons, no_comparison_reason
    from jobs.kit.history import job_history as over
    from runner.cli.console import (
        CHECK_FAILED,
        DONE,
        print_json,
        print_note,
        print_raw,
        print_text,
    )
    from runner.errors import UsageError
    from runner.registry import load_job
    from runner.table_rendering import typeset

    if options["max_drop"] is not None and against is None:
        raise UsageError(
            "--max-drop says how far a comparison may fall; add --against."
        )
    max_drop = options["max_drop"] or 0.0
    name = load_job(job).name
    job_runs = history.read_runs(runs_dir, name)
    for sentence in job_runs.unread:
        print_note(f"note: {sentence}")
    if not job_runs.runs:
        print_note(
            f"No run of {name} in {runs_dir} is in the history; siftlog score RUN puts "
            "one into it, if the job keeps one."
        )
        return DONE
    newest_history = over(job_runs.runs, across=options["across"])
    comparisons_by_model = (
        {}
        if against is None
        else chosen_comparisons(
            newest_history, job_runs.runs, against, across=options["across"]
        )
    )
    comparisons = [
        comparison
        for comparison in comparisons_by_model.values()
        if comparison is not None
    ]
    comparison_changes = [
        (comparison, tuple(_changes(comparison, job_runs.runs)))
        for comparison in comparisons
    ]
    if options["as_json"]:
        compared = [
            history_rendering.comparison_json(*pair, max_drop=max_drop)
            for pair in comparison_changes
        ]
        print_json(
            "siftlog.history/1",
            {**history_rendering.as_json(newest_history), "compared": compared},
        )
    elif options["form"] != "text":
        print_raw(
            typeset([history_rendering.print_table(newest_history)], options["form"])
        )
    else:
        print_text(history_rendering.text(newest_history))
        for pair in comparison_changes:
            print_text(history_rendering.comparison_text(*pair, max_drop=max_drop))
    if options["plot"] is not None:
        _draw(newest_history, options["plot"])
    for model in (
        model
        for model, comparison in comparisons_by_model.items()
        if comparison is None
    ):
        print_note(
            f"note: {model} has no run to be compared with: "
            f"{no_comparison_reason(newest_history)}."
        )
    alerts = [
        sentence
        for comparison in comparisons
        for sentence in comparison.alerts(max_drop)
    ]
    for sentence in alerts:
        print_note(f"siftlog: {sentence}")
    return CHECK_FAILED if alerts else DONE


def _changes(
    comparison: RowComparison, every: Sequence[ScoredRun]
) -> Iterator[PartChange]:
    from jobs.kit.history import part_changes, parts

    runs = {run.folder.run_id: run for run in every}
    now, then = (parts(runs[row.run]) for row in (comparison.now, comparison.then))
    yield from part_changes(comparison, now, then)


def _draw(newest_history: History, folder: Path) -> None:
    from jobs.kit.history_rendering import history_figure
    from jobs.kit.report.figures import write_figures
    from runner.errors import RunnerError

    for failed in write_figures([history_figure(newest_history)], folder):
        raise RunnerError(f"The figure could not be drawn ({failed.fault}).")
