"""Commands that start a run: run, and generate, which does not score it."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from runner.cli import choices, collector
from runner.cli.choices import ANY_SETTING
from runner.cli.detaching import leave_terminal


@click.command(context_settings=ANY_SETTING)
@click.argument("job_name", metavar="JOB")
@choices.who_answers
@choices.engine_options
@choices.stops
@choices.parts
@choices.placing
@choices.new_run
@click.option("--dry-run", is_flag=True, help="Estimate only: siftlog estimate JOB.")
@choices.detach
@choices.no_score
@choices.no_report
@choices.output_dir
@choices.as_json
@click.pass_context
def run(
    ctx: click.Context,
    /,
    job_name: str,
    dry_run: bool,
    no_score: bool,
    **given: Any,
) -> int:
    """Run JOB and score its answers.

    Every setting of the job may be given by its own flag (--bench FILE) or as --set
    bench=FILE; siftlog jobs JOB lists them. Without any input the job's sample is used,
    without --model its offline baseline.
    """
    if dry_run:
        from runner.cli.estimated import estimated

        return estimated(ctx.args, job_name, given)
    return _start(ctx.args, job_name, given, scores=not no_score)


@click.command(context_settings=ANY_SETTING)
@click.argument("job_name", metavar="JOB")
@choices.who_answers
@choices.engine_options
@choices.stops
@choices.carrying
@choices.placing
@choices.new_run
@choices.detach
@choices.as_json
@click.pass_context
def generate(ctx: click.Context, /, job_name: str, **given: Any) -> int:
    """Run JOB without scoring it: siftlog score RUN does that later."""
    return _start(ctx.args, job_name, given, scores=False)


def _start(
    words: list[str], job_name: str, given: dict[str, Any], *, scores: bool
) -> int:
    from runner.cli import session, sharding
    from runner.launching import launch
    from runner.registry import load_job

    is_part = sharding.is_part(given)
    leave = leave_terminal(given)
    job = load_job(job_name)
    file = session.configuration(given)
    settings = session.typed_settings(job, words, given, file)
    work, options = session.new_run(job, settings, given, file)
    session.say_findings(work)
    collector.calm()
    if is_part:
        return sharding.run_part(work, options, given, leave)
    folder = session.new_folder(given, job)
    if given["engine"] is not None:
        from runner.cli.placed import run_placed
        from runner.launching.creation import check_new

        check_new(folder)
        return run_placed(folder, work, options, given, leave, scores=scores)
    shell = session.shell(given, folder, work, leave)
    ended = asyncio.run(launch.start(folder, work, options, shell))
    return session.end(folder, work, ended, given, scores=scores)
