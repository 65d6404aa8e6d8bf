"""The verb about data that no run has asked about yet: prepare."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from runner.cli import choices, collector
from runner.cli.choices import ANY_SETTING
from runner.cli.speech import CHECK_FAILED, DONE, record, tell, text
from runner.cli.words import split_words


@click.command(context_settings=ANY_SETTING)
@click.argument("job_name", metavar="JOB")
@click.argument(
    "words", nargs=-1, metavar="[SUBCOMMAND [FILE]...]", type=click.UNPROCESSED
)
@choices.config
@choices.sets
@click.option(
    "--out",
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="Where the file or folder goes that is built.",
)
@click.option("--force", is_flag=True, help="Replace a folder that is there already.")
@click.option(
    "--fail-under",
    "least",
    metavar="X",
    type=float,
    help="Exit with 6 if the share that SUBCOMMAND finds is below X or undefined.",
)
@choices.as_json
def prepare(
    job_name: str,
    words: tuple[str, ...],
    out: Path | None,
    force: bool,
    least: float | None,
    as_json: bool,
    **given: Any,
) -> int:
    """Check or build the data of JOB.

    Without SUBCOMMAND: what the job builds by default, or else which there are. Every
    setting of the job may be given by its own flag (--posts FILE) or as --set
    posts=FILE; siftlog jobs JOB lists them. Without any input the job's sample is used.

    A SUBCOMMAND that asks models is a run, and takes the options of siftlog run too.
    """
    from runner.cli import session
    from runner.errors import UsageError
    from runner.job import PreparedCheck
    from runner.registry import load_job
    from runner.settings import file_lists, switches

    job = load_job(job_name)
    names, flags = split_words(words, switches(job), file_lists(job))
    what, *files = names or [""]
    if what in getattr(job, "prepare_runs", ()):
        from runner.cli.commission import commissioned

        return commissioned(job, what, words, given, out=out, as_json=as_json)
    offer = _offer(job, what)
    settings = session.typed_settings(job, flags, given, session.configuration(given))
    collector.calm()
    offered = offer(settings if files else session.with_sample(job, settings))
    named = f"{job.name} {what}".rstrip()
    if least is not None and not isinstance(offered, PreparedCheck):
        raise UsageError(f"{named} finds no share; leave out --fail-under.")
    offered = _from_files(offered, named, files)
    report = _built(offered, named, out, force=force)
    if as_json:
        record(report.json)
    else:
        text(report.text)
    if least is None or (report.share is not None and report.share >= least):
        return DONE
    tell(f"siftlog: {named} finds {report.share}, where {least:g} is the least.")
    return CHECK_FAILED


def _offer(job: Any, what: str) -> Any:  # noqa: ANN401 - parts that jobs may have
    """What a subcommand calls; raise `UsageError` where the job has none such."""
    from runner.errors import UsageError

    offers = getattr(job, "prepare", {})
    if what not in offers:
        if "" in offers:
            raise UsageError(
                f"prepare {job.name} takes no word {what!r}; leave it out."
            )
        every = (*offers, *getattr(job, "prepare_runs", ()))
        known = ", ".join(sorted(filter(None, every))) or "nothing"
        raise UsageError(f"{job.name} can prepare: {known}.")
    return offers[what]


def _from_files(
    offered: Any,  # noqa: ANN401 - one of the interface's, to be found out
    named: str,
    files: Sequence[str],
) -> Any:  # noqa: ANN401 - likewise
    """What a subcommand makes of files; the others are as they are."""
    from runner.cli.pace import paced
    from runner.cli.session import CLOCK
    from runner.errors import UsageError
    from runner.job import PreparedFromFiles

    if not isinstance(offered, PreparedFromFiles):
        if files:
            raise UsageError(f"{named} takes no files; leave out {files[0]}.")
        return offered
    with paced(CLOCK) as progress:
        return offered.read(tuple(map(Path, files)), progress)


def _built(
    offered: Any,  # noqa: ANN401 - as above
    named: str,
    out: Path | None,
    *,
    force: bool,
) -> Any:  # noqa: ANN401 - as above
    """The report, once the folder or file is written that it is about, if any."""
    from runner.errors import UsageError
    from runner.job import PreparedCheck, PreparedData, PreparedFolder
    from runner.records.folders import replaced

    is_folder = isinstance(offered, PreparedFolder)
    builds = is_folder or isinstance(offered, PreparedData)
    if out is None:
        if builds and not isinstance(offered, PreparedCheck):
            built = "folder" if is_folder else "file"
            raise UsageError(f"{named} builds a {built}; say where with --out.")
        return offered
    if not builds:
        raise UsageError(f"{named} builds no file; leave out --out.")
    if isinstance(offered, PreparedFolder):
        with replaced(out, force=force) as draft:
            return offered.write(draft)
    try:
        out.write_bytes("".join(f"{line}\n" for line in offered.lines).encode())
    except OSError as error:
        raise UsageError(f"{out} cannot be written: {error.strerror}.") from error
    return offered
