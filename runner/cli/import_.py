"""The command import: records answers of other tools as a run."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from tempfile import SpooledTemporaryFile
from types import TracebackType
from typing import Any, Self

import click
import msgspec
import zstandard

from runner.cli import arguments, console
from runner.cli.arguments import ANY_SETTING, split_words
from runner.cli.console import print_note
from runner.cli.request import NOT_TYPED, RunRequest
from runner.clients.wire import encode_answer
from runner.engine.attempt_events import completed_event
from runner.errors import UsageError
from runner.job import ImportedAnswer, Importer, Job, Task
from runner.job_faults import JobFaults, read_reply
from runner.messages import Reply
from runner.plan import BLOCK, stage_of
from runner.workload import Workload
from store.events import (
    AttemptAnswered,
    Entry,
    Event,
    RunFinished,
    TaskFailed,
    TasksPlanned,
)
from store.log.interface import Log
from store.task import PlannedTask, manifest_bytes


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
    from runner.cli import run_steps
    from runner.errors import UsageError
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSummary:
    """Models and replicates of an import, counted before anything is written."""

    models: tuple[str, ...]  #: of the subject role, in the order they appear
    replicates: int
    answers: int
    notes: tuple[str, ...] = ()  #: sentences about the files, each once


def require_form(importer: Importer, form: str | None) -> None:
    """Refuse a format that the importer does not have.

    Raises:
        UsageError: there is no such format.
    """
    if form not in {None, *importer.formats}:
        formats = ", ".join(importer.formats)
        raise UsageError(f"There is no format {form!r}; choose one of {formats}.")


def census(job: Job, answers: Iterable[ImportedAnswer]) -> ImportSummary:
    """Count models and replicates before anything is written."""
    subjects = {stage.name for stage in job.stages if stage.role == "subject"}
    models: dict[str, None] = {}
    notes: dict[str, None] = {}
    replicates = count = 0
    for count, answer in enumerate(answers, 1):  # noqa: B007 - the number of answers
        if answer.spec.stage in subjects:
            models[answer.model] = None
        replicates = max(replicates, answer.replicate)
        if answer.notes:
            notes.update(dict.fromkeys(answer.notes))
    return ImportSummary(
        models=tuple(models),
        replicates=replicates,
        answers=count,
        notes=tuple(notes),
    )


async def write_answers(
    log: Log,
    work: Workload,
    answers: Iterable[ImportedAnswer],
    notify: Callable[[str], None] | None = None,
) -> None:
    """Record all answers and that the run is finished; *notify* shows a sentence."""
    faults = None if notify is None else JobFaults(notify)
    numbered = _numbered(answers)
    completed = failed = skipped = 0
    consumed = 0
    first = 1
    while block := list(islice(numbered, BLOCK)):
        consumed += sum(not answer.descends for _, answer in block)
        tasks = [task for task, _ in block]
        entries: list[Entry | Event] = [
            Entry(
                event=TasksPlanned(first=first, count=len(block), consumed=consumed),
                payload=manifest_bytes(tasks),
            )
        ]
        for number, (_, answer) in enumerate(block, first):
            if answer.spec.skip is not None:
                skipped += 1
            elif answer.text is None:
                failed += 1
                error = answer.error or "unknown"
                entries.append(TaskFailed(task=number, attempt=0, error=error))
            else:
                completed += 1
                entries.extend(_answered(work, number, answer, answer.text, faults))
        await log.append(*entries)
        first += len(block)
    last = TasksPlanned(first=first, count=0, consumed=consumed, exhausted=True)
    await log.append(
        Entry(event=last, payload=manifest_bytes([])),
        RunFinished(completed=completed, failed=failed, skipped=skipped),
    )


def _numbered(
    answers: Iterable[ImportedAnswer],
) -> Iterator[tuple[PlannedTask, ImportedAnswer]]:
    root = 0
    for number, answer in enumerate(answers, 1):
        if not answer.descends:
            root = number
        spec = answer.spec
        yield (
            PlannedTask(
                stage=spec.stage,
                key=spec.key,
                model=answer.model,
                replicate=answer.replicate,
                root=root,
                skip=spec.skip,
                context=spec.context,
                group=spec.group,
            ),
            answer,
        )


def _answered(
    work: Workload,
    number: int,
    answer: ImportedAnswer,
    text: str,
    faults: JobFaults | None,
) -> list[Entry | Event]:
    stage = stage_of(work.job, answer.spec.stage)
    task = Task(
        number=number,
        stage=answer.spec.stage,
        key=answer.spec.key,
        model=answer.model,
        replicate=answer.replicate,
        context=answer.spec.context,
    )
    reply = Reply(text=text, finish_reason=answer.finish_reason)
    parsed = read_reply(stage, work.dataset, task, reply, faults)
    form, body = encode_answer(reply)
    # nothing was sent: there are neither headers nor usage, nor who served it
    event = AttemptAnswered(
        task=number,
        attempt=0,
        form=form,
        status=200,
        latency_ms=None,
        finish_reason=reply.finish_reason,
        empty=not text.strip(),
    )
    return [Entry(event=event, payload=body), completed_event(number, 0, parsed)]


IN_MEMORY = 32 << 20
"""Compressed bytes held before they move to an unnamed file; a million short decisions
need half of that."""

_LENGTH = struct.Struct("<Q")
_DECODER = msgspec.msgpack.Decoder(list[ImportedAnswer])


class AnswerSpool:
    """Consumes answers once and replays them in the same order.

    A context manager: the file is deleted on exit, and also if the process is killed.
    """

    def __init__(self, in_memory: int = IN_MEMORY) -> None:
        """Create an empty spool.

        Args:
            in_memory: compressed bytes above which a file is used.
        """
        self._file = SpooledTemporaryFile(  # noqa: SIM115 - closed by __exit__
            max_size=in_memory
        )
        self._encoder = msgspec.msgpack.Encoder()
        self._packer = zstandard.ZstdCompressor(level=1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._file.close()

    def fill(self, answers: Iterable[ImportedAnswer]) -> Iterator[ImportedAnswer]:
        """Store *answers* and yield each of them."""
        rest = iter(answers)
        while block := list(islice(rest, BLOCK)):
            packed = self._packer.compress(self._encoder.encode(block))
            self._file.write(_LENGTH.pack(len(packed)) + packed)
            yield from block

    def __iter__(self) -> Iterator[ImportedAnswer]:
        """Yield all answers from the first."""
        unpacker = zstandard.ZstdDecompressor()
        self._file.seek(0)
        while head := self._file.read(_LENGTH.size):
            packed = self._file.read(*_LENGTH.unpack(head))
            yield from _DECODER.decode(unpacker.decompress(packed))
