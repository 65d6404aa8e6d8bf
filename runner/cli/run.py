"""Commands that start a run, resume one, or replay one: run, resume, estimate.

With `--detach` the process forks before it does anything else. The child stays in the
foreground until the run has started, so errors are printed at once and no partial state
is left; then it moves to a separate session, detached from the terminal. No options or
keys are passed on a command line.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runner.cli import arguments, console
from runner.cli.arguments import ANY_SETTING
from runner.cli.console import DONE, ERROR, print_json, print_note
from runner.cli.help import REPLAY_LAYOUT, RUN_LAYOUT, LongCommand
from runner.cli.request import RunRequest, is_part
from runner.errors import RunnerError

if TYPE_CHECKING:
    from runner.cli.run_steps import Leave
    from store.runs import RunFolder

POLL_S = 0.05
TIMEOUT_S = 60.0
"""Maximum time from the run's first event to its first heartbeat; disks may be slow."""


def leave_terminal(request: RunRequest) -> Leave | None:
    """Fork for `--detach`: only the child returns, with its way to detach."""
    return detach(as_json=request.output.as_json) if request.detach else None


def detach(*, as_json: bool) -> Leave:
    """Fork; return in the child only.

    Raises:
        click.exceptions.Exit: in the parent, when its part is done.
    """
    listening, saying = os.pipe()
    child = os.fork()
    if child:
        os.close(saying)
        raise click.exceptions.Exit(_await_launch(child, listening, as_json=as_json))
    os.close(listening)

    def leave(folder: RunFolder) -> None:
        os.setsid()
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND
        output = os.open(folder.diagnostics, flags, 0o644)
        dev_null = os.open(os.devnull, os.O_RDONLY)
        for new, old in ((dev_null, 0), (output, 1), (output, 2)):
            os.dup2(new, old)
        os.close(output)
        os.close(dev_null)
        os.write(saying, os.fsencode(f"{folder.part}\n{folder.path}"))
        os.close(saying)

    return leave


def _await_launch(child: int, listening: int, *, as_json: bool) -> int:
    """Wait until the run is alive or has ended; return the parent's exit code."""
    from store.runs import RunFolder

    with os.fdopen(listening, "rb") as pipe:
        launch_message = pipe.read()
    if not launch_message:
        # the child has printed its error, or has finished
        return _code(os.waitpid(child, 0)[1])
    part, _, path = os.fsdecode(launch_message).partition("\n")
    folder = RunFolder(Path(path), part)
    code = _until_alive(child, folder)
    run = folder.run_id
    if as_json:
        fields = {"event": "detached", "run": run, "pid": child}
        fields |= {"log": str(folder.diagnostics), "exit": code}
        print_json("siftlog.detached/1", fields)
    if code is not None:
        print_note(
            f"Run {run} has ended already; its output is in {folder.diagnostics}"
        )
        return code
    print_note(
        f"Run {run} runs in the background (process {child}); its "
        f"output is in {folder.diagnostics}. Watch it with: siftlog "
        f"watch {run}; stop it with: siftlog drain {run}"
    )
    return DONE


def _until_alive(child: int, folder: RunFolder) -> int | None:
    """Wait for the child's heartbeat; return its exit code if it ended first."""
    from store.clock import SystemClock
    from store.database import is_held, open_reader
    from store.read.status import status

    clock = SystemClock()
    until = clock.monotonic() + TIMEOUT_S
    while clock.monotonic() < until:
        ended, wait_status = os.waitpid(child, os.WNOHANG)
        if ended:
            return _code(wait_status)
        with open_reader(folder.log) as reader:
            heartbeat = status(reader).heartbeat
        # a process that places shards writes no log
        if (heartbeat is not None and heartbeat.pid == child) or is_held(
            folder.driver_lock
        ):
            return None
        time.sleep(POLL_S)
    raise RunnerError(
        f"Run {folder.run_id} has started but does not respond (process "
        f"{child}); see {folder.diagnostics} and siftlog status "
        f"{folder.run_id}."
    )


def _code(wait_status: int) -> int:
    """Return the exit code of a `waitpid` status; a signal is an error."""
    code = os.waitstatus_to_exitcode(wait_status)
    return code if code >= 0 else ERROR


