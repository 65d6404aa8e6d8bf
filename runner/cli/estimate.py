"""The verb estimate: what a job would take, or a recorded run under other limits."""

from __future__ import annotations

from typing import Any

import click

from runner.cli import choices
from runner.cli.choices import ANY_SETTING


@click.command(context_settings=ANY_SETTING)
@click.argument("job_name", metavar="JOB", required=False)
@click.option("--from", "run_name", metavar="RUN", help="What if RUN had other limits?")
@click.option("--count-tokens", is_flag=True, help="By litellm's tokenizer: slower.")
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
    **given: Any,
) -> int:
    """Say what JOB would take before any call: calls, tokens, dollars, hours.

    It takes the options of siftlog run. With --from RUN a recorded run is played again
    on its own latencies, under the limits that are given here; inf lifts one.
    """
    from runner.cli import estimated, rehearsing
    from runner.errors import UsageError

    if run_name is not None:
        if job_name is not None or ctx.args:
            raise UsageError("--from RUN says it all: leave the job and its settings.")
        return rehearsing.rehearsed(run_name, given)
    if job_name is None:
        raise UsageError("Name a job, or a recorded run with --from RUN.")
    return estimated.estimated(ctx.args, job_name, given)
