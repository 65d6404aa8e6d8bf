"""The command `siftlog report`: names the report of a scoring, drawn if need be.

It is imported for the help of all verbs too, and so imports almost nothing itself.
"""

from __future__ import annotations

from pathlib import Path

import click

from runner.cli import arguments


@click.command()
@arguments.run_argument
@click.option("--scoring", type=int, help="Number of a scoring.  [default: the newest]")
@click.option("--rebuild", is_flag=True, help="Draw it again though it is there.")
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Copy the page there too: it needs no other file.",
)
@arguments.runs_dir
@arguments.as_json
def report(
    run_name: str,
    scoring: int | None,
    rebuild: bool,
    out: Path | None,
    runs_dir: Path,
    as_json: bool,
) -> int:
    """Say where RUN's report lies.

    Where it was left out or is gone it is drawn first: from a fresh replay of what the
    scoring had read, under its settings, and only if that gives the same numbers again.
    No model is called.
    """
    import shutil

    from runner.cli.console import DONE, print_json, print_text
    from runner.score.render import REPORT
    from runner.score.repeat import chosen
    from store.database import open_reader
    from store.read.status import scorings
    from store.runs import resolve

    folder = resolve(runs_dir, run_name)
    with open_reader(folder.log) as reader:
        recorded = chosen(folder.run_id, scorings(reader), scoring)
    path = folder.scores / str(recorded.number) / REPORT
    is_drawn = rebuild or not path.exists()
    if is_drawn:
        from runner.score.repeat import redraw

        redraw(folder, recorded)
    if out is not None:
        shutil.copyfile(path, out)
    if as_json:
        print_json(
            {
                "run": folder.run_id,
                "scoring": recorded.number,
                "report": str(path),
                "drawn": is_drawn,
            }
        )
    else:
        print_text(str(path))
    return DONE
