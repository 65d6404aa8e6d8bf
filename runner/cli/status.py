"""The command status: a snapshot of a run."""

from __future__ import annotations

from pathlib import Path

import click

from runner.cli import choices
from runner.cli.speech import CHECK_FAILED, DONE, record, say_loss, text
from store.clock import SystemClock

CLOCK = SystemClock()


CHECKS = {"stalled": 6, "lost": 6, "budget_stop": 4, "drained": 5}
"""Exit codes of `status --check`; finished with failed tasks is 3."""


@click.command()
@choices.run_argument
@click.option("--check", is_flag=True, help="Exit code by state: 3, 4, 5 or 6.")
@choices.at
@click.option(
    "--ship",
    "place",
    metavar="DIR|URL",
    help="Say what is there of the logs that shards of RUN carry there; opens no log.",
)
@choices.runs_dir
@choices.as_json
def status(
    run_name: str,
    check: bool,
    moment_name: str | None,
    place: str | None,
    runs_dir: Path,
    as_json: bool,
) -> int:
    """Say how RUN stands: once, where siftlog watch goes on.

    With --at it says how RUN stood, from the events up to there alone; a million of
    them take some seconds. With --check the exit code tells a state: 6 stalled or
    lost, 4 budget reached, 5 drained, 3 finished with failed tasks, else 0; with
    --ship it is 6 unless all has ended.
    """
    if place is not None:
        from runner.cli.carried import say_carried

        if moment_name is not None:
            raise click.UsageError("--at looks into logs, and --ship opens none.")
        has_ended = say_carried(run_name, place, as_json=as_json)
        return CHECK_FAILED if check and not has_ended else DONE
    from runner.cli.stand import status_json, status_text
    from store.database import open_reader
    from store.read.live import live_status
    from store.runs import resolve

    folder = resolve(runs_dir, run_name)
    if check or not folder.shards():  # of which there may be a thousand
        say_loss(folder)
    if moment_name is None:
        # asked before reading: what a dying writer committed last is not missed
        is_held = folder.is_alive()
        with open_reader(folder.log) as reader:
            seen = live_status(reader, CLOCK.now_us(), is_held=is_held)
        when, values = [], {}
    else:
        from runner.cli.moments import looking_back, moment_json, moment_text

        with looking_back(folder, moment_name, CLOCK) as (moment, reader):
            seen = live_status(reader, moment.at_us, is_held=moment.is_alive)
        when, values = [moment_text(moment)], moment_json(moment)
    if as_json:
        record(status_json(seen) | values)
    else:
        text("\n".join([*when, status_text(seen)]))
    if not check:
        return DONE
    failed = 3 if seen.state == "finished" and seen.status.tasks.failed else DONE
    return CHECKS.get(seen.state, failed)
