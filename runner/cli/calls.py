"""Verbs that produce answers: run, generate, resume, import."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runner.cli import choices, collector
from runner.cli.speech import tell
from runner.cli.words import job_settings, split_words

if TYPE_CHECKING:
    from runner.cli.detaching import Leave

ANY_SETTING = {"ignore_unknown_options": True, "allow_extra_args": True}


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


def _leave(given: dict[str, Any]) -> Leave | None:
    """With `--detach`: how to leave the terminal; the typed process ends in here."""
    if not given["detach"]:
        return None
    from runner.cli.detaching import detach

    return detach(as_json=given["as_json"])


def _start(
    words: list[str], job_name: str, given: dict[str, Any], *, scores: bool
) -> int:
    from runner.cli import session, sharding
    from runner.launching import launch
    from runner.registry import load_job

    is_part = sharding.is_part(given)
    leave = _leave(given)
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
    from store.runs import resolve
    from store.views import open_reader, run_started, status

    leave = _leave(given)
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


@click.command("import", context_settings=ANY_SETTING)
@click.argument("job_name", metavar="JOB")
@click.argument("words", nargs=-1, metavar="[FILES]...", type=click.UNPROCESSED)
@click.option("--model", help="Model, where the files do not name it.")
@click.option("--format", "form", help="Format, where it is not to be recognised.")
@click.option(
    "--replicate",
    "replicates",
    multiple=True,
    type=(click.Path(path_type=Path), int),
    metavar="FILE N",
    help="A file's replicate.",
)
@click.option(
    "--responses-path", "responses", multiple=True, help="A further file to import."
)
@choices.new_run
@choices.no_score
@choices.no_report
@choices.strict
@choices.output_dir
@choices.as_json
def import_(
    job_name: str,
    words: tuple[str, ...],
    model: str | None,
    form: str | None,
    replicates: tuple[tuple[Path, int], ...],
    responses: tuple[str, ...],
    no_score: bool,
    **given: Any,
) -> int:
    """Record answers of JOB that were made elsewhere, as a run like any other.

    FILES are recognised by what they hold. Every setting of the job may be given by
    its own flag (--profile NAME) or as --set profile=NAME; siftlog jobs JOB lists them,
    files that have a flag of their own among them.
    """
    from runner.cli import session
    from runner.control.ending import Ended
    from runner.errors import UsageError
    from runner.launching.creation import create
    from runner.records import importing
    from runner.records.spool import Spool
    from runner.registry import load_job
    from runner.settings import file_lists, switches
    from runner.work import load_work

    job = load_job(job_name)
    importer = getattr(job, "importer", None)
    if importer is None:
        raise UsageError(f"{job.name} has no import.")
    importing.require_form(importer, form)
    plain, flags = split_words(words, switches(job), file_lists(job))
    files = tuple(Path(name) for name in (*plain, *responses))
    file = session.configuration(given)
    settings = session.typed_settings(job, flags, given, file)
    work = load_work(job, settings)

    collector.calm()
    with Spool() as spool:
        answers = importer.read(
            files, settings, model=model, form=form, replicates=dict(replicates)
        )
        found = importing.census(job, spool.fill(answers))
        options = session.engine_options(
            {}, {}, model=found.models, replicates=found.replicates
        )
        folder = session.new_folder(given, job)
        shell = session.shell(given, folder, work)

        async def write() -> None:
            async with create(folder, work, options, shell.clock, imported=True) as log:
                shell.launched()
                await importing.write_answers(log, work, spool, tell)

        asyncio.run(write())
    for note in found.notes:
        tell(note)
    tell(f"Imported {found.answers:,} tasks of: {', '.join(found.models)}.")
    ended = Ended(outcome="finished")
    return session.end(folder, work, ended, given, scores=not no_score)
