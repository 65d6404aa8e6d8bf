"""The command budget: shows what a run has spent, or adds to its budget."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from runner.cli import choices
from runner.cli.speech import DONE, record, text


@click.command()
@choices.run_argument
@click.option(
    "--add",
    type=click.FloatRange(min=0, min_open=True),
    metavar="USD",
    help="Dollars more.",
)
@choices.asking
def budget(*, add: float | None, **given: Any) -> int:
    """Show what RUN has spent and may spend, or add dollars to its budget."""
    from runner.cli.asking import ask, manner, show_dry
    from runner.errors import UsageError
    from store.control import preview_open_tasks, preview_sentence
    from store.database import open_reader

    how = manner(given)
    with open_reader(how.folder.log) as reader:
        stakes = preview_open_tasks(reader)
    if add is not None and stakes.cap_usd is None:
        # a request that waits would be refused when nobody looks any more
        raise UsageError(
            f"Run {how.folder.run_id} has no budget, so there is nothing to add to; "
            f"give it one as it is taken up: siftlog resume {how.folder.run_id} "
            "--budget USD"
        )
    if add is not None:
        payload = {"add_usd": add}
        if how.dry_run:
            return show_dry(how, "budget", payload, stakes)
        return ask(how, "budget", payload)
    if how.as_json:
        record({"run": how.folder.run_id, **asdict(stakes)})
    else:
        text(
            preview_sentence("budget", {}, stakes, how.folder.run_id).removesuffix(".")
        )
    return DONE
