"""The command budget: shows the cost of a run, or adds to its budget."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from runner.cli import arguments
from runner.cli.console import DONE, print_json, print_text
from runner.cli.control import ask, control_options, control_request, show_dry


@click.command()
@arguments.run_argument
@click.option(
    "--add",
    type=click.FloatRange(min=0, min_open=True),
    metavar="USD",
    help="USD to add to the budget.",
)
@control_options
def budget(*, add: float | None, **shared: Any) -> int:
    """Show the cost and the budget of RUN, or raise the budget."""
    from runner.errors import UsageError
    from store.control import preview_open_tasks, preview_sentence
    from store.database import open_reader

    manner = control_request(**shared)
    with open_reader(manner.folder.log) as reader:
        preview = preview_open_tasks(reader)
    if add is not None and preview.cap_usd is None:
        # a queued request would be rejected later, when its user no longer watches
        raise UsageError(
            f"Run {manner.folder.run_id} has no budget to add to; set "
            f"one on resume: siftlog resume {manner.folder.run_id} "
            "--budget USD"
        )
    if add is not None:
        payload = {"add_usd": add}
        if manner.dry_run:
            return show_dry(manner, "budget", payload, preview)
        return ask(manner, "budget", payload)
    if manner.as_json:
        print_json("siftlog.budget/1", {"run": manner.folder.run_id, **asdict(preview)})
    else:
        print_text(
            preview_sentence("budget", {}, preview, manner.folder.run_id).removesuffix(
                "."
            )
        )
    return DONE
