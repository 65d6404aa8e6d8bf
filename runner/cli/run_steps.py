"""Steps that run, resume and import share: from typed options to a scored run."""

from __future__ import annotations

import asyncio
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeAlias, assert_never

from pydantic import BaseModel

from runner.cli import arguments
from runner.cli.arguments import environment, variables
from runner.cli.console import (
    BUDGET,
    CHECK_FAILED,
    DONE,
    ERROR,
    FAILED_TASKS,
    INTERRUPTED,
    print_json,
    print_note,
    print_raw,
    print_text,
)
from runner.cli.progress import progress
from runner.cli.request import (
    NOT_TYPED,
    OutputOptions,
    RunRequest,
    SettingsSource,
    TypedOptions,
)
from runner.cli.status import status_json
from runner.cli.status_page import reply_findings, result_blocks
from runner.clients.client import HTTP
from runner.clients.fallbacks import IGNORED
from runner.errors import RunnerError, UsageError
from runner.job import Job
from runner.options import (
    RunOptions,
    check_baselines,
    options_from,
    read_toml,
    unknown_option,
)
from runner.registry import choose_job, job_names
from runner.roles import fitted, fixed
from runner.run.context import RunContext
from runner.run.end import RunOutcome
from runner.run.fork import fork_origin
from runner.score.newest_inputs import as_scored_before
from runner.score.render import print_tables, result_of, severe_line
from runner.score.scoring import Scoring, score_run
from runner.scorecard import LIMITS, Scorecard
from runner.shards.lease_protocol import VARIABLE
from runner.table_files import has_parquet
from runner.table_rendering import typeset
from runner.workload import (
    ENVIRONMENT,
    Workload,
    load_workload,
    resolve,
)
from store.clock import SystemClock
from store.database import open_reader
from store.document import as_text, plural
from store.errors import StoreError
from store.lineage import ForkOrigin
from store.nearest import did_you_mean
from store.read.course import Course, course
from store.read.limits import UNITS
from store.read.live import LiveStatus, live_status
from store.read.next_steps import next_commands
from store.read.status import (
    Status,
    refused_parameters,
    run_started,
)
from store.read.tasks import failure_text
from store.runs import RunFolder
from store.slices import Shard

PREFIX = "SIFTLOG_"

DEVELOPERS = frozenset({"SIFTLOG_REALDATA", "SIFTLOG_PROVE"})
"""Variables that only the project's tests read."""

Leave: TypeAlias = Callable[[RunFolder], None]
"""Called by the child once its run has started."""


def warn_of_idle_variables(job: Job) -> None:
    """Warn of each `SIFTLOG_` variable without effect on *job*."""
    for sentence in _sentences(job):
        print_note(sentence)


def _sentences(job: Job) -> Iterator[str]:
    settings = {ENVIRONMENT + name.upper() for name in job.Settings.model_fields}
    known = variables() | settings | DEVELOPERS | {VARIABLE, HTTP}
    for name in sorted(environment()):
        if not name.startswith(PREFIX):
            continue
        if name not in known:
            usual = sorted(known - DEVELOPERS - {VARIABLE})
            hint = did_you_mean(name, usual, "see siftlog run --help-all.")
            yield (f"warn: {name} in the environment is unknown and ignored; {hint}")
        elif name not in os.environ and name != HTTP:
            yield (f"warn: {name} in .env is ignored: that file is for keys only.")


CLOCK = SystemClock()


def chosen_job(word: str, source: SettingsSource) -> tuple[Job, SettingsSource]:
    """Load the job that a command was given; add the settings that its word implies."""
    choice = choose_job(word)
    return choice.job, replace(source, sets=(*choice.sets, *source.sets))


def configuration(source: SettingsSource, job: Job) -> dict[str, Any]:
    """Read the file of `--config`, with its cache path resolved; empty if none.

    Raises:
        UsageError: the file is unreadable, for another job, or has an unknown option.
    """
    if source.config is None:
        return {}
    file = read_toml(source.config)
    if (of_job := file.get("job", job.name)) != job.name:
        raise UsageError(
            f"{source.config} has job = {of_job!r}, not {job.name!r}: name another "
            "file, or correct the job in it."
        )
    for name in file:
        if name not in {"job", "settings", *RunOptions.model_fields}:
            raise unknown_option(name)
    if isinstance(cache_dir := file.get("cache_dir"), str):
        file["cache_dir"] = source.folder / cache_dir
    return file