@click.command(cls=LongCommand, layout=RUN_LAYOUT, context_settings=ANY_SETTING)
@click.argument("job_name", metavar="JOB")
@arguments.model_options
@arguments.engine_options
@arguments.stops
@arguments.parts
@arguments.placing
@arguments.new_run
@click.option(
    "--dry-run",
    is_flag=True,
    help="Estimate calls, tokens, cost and time; send nothing.",
)
@click.option(
    "--count-tokens",
    is_flag=True,
    help="With --dry-run: count tokens with litellm's tokenizer; slower.",
)
@click.option(
    "--cache-from",
    metavar="RUN",
    help="Adopt the answers of this ended run to equal requests.",
)
@arguments.detach
@arguments.no_score
@arguments.no_report
@arguments.figures
@arguments.output_dir
@arguments.as_json
@click.pass_context
def run(
    ctx: click.Context,
    /,
    job_name: str,
    dry_run: bool,
    count_tokens: bool,
    cache_from: str | None,
    no_score: bool,
    **parameters: Any,
) -> int:
    """Run JOB and score its answers.

    Give a setting of the job by its own flag (--bench FILE) or as --set bench=FILE;
    siftlog jobs JOB --all lists them. The default input is the job's sample, the
    default model its offline baseline.
    """
    request = RunRequest.of(ctx.args, parameters)
    if dry_run and cache_from is None:
        from runner.cli.estimate import estimate_job

        return estimate_job(job_name, request, counts=count_tokens)
    return _start(job_name, request, cache_from, is_dry=dry_run, scores=not no_score)


def _start(
    job_name: str,
    request: RunRequest,
    cache_from: str | None,
    *,
    is_dry: bool,
    scores: bool,
) -> int:
    import asyncio

    from runner.cli import run_steps
    from runner.errors import UsageError
    from runner.run import launch

    takes_part = is_part(request)
    if cache_from is not None and (takes_part or request.placing.engine is not None):
        raise UsageError(
            "--cache-from adopts answers into a run with one log: omit "
            "--shards, --shard and --engine."
        )
    leave = None if is_dry else leave_terminal(request)
    job, source = run_steps.chosen_job(job_name, request.source)
    file = run_steps.configuration(source, job)
    settings = run_steps.typed_settings(job, source, file, request.options)
    work, options = run_steps.new_run(job, settings, request.options, file)
    run_steps.print_findings(work)
    console.relax_collector()
    if takes_part:
        from runner.cli.shards import run_part

        return run_part(work, options, request, leave)
    folder = run_steps.new_folder(request.runs_dir, request.run_id, job)
    if (engine := request.placing.engine) is not None:
        from runner.cli.shards import run_placed
        from runner.run.folder import check_new

        check_new(folder)
        return run_placed(
            folder, work, options, request, leave, engine=engine, scores=scores
        )
    context = run_steps.run_context(request, folder, work, leave)
    origin = None
    if cache_from is not None:
        from runner.cli.fork import show_forecast
        from runner.run.rehearsal import rehearse
        from store.runs import resolve

        parent = resolve(request.runs_dir, cache_from)
        if parent.path.resolve().parent != folder.path.resolve().parent:
            raise UsageError(
                f"--cache-from {cache_from}: adopted answers stay in that run, so the "
                f"new one has to lie beside it: add --runs-dir {parent.path.parent}."
            )
        origin = run_steps.adoptable(parent, job, options, context.environment)
        if is_dry:
            plan = asyncio.run(
                rehearse(parent, folder.run_id, work, options, context, fork=origin)
            )
            show_forecast(folder.run_id, origin, plan, as_json=request.output.as_json)
            return DONE
    ended = asyncio.run(launch.start(folder, work, options, context, fork=origin))
    return run_steps.end(folder, work, ended, request.output, scores=scores)


@click.command(cls=LongCommand, layout=REPLAY_LAYOUT, context_settings=ANY_SETTING)
@click.argument("what", metavar="RUN", required=False)
@click.option("--from", "run_name", metavar="RUN", hidden=True)
@click.option(
    "--count-tokens", is_flag=True, hidden=True, help="As siftlog run --dry-run."
)
@arguments.model_options
@arguments.engine_options
@arguments.new_run
@arguments.as_json
@click.pass_context
def estimate(
    ctx: click.Context,
    /,
    what: str | None,
    run_name: str | None,
    count_tokens: bool,
    **parameters: Any,
) -> int:
    """Replay RUN with its own latencies under the limits or models given here.

    Prints duration, calls and cost, and sends nothing. The value inf removes a limit.
    To estimate a run before it starts, use siftlog run JOB with --dry-run.
    """
    from runner.cli.estimate import estimate_from_run, estimate_job
    from runner.errors import UsageError
    from runner.registry import is_job, naming_jobs

    request = RunRequest.of(ctx.args, parameters)
    if what is not None and run_name is None and is_job(what):
        print_note("note: siftlog estimate JOB is now siftlog run JOB --dry-run.")
        return estimate_job(what, request, counts=count_tokens)
    if ctx.args or None not in {what, run_name}:
        raise UsageError("RUN defines the job and its settings: omit them.")
    if run_name is not None:
        print_note("note: siftlog estimate --from RUN is now siftlog estimate RUN.")
        what = run_name
    if what is None:
        raise UsageError(
            "Name a recorded run to replay; siftlog run JOB --dry-run estimates a run "
            "that has not started."
        )
    with naming_jobs(what):
        return estimate_from_run(what, request)


