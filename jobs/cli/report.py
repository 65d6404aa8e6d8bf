"""The command `siftlog report`: prints the path of a report, built if needed.

It is also imported for the help of all commands, so it imports hardly anything at the
top.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from runner.cli import arguments

if TYPE_CHECKING:
    from runner.score.render import FigureFormat


@click.command()
@arguments.run_argument
@click.option(
    "--scoring", type=int, help="Number of the scoring.  [default: the newest]"
)
@click.option("--rebuild", is_flag=True, help="Rebuild an existing report.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also copy the self-contained page there.",
)
@arguments.figures
@arguments.runs_dir
@arguments.as_json
def report(
    run_name: str,
    scoring: int | None,
    rebuild: bool,
    out: Path | None,
    figures: tuple[FigureFormat, ...],
    runs_dir: Path,
    as_json: bool,
) -> int:
    """Print the path of RUN's report.

    A missing report is built first, from a fresh replay of the events that the scoring
    read, under its settings, and only if it reproduces the numbers. No model is called.
    With --figures, the figures are drawn in these formats.
    """
    import shutil

    from runner.cli.console import DONE, print_json, print_note, print_text
    from runner.score.render import REPORT
    from runner.score.repeat import chosen
    from store.database import open_reader
    from store.read.status import scorings
    from store.runs import resolve

    folder = resolve(runs_dir, run_name)
    with open_reader(folder.log) as reader:
        recorded = chosen(
            folder.run_id, scorings(reader), scoring, is_alive=folder.is_alive()
        )
    path = folder.scores / str(recorded.number) / REPORT
    is_drawn = rebuild or bool(figures) or not path.exists()
    if is_drawn:
        from runner.score.repeat import redraw

        redraw(folder, recorded, figures)
    if out is not None:
        shutil.copyfile(path, out)
    if folder.is_alive():
        print_note(
            f"Run {folder.run_id} is still running: this report is of its scoring "
            f"{recorded.number}, up to event {recorded.seq:,}; the next one is written "
            "at the end of the run."
        )
    if as_json:
        print_json(
            "siftlog.report/1",
            {
                "run": folder.run_id,
                "scoring": recorded.number,
                "report": str(path),
                "drawn": is_drawn,
            },
        )
    else:
        print_text(str(out or path))
    return DONE
