"""The command resume: continues an interrupted run."""

from __future__ import annotations

import asyncio
from typing import Any

import click

from runner.cli import choices, collector
from runner.cli.choices import ANY_SETTING
from runner.cli.detaching import leave_terminal
from runner.cli.words import job_settings


@click.command(context_settings=ANY_SETTING)
@choices.run_argument
@choices.engine_options
@choices.carrying
@choices.placing
@choices.sets
@click.option("--stage", help="Of a paused run: lift only this stage's pause.")
@click.option("--model", help="Of a paused run: lift only this model's pause.")
@choices.runs_dir
@click.option("--accept-changes", is_flag=True, help="Go on though inputs differ.")
@choices.detach
@choices.no_score
@choices.no_report
@choices.output_dir
@choices.as_json
@click.pass_context
def resume(
    ctx: click.Context,
    /,
    run_name: str,
    accept_changes: bool,
    no_score: bool,
    stage: str | None,
    model: str | None,
    **given: Any,
) -> int:
    """Take RUN up where it stopped; no recorded answer is asked for again.

    A live run that is paused goes on, and this returns at once.
    """
    from runner import roles
    from runner.cli import session, sharding
    from runner.cli.asking import lift
    from runner.cli.variables import say_idle
    from runner.errors import UsageError
    from runner.launching import launch
    from runner.options import read_toml
    from runner.records.scoring import effective_settings
    from runner.registry import load_job
    from runner.work import load_work
    from store.database import open_reader
    from store.read.status import run_started, status
    from store.runs import resolve

    leave = leave_terminal(given)
    folder = resolve(given["runs_dir"], run_name)
    folder.check_ends(accept_loss=given["accept_loss"])
    with open_reader(folder.log) as reader:
        first = run_started(reader)
        is_paused = bool(status(reader).pauses)
    if folder.is_alive() and is_paused:
        return lift(folder, stage, model, as_json=given["as_json"])
    if given["engine"] is None:
        launch.check_alive(folder)
    if stage is not None or model is not None:
        raise UsageError(
            f"Run {folder.run_id} is not alive; siftlog resume {folder.run_id} takes "
            "all of it up."
        )
    job = load_job(first.job)
    say_idle(job)
    file = read_toml(folder.config) if folder.config.exists() else {}
    # the cap may have been raised since: the log knows it
    file.pop("budget", None)
    if "temperature" in job_settings(ctx.args, given["sets"]):
        # what is typed now outranks what was typed for the run
        file.pop("temperature", None)
    if first.shard is not None:
        # this process does what several did
        file.pop("rate_share", None)
    options = session.engine_options(
        given,
        file,
        replicates=first.replicates,
        **roles.fixed(first.models),
    )
    typed = job_settings(ctx.args, given["sets"])
    typed = session.with_temperature(job, typed, given)
    work = load_work(job, effective_settings(job, folder, typed))
    if given["engine"] is not None:
        from runner.cli.placed import run_placed

        return run_placed(folder, work, options, given, leave, scores=not no_score)
    collector.calm()
    if first.shard is not None:
        return sharding.resume_all(
            folder,
            work,
            options,
            given,
            leave,
            accept_changes=accept_changes,
            scores=not no_score,
        )
    if sharding.is_part(given):
        raise UsageError(
            f"Run {folder.run_id} is not split: its log stays where it is, and is not "
            "shipped."
        )
    shell = session.shell(given, folder, work, leave)
    ended = asyncio.run(
        launch.resume(
            folder,
            work,
            options,
            shell,
            accept_changes=accept_changes,
            accept_loss=given["accept_loss"],
            own=session.own_limits(given),
        )
    )
    return session.end(folder, work, ended, given, scores=not no_score)
