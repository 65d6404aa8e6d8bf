"""The verb `siftlog history`: what a job's runs reached, and whether it fell.

It is imported for the help of all verbs too, and so imports almost nothing itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runner.cli import choices

if TYPE_CHECKING:
    from jobs.history.change import Change
    from jobs.history.comparison import Comparison
    from jobs.history.history import History
    from jobs.history.reading import Remembered

LAST, BEST = "last", "best"


@click.command()
@click.argument("job", metavar="JOB")
@click.option(
    "--history",
    "folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Folder of the runs.  [default: --runs-dir]",
)
@click.option(
    "--against",
    metavar="last|best|RUN",
    help="Compare the newest run with that one; exit with 6 if it fell.",
)
@click.option(
    "--max-drop",
    type=click.FloatRange(0, 1),
    help="By how much the mean may fall.  [default: 0]",
)
@click.option(
    "--across-databases",
    "across",
    is_flag=True,
    help="Compare runs that searched another database too.",
)
@click.option(
    "--plot",
    type=click.Path(path_type=Path, file_okay=False),
    help="Draw history.svg and history.png into that folder.",
)
@choices.runs_dir
@choices.as_json
def history(job: str, folder: Path | None, against: str | None, **given: Any) -> int:
    """Show what the runs of JOB reached, the newest scoring of each.

    With --against the newest run is compared on the items for which both asked for the
    same of the same data. It is an alert, with exit code 6, if the mean falls by more
    than --max-drop, or an item that passed fails; of replicates, by more than they lie
    apart. With nothing to compare it with, that is said, and the exit code is 0.
    """
    from jobs.history import reading, rendering
    from jobs.history.history import history as over
    from runner.cli.speech import CHECK_FAILED, DONE, record, tell, text
    from runner.errors import UsageError
    from runner.registry import load_job

    if given["max_drop"] is not None and against is None:
        raise UsageError(
            "--max-drop says how far a comparison may fall; add --against."
        )
    max_drop = given["max_drop"] or 0.0
    runs_dir = folder or given["runs_dir"]
    name = load_job(job).name
    found = reading.found(runs_dir, name)
    for sentence in found.unread:
        tell(f"note: {sentence}")
    if not found.runs:
        tell(f"There is no scored run of {name} with a history in {runs_dir}.")
        return DONE
    own = over(found.runs, across=given["across"])
    made = () if against is None else tuple(_compared(own, found.runs, against, given))
    told = [(each, tuple(_changes(each, found.runs))) for each in made]
    if given["as_json"]:
        listed = [rendering.compared_json(*each, max_drop=max_drop) for each in told]
        record({**rendering.as_json(own), "compared": listed})
    else:
        text(rendering.text(own))
        for each in told:
            text(rendering.compared(*each, max_drop=max_drop))
    if given["plot"] is not None:
        _draw(own, given["plot"])
    if against is not None and not made:
        tell(f"{own.newest.folder.run_id} has no run to be compared with: {_why(own)}.")
    alerts = [sentence for each in made for sentence in each.alerts(max_drop)]
    for sentence in alerts:
        tell(f"siftlog: {sentence}")
    return CHECK_FAILED if alerts else DONE


def _compared(
    own: History, every: Sequence[Remembered], against: str, given: dict[str, Any]
) -> Iterator[Comparison]:
    """The newest run's models, each beside the row that is meant."""
    from jobs.history.comparison import with_best
    from jobs.history.reading import rows

    earlier = own.earlier
    if against not in {LAST, BEST}:
        earlier = rows([_named(own, every, against)])
    for line in own.now:
        found = (
            line.previous
            if against == LAST
            else with_best(line.row, earlier, across=given["across"])
        )
        if found is not None:
            yield found


def _named(own: History, every: Sequence[Remembered], name: str) -> Remembered:
    """The run that is meant by an id or its beginning."""
    from runner.errors import UsageError

    newest = own.newest.folder.run_id
    named = [run for run in every if run.folder.run_id == name] or [
        run for run in every if run.folder.run_id.startswith(name)
    ]
    if len(named) != 1:
        raise UsageError(
            f"--against {name} names {len(named)} of the scored runs: type the id of "
            "one, or last, or best."
        )
    if named[0].folder.run_id == newest:
        raise UsageError(f"{newest} is the newest run itself; name an earlier one.")
    return named[0]


def _changes(comparison: Comparison, every: Sequence[Remembered]) -> Iterator[Change]:
    from jobs.history.change import changes
    from jobs.history.reading import parts

    runs = {run.folder.run_id: run for run in every}
    now, then = (parts(runs[row.run]) for row in (comparison.now, comparison.then))
    yield from changes(comparison, now, then)


def _draw(own: History, folder: Path) -> None:
    from jobs.history.figure import figure
    from jobs.report.figures import write

    write([figure(own)], folder)


def _why(own: History) -> str:
    """What stands in the way of a comparison."""
    if own.newest.milestone.partial:
        return "it is unfinished (siftlog resume, then siftlog score)"
    if any(line.data_changed for line in own.lines):
        return "the others searched another database (--across-databases lets them in)"
    return "no other finished run asked for the same"
