"""The command import: makes a run of answers made by other tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from runner.cli import arguments, console
from runner.cli.arguments import ANY_SETTING, split_words
from runner.cli.console import DONE, print_json, print_note
from runner.cli.request import NOT_TYPED, RunRequest
from runner.errors import UsageError

if TYPE_CHECKING:
    from runner.imported_answers import ImportSummary
    from runner.imports.tasks import ForeignImporter
    from runner.job import ImportedAnswer, Importer, Job
    from runner.workload import Workload

GENERAL_JOB: Final = "replies"
"""The job of files of other tools, if none is named: their prompts are its items."""

NEW_ID: Final = "--as"
"""The option that names the run, in errors; --run-id is the same."""

PROGRESS_ANSWERS: Final = 100
"""Answers between two looks at the clock, for a line of progress."""

FILES: Final = "rows"
"""Its setting with these files; `form` and `item` are settings too."""


@click.command("import", context_settings=ANY_SETTING)
@click.argument("job_name", metavar="[JOB] FILES...")
@click.argument("words", nargs=-1, metavar="", type=click.UNPROCESSED)
@click.option("--model", help="Model name, if the files do not give it.")
@click.option(
    "--format",
    "form",
    help="Format of the files.  [default: recognised from their contents]",
)
@click.option(
    "--item",
    default="",
    metavar="FIELD",
    help="Field of another tool's file with the key of the item, such as "
    "metadata.pmid.  [default: the id of the sample]",
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
@arguments.imported_run
@click.option("--dry-run", is_flag=True, help="Print what would be imported.")
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
    item: str,
    replicates: tuple[tuple[Path, int], ...],
    responses: tuple[str, ...],
    dry_run: bool,
    no_score: bool,
    **parameters: Any,
) -> int:
    """Import answers made by other tools as a run of JOB.

    The format of FILES is recognised from their contents: one of JOB, or a log of
    another tool (docs/imports.md). Without JOB, the prompts of such files are the items
    of the run. Give a setting of the job by its own flag (--profile NAME) or as --set
    profile=NAME; siftlog jobs JOB --all lists them.
    """
    import asyncio

    from runner.cli import run_steps
    from runner.cli.paced import paced_progress
    from runner.imported_answers import AnswerSpool, census, write_answers
    from runner.run.end import RunOutcome
    from runner.run.folder import check_new, create
    from runner.workload import file_lists, load_workload, switches

    if is_file(job_name):
        words, job_name = (job_name, *words), GENERAL_JOB
    job, source = run_steps.chosen_job(job_name, RunRequest.of((), parameters).source)
    plain, flags = split_words(words, switches(job), file_lists(job))
    files = tuple(Path(name) for name in (*plain, *responses))
    sets = [*source.sets]
    if job.holds_foreign:
        sets += [f"{FILES}={file}" for file in files]
        sets += [f"form={form}"] if form else []
        sets += [f"item={item}"] if item else []
    request = RunRequest.of(flags, {**parameters, "sets": tuple(sets)})
    folder = run_steps.new_folder(request.runs_dir, request.run_id, job, option=NEW_ID)
    if not dry_run:
        check_new(folder, NEW_ID)  # before files are read, which can take minutes
    file = run_steps.configuration(request.source, job)
    settings = run_steps.typed_settings(job, request.source, file)
    with paced_progress(run_steps.CLOCK) as progress, AnswerSpool() as spool:
        work = load_workload(job, settings, progress=progress)
        console.relax_collector()
        foreign = foreign_importer(work, files, form, item, progress)
        importer = foreign or importer_of(job, form)
        answers = importer.read(
            files, settings, model=model, form=form, replicates=dict(replicates)
        )
        if foreign is None:
            answers = counted(answers, "{:,} answers read", progress)
        summary = census(job, spool.fill(answers))
        if request.output.as_json:
            print_summary(job, summary, foreign, dry_run=dry_run)
        if dry_run:
            report(job, summary, foreign, "Would import")
            return DONE
        options = run_steps.engine_options(
            NOT_TYPED, {}, model=summary.models, replicates=summary.replicates
        )
        context = run_steps.run_context(request, folder, work)

        async def write() -> None:
            async with create(
                folder, work, options, context.clock, imported=True
            ) as log:
                context.launched()
                line = f"{{:,}} of {summary.answers:,} answers written"
                await write_answers(
                    log, work, counted(spool, line, progress), print_note
                )

        asyncio.run(write())
    report(job, summary, foreign, "Imported")
    ended = RunOutcome(outcome="finished")
    return run_steps.end(folder, work, ended, request.output, scores=not no_score)


def is_file(word: str) -> bool:
    """Return whether the first word is a file to import, and not a job.

    Raises:
        UsageError: it looks like a file, and there is none.
    """
    from runner.registry import is_job

    if is_job(word):
        return False
    if not Path(word).is_file() and Path(word).suffix:
        raise UsageError(
            f"{word} does not exist: name a job, or a file to import without one."
        )
    return Path(word).is_file()


def foreign_importer(
    work: Workload,
    files: Sequence[Path],
    form: str | None,
    item: str,
    progress: Callable[[str], None],
) -> ForeignImporter | None:
    """Return the importer for files of other tools; None if they are the job's own.

    A job without an importer takes no others.

    Raises:
        DatasetError: a file cannot be read.
    """
    from runner.imports.forms import FORMS, recognised
    from runner.imports.tasks import ForeignImporter

    of_job: Mapping[str, str] = work.job.importer.formats if work.job.importer else {}
    is_foreign = work.job.holds_foreign or (
        form in FORMS and form not in of_job
        if form is not None
        else bool(files)
        and all(file.is_file() and recognised(file, plain=False) for file in files)
    )
    if not is_foreign and not (work.job.importer is None and files):
        return None
    return ForeignImporter(work.job, work.dataset, item, progress)


def counted(
    answers: Iterable[ImportedAnswer], line: str, progress: Callable[[str], None]
) -> Iterator[ImportedAnswer]:
    """Yield *answers*, and show how many there were, by a line with a place for it."""
    for number, answer in enumerate(answers, 1):
        yield answer
        if number % PROGRESS_ANSWERS == 0:
            progress(line.format(number))


def importer_of(job: Job, form: str | None) -> Importer:
    """Return the job's own importer.

    Raises:
        UsageError: it has none, or there is no such format.
    """
    importer: Importer | None = job.importer
    if importer is None:
        raise UsageError(
            f"Name the files to import after {job.name}: it has no forms of its own, "
            "and takes the logs of other tools."
        )
    if form not in {None, *importer.formats}:
        formats = ", ".join(importer.formats)
        raise UsageError(f"There is no format {form!r}; choose one of {formats}.")
    return importer


def report(
    job: Job, summary: ImportSummary, foreign: ForeignImporter | None, verb: str
) -> None:
    """Print what was read, and what was not kept of it, on stderr."""
    for note in summary.notes:
        print_note(note)
    if foreign is not None:
        for what, replies in foreign.dropped.most_common():
            print_note(f"note: not kept: {what} ({replies:,} replies)")
        if foreign.missing:
            print_note(
                f"note: {foreign.missing:,} items of {job.name} have no reply in the "
                "files."
            )
    failed = f", {summary.failed:,} failed" if summary.failed else ""
    print_note(
        f"{verb} {summary.answers:,} tasks of: {', '.join(summary.models)}{failed}."
    )


def print_summary(
    job: Job,
    summary: ImportSummary,
    foreign: ForeignImporter | None,
    *,
    dry_run: bool,
) -> None:
    """Print the same as JSON."""
    dropped = [] if foreign is None else foreign.dropped.most_common()
    print_json(
        "siftlog.import/1",
        {
            "job": job.name,
            "models": list(summary.models),
            "replicates": summary.replicates,
            "tasks": summary.answers,
            "failed": summary.failed,
            "skipped": summary.skipped,
            "missing": 0 if foreign is None else foreign.missing,
            "dropped": [
                {"what": what, "replies": replies} for what, replies in dropped
            ],
            "notes": list(summary.notes),
            "dry_run": dry_run,
        },
    )
