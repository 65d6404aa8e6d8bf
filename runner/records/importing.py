"""Writes answers made elsewhere into a log, as a run like any other.

No attempt of ours is recorded, because none was sent; each answer is stored in the
same wire form as a model's own, so replay need not know where it came from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from runner.clients.client import Received
from runner.engine.answered import answered, completed
from runner.errors import UsageError
from runner.faults import JobFaults, read_reply
from runner.job import ImportedAnswer, Importer, Job, Stage
from runner.plan import BLOCK, stage_of
from runner.reply import Reply
from runner.task import Task
from runner.wire import encode_answer
from runner.work import Work
from store.events import Entry, Event, RunFinished, TaskFailed, TasksPlanned
from store.log.interface import Log
from store.task import PlannedTask, manifest_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Census:
    """Who answered, found before anything is written."""

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
        known = ", ".join(importer.formats)
        raise UsageError(f"There is no format {form!r}; choose one of {known}.")


def census(job: Job, answers: Iterable[ImportedAnswer]) -> Census:
    """Count models and replicates before anything is written."""
    models: dict[str, None] = {}
    notes: dict[str, None] = {}
    replicates = count = 0
    for answer in answers:
        if stage_of(job, answer.spec.stage).role == "subject":
            models[answer.model] = None
        replicates = max(replicates, answer.replicate)
        notes.update(dict.fromkeys(answer.notes))
        count += 1
    return Census(
        models=tuple(models),
        replicates=replicates,
        answers=count,
        notes=tuple(notes),
    )


async def write_answers(
    log: Log,
    work: Work,
    answers: Iterable[ImportedAnswer],
    tell: Callable[[str], None] | None = None,
) -> None:
    """Record all answers and that the run is finished; *tell* shows a sentence."""
    faults = None if tell is None else JobFaults(tell)
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
    work: Work, number: int, answer: ImportedAnswer, text: str, faults: JobFaults | None
) -> list[Entry | Event]:
    stage: Stage = stage_of(work.job, answer.spec.stage)
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
    received = Received(body=body, form=form, reply=reply)
    event = answered(received, task=number, attempt=0, latency_ms=None, cost_usd=None)
    return [Entry(event=event, payload=body), completed(number, 0, parsed)]