def typed_settings(
    job: Job,
    source: SettingsSource,
    file: Mapping[str, Any],
    options: TypedOptions = NOT_TYPED,
) -> BaseModel:
    """Return the job's settings from command line, environment and file."""
    warn_of_idle_variables(job)
    return resolve(
        job,
        typed=with_temperature(job, source.typed(), options),
        environment=os.environ,
        file={**implied(job, options, file), **file.get("settings", {})},
        folder=source.folder,
    )


def implied(job: Job, options: TypedOptions, file: Mapping[str, Any]) -> dict[str, str]:
    """Return settings implied by naming a model, unless they are given."""
    settings: dict[str, str] = {}
    for option, (setting, value) in job.implied.items():
        if options.values.get(option) or file.get(option):
            settings.setdefault(setting, value)
    return settings


def with_temperature(
    job: Job, typed: dict[str, list[str]], options: TypedOptions
) -> dict[str, list[str]]:
    """Add the run's temperature to the settings of a job that has one.

    The recorded settings then match the requests.
    """
    value = options.temperature
    if value is None or "temperature" not in job.Settings.model_fields:
        return typed
    return {"temperature": [value], **typed}


def with_sample(job: Job, settings: BaseModel) -> BaseModel:
    """Use the job's sample if no input was named, and print a note."""
    filled: BaseModel = job.with_sample(settings)
    if filled is not settings:
        print_note(f"No input was named: using the sample that ships with {job.name}.")
    return filled


def startable(job: Job, settings: BaseModel) -> BaseModel:
    """Return settings that can start a run; without inputs, those of the sample.

    Raises:
        UsageError: a required input is missing.
    """
    filled = with_sample(job, settings)
    job.require(filled)
    return filled


def engine_options(
    typed: TypedOptions, file: Mapping[str, Any], **fixed: object
) -> RunOptions:
    """Merge typed run options with the file; *fixed* override both."""
    plain = {k: v for k, v in file.items() if k not in {"job", "settings"}}
    return options_from({**plain, **typed.values, **fixed})


def startup_limits(options: TypedOptions) -> list[str]:
    """Return names of the limits that were typed for this process only."""
    return [name for name in UNITS if options.names(name)]


def new_run(
    job: Job, settings: BaseModel, typed: TypedOptions, file: Mapping[str, Any]
) -> tuple[Workload, RunOptions]:
    """Load the workload and the options of a new run.

    The job sets the default of replicates, and adapts its settings to the run's models.
    """
    filled = startable(job, settings)
    times = job.replicates(filled)
    usual = {} if times is None else {"replicates": times}
    options = engine_options(typed, {**usual, **file})
    check_baselines(options)
    work = load_workload(job, fitted(job, filled, options), starts=True)
    return work, options


def adoptable(
    parent: RunFolder,
    job: Job,
    options: RunOptions,
    variables: Mapping[str, str],
    *,
    from_stage: str | None = None,
) -> ForkOrigin:
    """Return what a run with *options* may adopt from *parent*, which has ended.

    Raises:
        UsageError: nothing can be adopted from it.
    """
    with open_reader(parent.log) as reader:
        first = run_started(reader)
    file = read_toml(parent.config) if parent.config.exists() else {}
    earlier = {"replicates": first.replicates, **fixed(first.models)}
    before = engine_options(NOT_TYPED, file, **earlier)
    return fork_origin(
        parent,
        job,
        before,
        options,
        variables,
        now_us=CLOCK.now_us(),
        from_stage=from_stage,
    )


def new_folder(
    runs_dir: Path, name: str | None, job: Job, *, option: str = "--run-id"
) -> RunFolder:
    """Return the folder of a new run; the default name is the time and the job.

    Args:
        runs_dir: where it will be.
        name: its id; None: the default.
        job: its job.
        option: that gave the name.

    Raises:
        UsageError: a run cannot have the name.
    """
    if name is None:
        now = datetime.fromtimestamp(CLOCK.now_us() / 1e6, UTC)
        name = f"{now:%Y%m%d-%H%M%S}-{job.name}"
    if not RunFolder.is_valid_id(name):
        raise UsageError(
            f"{option} {name}: use letters, digits, '.', '_' and '-', at most 100."
        )
    if name in job_names():
        raise UsageError(
            f"{option} {name} is the name of a job, so siftlog prompts {name} would be "
            "ambiguous; choose another id."
        )
    return RunFolder(runs_dir / name)