@click.command(cls=LongCommand, layout=RUN_LAYOUT, context_settings=ANY_SETTING)
@arguments.run_argument
@arguments.engine_options_of_run
@arguments.carrying
@arguments.placing
@arguments.sets
@click.option("--stage", help="With a paused run: resume only this stage.")
@click.option("--model", help="With a paused run: resume only this model.")
@arguments.runs_dir
@click.option(
    "--accept-changes", is_flag=True, help="Continue although inputs have changed."
)
@arguments.detach
@arguments.no_score
@arguments.no_report
@arguments.figures
@arguments.output_dir
@arguments.as_json
@click.pass_context
def resume(
    ctx: click.Context,
    /,
    run_name: str,
    accept_changes: bool,
    no_score: bool,
    stage: str | None,
    model: str | None,
    **parameters: Any,
) -> int:
    """Resume RUN where it stopped. Recorded answers are never requested again.

    A paused live run continues, and this command returns at once. A run without
    open tasks is scored again if its data, settings or code have changed.
    """
    import asyncio

    from runner import roles
    from runner.added_stages import job_in
    from runner.cli import run_steps
    from runner.cli.control import lift
    from runner.cli.run_steps import warn_of_idle_variables
    from runner.errors import UsageError
    from runner.options import read_toml
    from runner.run import launch
    from runner.score.scoring import effective_settings
    from runner.workload import load_workload
    from store.database import open_reader
    from store.read.status import run_started, status
    from store.runs import resolve

    request = RunRequest.of(ctx.args, parameters)
    leave = leave_terminal(request)
    folder = resolve(request.runs_dir, run_name)
    folder.check_ends(accept_loss=request.part.accept_loss)
    with open_reader(folder.log) as reader:
        first = run_started(reader)
        is_paused = bool(status(reader).pauses)
    if folder.is_alive() and is_paused:
        return lift(folder, stage, model, as_json=request.output.as_json)
    if request.placing.engine is None:
        launch.check_alive(folder)
    if stage is not None or model is not None:
        raise UsageError(
            f"Run {folder.run_id} is not alive; siftlog resume {folder.run_id} takes "
            "all of it up."
        )
    with open_reader(folder.log) as reader:
        job = job_in(reader)
    warn_of_idle_variables(job)
    file = read_toml(folder.config) if folder.config.exists() else {}
    # the budget may have been raised since; the log has the current one
    file.pop("budget", None)
    typed = request.source.typed()
    if "temperature" in typed:
        # options typed now take precedence over those of the run
        file.pop("temperature", None)
    if first.shard is not None:
        # this process does the work of several
        file.pop("rate_share", None)
    options = run_steps.engine_options(
        request.options,
        file,
        replicates=first.replicates,
        **roles.fixed(first.models),
    )
    typed = run_steps.with_temperature(job, typed, request.options)
    work = load_workload(job, effective_settings(job, folder, typed))
    if (engine := request.placing.engine) is not None:
        from runner.cli.shards import run_placed

        return run_placed(
            folder, work, options, request, leave, engine=engine, scores=not no_score
        )
    console.relax_collector()
    if first.shard is not None:
        from runner.cli.shards import resume_all

        return resume_all(
            folder,
            work,
            options,
            request,
            leave,
            accept_changes=accept_changes,
            scores=not no_score,
        )
    if is_part(request):
        raise UsageError(f"Run {folder.run_id} is not split: its log is not shipped.")
    context = run_steps.run_context(request, folder, work, leave)
    ended = asyncio.run(
        launch.resume(
            folder,
            work,
            options,
            context,
            accept_changes=accept_changes,
            accept_loss=request.part.accept_loss,
            startup_limits=run_steps.startup_limits(request.options),
        )
    )
    return run_steps.end(folder, work, ended, request.output, scores=not no_score)
