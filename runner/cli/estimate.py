"""The verb estimate: what a job would take, or a recorded run under other limits."""

from __future__ import annotations

from typing import Any

import click

from runner.cli import choices
from runner.cli.calls import ANY_SETTING
from runner.cli.speech import DONE, record, text


@click.command(context_settings=ANY_SETTING)
@click.argument("job_name", metavar="JOB", required=False)
@click.option("--from", "run_name", metavar="RUN", help="What if RUN had other limits?")
@choices.who_answers
@choices.engine_options
@choices.new_run
@choices.as_json
@click.pass_context
def estimate(
    ctx: click.Context,
    /,
    job_name: str | None,
    run_name: str | None,
    as_json: bool,
    **given: Any,
) -> int:
    """Say what JOB would take before any call: calls, tokens, dollars, hours.

    It takes the options of siftlog run. With --from RUN the calls of a recorded run are
    played again, on its own latencies, under the limits that are given here.
    """
    from runner.cli import rehearsing
    from runner.errors import UsageError

    if (job_name is None) == (run_name is None):
        raise UsageError("Name a job, or a recorded run with --from RUN.")
    if run_name is not None:
        rehearsal = rehearsing.rehearsed(run_name, given)
        shown = rehearsing.as_json(rehearsal)
        said = rehearsing.as_text(rehearsal)
    else:
        raise NotImplementedError
    if as_json:
        record(shown)
    else:
        text(said)
    return DONE