def run_context(
    request: RunRequest,
    folder: RunFolder,
    work: Workload,
    leave: Leave | None = None,
    *,
    shard: Shard | None = None,
) -> RunContext:
    """Build the context of a run or shard; *leave* is called as it starts."""
    run_folder = folder if shard is None else folder.shard(shard.index, shard.count)

    def launched() -> None:
        if leave is not None:
            leave(run_folder)
        if request.output.as_json:
            part = {} if shard is None else {"shard": str(shard)}
            print_json(
                "siftlog.launch/1", {"event": "launch", "run": folder.run_id, **part}
            )
        else:
            subject = "Run" if shard is None else f"Shard {shard} of run"
            print_note(f"{subject} {folder.run_id} of {work.job.name} in {folder.path}")

    return RunContext(
        clock=CLOCK,
        environment=arguments.environment(),
        runs_dir=request.runs_dir,
        notify=print_note,
        launched=launched,
        watch=progress(CLOCK),
        broker=request.part.broker,
    )


def print_findings(work: Workload) -> None:
    """Print findings in the inputs, and the sample size, on stderr."""
    for finding in getattr(work.dataset, "findings", ()):
        if finding.where == LIMITS:
            print_note(finding.message)
        elif finding.severity != "info":
            print_note(f"{finding.severity}: {finding.line}")


async def score_ended(
    folder: RunFolder, work: Workload, ended: RunOutcome, output: OutputOptions
) -> Scoring | None:
    """Score a run that ended, if it is complete enough.

    Paid answers are scored, even if others are missing. A run that is resumed without
    anything left to do keeps its scoring.
    """
    if ended.outcome not in {"finished", "budget", "decided"}:
        return None
    return await score_run(
        work.job,
        folder,
        work.settings,
        clock=CLOCK,
        record=True,
        reuse=True,
        report=not output.no_report,
        figures=output.figures,
    )


def end(
    folder: RunFolder,
    work: Workload,
    ended: RunOutcome,
    output: OutputOptions,
    *,
    scores: bool,
    shows: bool = True,
    parent: RunFolder | None = None,
) -> int:
    """Score a run that ended, report its outcome and return the exit code.

    Args:
        folder: the run's folder.
        work: its job, settings and data.
        ended: the outcome of this process.
        output: output options.
        scores: score the run if it is complete enough.
        shows: print the scores too.
        parent: the run that this one forks.
    """
    scoring: Scoring | None = None
    unscored: RunnerError | StoreError | None = None
    _say_refused(folder)
    if scores:
        try:
            settings, inputs = as_scored_before(parent or folder, work, folder.run_id)
            for line in inputs:
                print_note(line)
            again = replace(work, settings=settings)
            scoring = asyncio.run(score_ended(folder, again, ended, output))
        except (RunnerError, StoreError) as error:
            unscored = error
    with open_reader(folder.log) as reader:
        seen = live_status(reader, CLOCK.now_us(), is_held=False)
        past, failure = course(reader), failure_text(reader)
    state = seen.status
    findings = [
        *(() if scoring is None else map(severe_line, scoring.findings)),
        *reply_findings(state.replies),
        *(f"billing: {line}" for line in state.billing.findings),
        *(f"served: {line}" for line in state.mixed),
    ]
    is_reused = _say_reused(folder, scoring, output)
    if shows and not (output.as_json or is_reused):
        _show_end(folder, scoring, seen, past, failure, findings, output)
    else:
        for line in filter(None, (failure, *findings)):
            print_note(line)
    failed = (
        failed_checks(scoring.scorecard, strict=output.strict)
        if scoring is not None
        else ()
    )
    code = ERROR if unscored else _exit_code(ended, state.tasks.failed)
    for sentence in (
        ended.reason,
        unscored and f"siftlog: the answers are kept, but not scored: {unscored}",
        _failures(folder, state) if code == FAILED_TASKS else None,
        *(f"siftlog: {failure}" for failure in failed),
    ):
        if sentence:
            print_note(sentence)
    if failed and code in {DONE, FAILED_TASKS}:
        code = CHECK_FAILED
    if output.as_json:
        status_fields = status_json(seen)
        print_json(
            "siftlog.done/1",
            {
                "event": "done",
                "run": folder.run_id,
                "exit": code,
                "tasks": status_fields["tasks"],
                "attempts": status_fields["attempts"],
                "replies": status_fields["replies"],
                "findings": list(state.findings),
                "cost_usd": status_fields["cost_usd"],
                "possible_usd": status_fields["possible_usd"],
                "in_flight_usd": status_fields["in_flight_usd"],
                "scoring": scoring.number if scoring is not None else None,
            },
        )
    return code


