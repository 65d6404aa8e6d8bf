"""The command `siftlog diff`: explains why two scorings of a run differ."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from runner.cli import arguments, console
from runner.errors import UsageError


class ScoringNumber(click.ParamType[int]):
    """Type of the number of a scoring."""

    name = "integer"

    def convert(
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> int:
        """Return the number.

        Raises:
            UsageError: the word is no number, and may be the id of a run.
        """
        try:
            return int(value)
        except ValueError:
            del param
            run = ctx.params.get("run_name") if ctx is not None else None
            raise UsageError(
                "diff compares two scorings of one run, by their numbers, and "
                f"{value!r} is no number; siftlog compare {run or 'RUN'} {value} "
                "compares runs."
            ) from None


@click.command(short_help="Explain why two scorings differ.")
@arguments.run_argument
@click.argument("before", metavar="[N]", type=ScoringNumber(), required=False)
@click.argument("after", metavar="[M]", type=ScoringNumber(), required=False)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="PATH",
    help="Metric to show with its items; * matches any characters; repeatable."
    "  [default: all, with the headline's items]",
)
@click.option(
    "--top",
    type=click.IntRange(min=0),
    default=10,
    show_default=True,
    help="Number of items and verdicts per part.",
)
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Also write an HTML page there.",
)
@arguments.runs_dir
@arguments.as_json
def diff(
    run_name: str,
    before: int | None,
    after: int | None,
    html: Path | None,
    **options: Any,
) -> int:
    """Explain why two scorings of a run differ, down to single items.

    M defaults to the newest scoring, N to the one before it.

    RUN is scored again with one cause changed at a time: answers, inputs, settings,
    and code. The part of the code is the difference to the recorded scoring. No model
    is called and nothing is recorded.
    """
    from jobs.kit.differences.attribution import find_difference
    from jobs.kit.differences.rendering import as_json
    from jobs.kit.differences.rendering import text as rendered
    from runner.cli.console import DONE, print_json, print_note, print_text
    from runner.score.repeat import rescorer
    from store.runs import resolve

    folder = resolve(options["runs_dir"], run_name)
    console.relax_collector()
    with rescorer(folder) as run:
        last = run.recorded(after)
        if before is None and last.number == 1:
            raise UsageError(
                f"Run {folder.run_id} has one scoring, and a difference needs "
                f"two: siftlog score {folder.run_id} makes another."
            )
        difference = find_difference(
            run,
            run.recorded(last.number - 1 if before is None else before),
            last,
            progress=lambda cause: print_note(f"scoring again: {cause}"),
        )
    if html is not None:
        from jobs.kit.differences.page import page

        html.write_text(
            page(difference, options["metrics"]), encoding="utf-8", newline=""
        )
    if options["as_json"]:
        print_json("siftlog.difference/1", as_json(difference, options["metrics"]))
    else:
        print_text(rendered(difference, options["metrics"], options["top"]))
    return DONE
