"""The command import: records answers of other tools as a run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import click

from runner.cli import choices, collector
from runner.cli.choices import ANY_SETTING
from runner.cli.speech import tell
from runner.cli.words import split_words


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
