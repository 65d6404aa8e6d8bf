"""The command prepare: checks or builds the data of a job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runner.cli import arguments, console
from runner.cli.arguments import ANY_SETTING, split_words
from runner.cli.console import CHECK_FAILED, DONE, print_json, print_note, print_text
from runner.cli.request import SettingsSource
from runner.cli.run import run
from runner.errors import UsageError

if TYPE_CHECKING:
    from runner.job import Job, PreparedParts


@click.command(context_settings=ANY_SETTING)
@click.argument("job_name", metavar="JOB")
@click.argument(
    "words", nargs=-1, metavar="[SUBCOMMAND [FILE]...]", type=click.UNPROCESSED
)
@arguments.config
@arguments.sets
@click.option(
    "--out",
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="Output file or folder.",
)
@click.option("--force", is_flag=True, help="Replace an existing folder.")
@click.option(
    "--fail-under",
    "least",
    metavar="X",
    type=float,
    help="Exit with 6 if the share that SUBCOMMAND computes is below X or undefined.",
)
@arguments.as_json
def prepare(
    job_name: str,
    words: tuple[str, ...],
    out: Path | None,
    force: bool,
    least: float | None,
    as_json: bool,
    config: Path | None,
    sets: tuple[str, ...],
) -> int:
    """Check or build the data of JOB.

    Without SUBCOMMAND, builds the job's default data or lists the subcommands. Give a
    setting of the job by its own flag (--posts FILE) or as --set posts=FILE; siftlog
    jobs JOB --all lists them. The default input is the job's sample.

    A SUBCOMMAND that calls models is a run and also takes the options of siftlog run.
    """
    from runner.cli import run_steps
    from runner.errors import UsageError
    from runner.job import PreparedCheck
    from runner.workload import file_lists, switches

    job, implied = run_steps.chosen_job(job_name, SettingsSource(sets=sets))
    sets = implied.sets
    names, flags = split_words(words, switches(job), file_lists(job))
    subcommand, *files = names or [""]
    if subcommand in job.prepare_runs:
        source = SettingsSource(words=words, sets=sets, config=config)
        return prepare_run(job, subcommand, source, out=out, as_json=as_json)
    offer = _offer(job, subcommand)
    source = SettingsSource(words=tuple(flags), sets=sets, config=config)
    settings = run_steps.typed_settings(
        job, source, run_steps.configuration(source, job)
    )
    console.relax_collector()
    offered = offer(settings if files else run_steps.with_sample(job, settings))
    command = f"{job.name} {subcommand}".rstrip()
    if least is not None and not isinstance(offered, PreparedCheck):
        raise UsageError(f"{command} finds no share; leave out --fail-under.")
    offered = _from_files(offered, command, files)
    report = _built(offered, command, out, force=force)
    if as_json:
        print_json("siftlog.prepared/1", report.json)
    else:
        print_text(report.text)
    if least is None or (report.share is not None and report.share >= least):
        return DONE
    print_note(
        f"siftlog: {command} finds {report.share}, where {least:g} is the least."
    )
    return CHECK_FAILED


def _offer(job: Job, subcommand: str) -> Callable[[Any], PreparedParts]:
    """Return the function of a subcommand; raise `UsageError` if there is none."""
    from runner.errors import UsageError
    from store.nearest import did_you_mean

    subcommands = job.prepare
    if subcommand not in subcommands:
        if "" in subcommands:
            raise UsageError(
                f"prepare {job.name} takes no word {subcommand!r}; leave it out."
            )
        every = (*subcommands, *job.prepare_runs)
        choices = ", ".join(sorted(filter(None, every))) or "nothing"
        if not subcommand:
            raise UsageError(f"{job.name} can prepare: {choices}.")
        hint = did_you_mean(subcommand, every, f"it can prepare {choices}.")
        raise UsageError(f"{job.name} cannot prepare {subcommand!r}; {hint}")
    return subcommands[subcommand]


def _from_files(
    offered: Any,  # noqa: ANN401 - one of the interface's, to be found out
    command: str,
    files: Sequence[str],
) -> Any:  # noqa: ANN401 - likewise
    """Apply a subcommand that takes files; return others unchanged."""
    from runner.cli.paced import paced_progress
    from runner.cli.run_steps import CLOCK
    from runner.errors import UsageError
    from runner.job import PreparedFromFiles

    if not isinstance(offered, PreparedFromFiles):
        if files:
            raise UsageError(f"{command} takes no files; leave out {files[0]}.")
        return offered
    with paced_progress(CLOCK) as progress:
        return offered.read(tuple(map(Path, files)), progress)


def _built(
    offered: Any,  # noqa: ANN401 - as above
    command: str,
    out: Path | None,
    *,
    force: bool,
) -> Any:  # noqa: ANN401 - as above
    """Write the file or folder of a report, if any, and return the report."""
    from runner.errors import UsageError
    from runner.job import PreparedCheck, PreparedData, PreparedFolder
    from runner.run.folder import replaced

    is_folder = isinstance(offered, PreparedFolder)
    builds = is_folder or isinstance(offered, PreparedData)
    if out is None:
        if builds and not isinstance(offered, PreparedCheck):
            built = "folder" if is_folder else "file"
            raise UsageError(f"{command} builds a {built}; say where with --out.")
        return offered
    if not builds:
        raise UsageError(f"{command} builds no file; leave out --out.")
    if isinstance(offered, PreparedFolder):
        with replaced(out, force=force) as draft:
            return offered.write(draft)
    try:
        out.write_bytes("".join(f"{line}\n" for line in offered.lines).encode())
    except OSError as error:
        raise UsageError(f"{out} cannot be written: {error.strerror}.") from error
    return offered


def prepare_run(
    job: Job,
    subcommand: str,
    source: SettingsSource,
    *,
    out: Path | None,
    as_json: bool,
) -> int:
    """Run *job* to build data, and return the exit code.

    Args:
        job: the job.
        subcommand: its name, which is also the setting that names the file.
        source: its words are everything that `prepare` has not parsed: the subcommand,
            its file, options of `run`, settings.
        out: copy the data to this path.
        as_json: print JSON lines.

    Raises:
        UsageError: the file or folder is missing.
    """
    from runner.registry import job_word
    from runner.workload import file_lists, switches

    command = f"{job.name} {subcommand}"
    if out is None:
        raise UsageError(f"{command} builds files; say in which folder with --out.")
    typed = [
        job_word(job),
        *_without(source.words, subcommand),
        "--output-dir",
        str(out),
    ]
    typed += [f"--set={assignment}" for assignment in source.sets]
    typed += [f"--config={source.config}"] if source.config else []
    typed += ["--json"] if as_json else []
    # parsed as `run` does, so that values of its options are not taken for files
    context = run.make_context("run", typed)
    files, flags = split_words(context.args, switches(job), file_lists(job))
    if len(files) != 1:
        raise UsageError(f"{command} reads one file; it was given {len(files)}.")
    context.args = [*flags, f"--{subcommand.replace('_', '-')}", *files]
    code: int = run.invoke(context)
    return code


def _without(words: Sequence[str], subcommand: str) -> list[str]:
    """Return the words without the subcommand, the first of the plain ones."""
    rest = list(words)
    rest.remove(subcommand)
    return rest