def _say_reused(
    folder: RunFolder, scoring: Scoring | None, output: OutputOptions
) -> bool:
    """Print that there was nothing to do, if so, and return whether it is so."""
    if scoring is None or not scoring.is_reused:
        return False
    print_note(
        f"Nothing was left to send: scoring {scoring.number} of run {folder.run_id} "
        "counts, and no other was recorded."
    )
    deliver_files(scoring, output)
    return True


def _show_end(
    folder: RunFolder,
    scoring: Scoring | None,
    seen: LiveStatus,
    past: Course,
    failure: str,
    findings: Sequence[str],
    output: OutputOptions,
) -> None:
    """Print the result of a run that ended, and what to do next."""
    if scoring is not None:
        deliver_files(scoring, output)
        if output.form != "text":
            tables = print_tables(scoring.scorecard, output.tables)
            print_raw(typeset(tables, output.form))
            return
    result = None if scoring is None else result_of(scoring.scorecard)
    scores = None if scoring is None else scoring.folder
    # a sentence says how to resume, and the shards of a run are scored together
    has_next = seen.state == "finished" and not folder.part
    explain = "" if result is None else result.explain
    commands = next_commands(seen, folder.run_id, explain) if has_next else ()
    page = result_blocks(
        seen,
        past,
        result,
        scores,
        failure=failure,
        findings=findings,
        commands=commands,
    )
    print_text(as_text(page))


def _failures(folder: RunFolder, state: Status) -> str:
    """Describe failed tasks and the next step."""
    if state.imported:
        return f"{plural(state.tasks.failed, 'imported task')} had failed."
    run = folder.run_id
    resume = "the same command" if folder.part else f"siftlog resume {run}"
    return (
        f"{state.tasks.failed} tasks failed; retry them with: siftlog "
        f"retry {run} && {resume}"
    )


def _say_refused(folder: RunFolder) -> None:
    """Report parameters that endpoints refused, so that requests changed."""
    with open_reader(folder.log) as reader:
        facts = refused_parameters(reader)
    if facts:
        refusals = "; ".join(
            f"{fact.model}: {fact.name} {fact.how}"
            + (
                f", sent as {fact.instead}"
                if fact.instead and fact.how != IGNORED
                else ""
            )
            for fact in facts
        )
        print_note(f"Not sent, or without effect, at some endpoint: {refusals}.")


def _exit_code(ended: RunOutcome, failed: int) -> int:
    match ended.outcome:
        case "finished" | "decided":
            return FAILED_TASKS if failed else DONE
        case "budget":
            return BUDGET
        case "endpoint" | "given up" | "job":
            return ERROR
        case "drained" | "futility" | "held" | "cancelled":
            return INTERRUPTED
        case _:
            assert_never(ended.outcome)


def deliver_files(scoring: Scoring, output: OutputOptions) -> None:
    """Copy the files of a scoring to `--output-dir`; say which ones are missing."""
    if scoring.folder is None:
        return
    if output.output_dir is not None:
        built = scoring.scorecard.built
        if built is not None:
            _set_aside(scoring.folder, output.output_dir, built)
        names = scoring.artifacts if built is None else built
        _copy(scoring.folder, output.output_dir, names)
    if scoring.number == 1:  # later ones lack the same files
        _note_absent_files(scoring.scorecard)


def _note_absent_files(card: Scorecard) -> None:
    """Print which tables are not written as Parquet because pyarrow is absent."""
    names = [t.name for t in card.tables if "parquet" in t.further_formats]
    if names and not has_parquet():
        files = ", ".join(f"{name}.parquet" for name in names)
        print_note(
            f"Not written: {files}, which needs pyarrow (pip install "
            "'siftlog[parquet]')."
        )


def _set_aside(source: Path, target: Path, names: tuple[str, ...]) -> None:
    """Back up files of these names with other content: they may be edited."""
    for name in names:
        existing = target / name
        if existing.exists() and existing.read_bytes() != (source / name).read_bytes():
            backup = existing.with_name(f"{existing.name}~")
            existing.replace(backup)
            print_note(f"{existing} had other content, which is now in {backup.name}.")


def _copy(source: Path, target: Path, names: tuple[str, ...]) -> None:
    target.mkdir(parents=True, exist_ok=True)
    for name in names:
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source / name, target / name)


def failed_checks(card: Scorecard, *, strict: bool) -> tuple[str, ...]:
    """Return a sentence per failed check; if *strict*, also for errors."""
    wrong = [finding for finding in card.findings if finding.severity == "error"]
    if not (strict and wrong):
        return card.failures
    return *card.failures, f"{len(wrong)} findings are errors: {wrong[0].message}"
