"""The command import: makes a run of answers made by other tools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runner.cli import arguments, console
from runner.cli.arguments import ANY_SETTING, split_words
from runner.cli.console import print_note
from runner.cli.request import NOT_TYPED, RunRequest
from runner.errors import UsageError

if TYPE_CHECKING:
    from runner.job import Importer


@click.command("import", context_settings=ANY_SETTING)
@click.argument("job_name", metavar="JOB")
@click.argument("words", nargs=-1, metavar="[FILES]...", type=click.UNPROCESSED)
@click.option("--model", help="Model name, if the files do not give it.")
@click.option(
    "--format",
    "form",
    help="Format of the files.  [default: recognised from their contents]",
)
@click.option(
    "--replicate",
    "replicates",
    multiple=True,
    type=(click.Path(path_type=Path), int),
    metavar="FILE N",
    help="Replicate number of a file.",
)
@click.option(
    "--responses-path", "responses", multiple=True, help="Further file to import."
)
@arguments.new_run
@arguments.no_score
@arguments.no_report
@arguments.figures
@arguments.strict
@arguments.output_dir
@arguments.as_json
def import_(
    job_name: str,
    words: tuple[str, ...],
    model: str | None,
    form: str | None,
    replicates: tuple[tuple[Path, int], ...],
    responses: tuple[str, ...],
    no_score: bool,
    **parameters: Any,
) -> int:
    """Import answers made by other tools as a run of JOB.

    The format of FILES is recognised from their contents. Give a setting of the job by
    its own flag (--profile NAME) or as --set profile=NAME; siftlog jobs JOB --all lists
    them.
    """
    import asyncio

    from runner.cli import run_steps
    from runner.imported_answers import AnswerSpool, census, write_answers
    from runner.run.end import RunOutcome
    from runner.run.folder import create
    from runner.workload import file_lists, load_workload, switches

    job, source = run_steps.chosen_job(job_name, RunRequest.of((), parameters).source)
    importer = job.importer
    if importer is None:
        raise UsageError(f"{job.name} has no import.")
    require_form(importer, form)
    plain, flags = split_words(words, switches(job), file_lists(job))
    files = tuple(Path(name) for name in (*plain, *responses))
    request = RunRequest.of(flags, {**parameters, "sets": source.sets})
    file = run_steps.configuration(request.source, job)
    settings = run_steps.typed_settings(job, request.source, file)
    work = load_workload(job, settings)

    console.relax_collector()
    with AnswerSpool() as spool:
        answers = importer.read(
            files, settings, model=model, form=form, replicates=dict(replicates)
        )
        summary = census(job, spool.fill(answers))
        options = run_steps.engine_options(
            NOT_TYPED, {}, model=summary.models, replicates=summary.replicates
        )
        folder = run_steps.new_folder(request.runs_dir, request.run_id, job)
        context = run_steps.run_context(request, folder, work)

        async def write() -> None:
            async with create(
                folder, work, options, context.clock, imported=True
            ) as log:
                context.launched()
                await write_answers(log, work, spool, print_note)

        asyncio.run(write())
    for note in summary.notes:
        print_note(note)
    print_note(f"Imported {summary.answers:,} tasks of: {', '.join(summary.models)}.")
    ended = RunOutcome(outcome="finished")
    return run_steps.end(folder, work, ended, request.output, scores=not no_score)


def require_form(importer: Importer, form: str | None) -> None:
    """Refuse a format that the importer does not have.

    Raises:
        UsageError: there is no such format.
    """
    if form not in {None, *importer.formats}:
        formats = ", ".join(importer.formats)
        raise UsageError(f"There is no format {form!r}; choose one of {formats}.")
