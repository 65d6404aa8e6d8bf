"""Writes answers made by other tools as the log of a finished run.

An importer yields each answer once. They are counted before the run is created, so
they pass through a spool, which replays them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from tempfile import SpooledTemporaryFile
from types import TracebackType
from typing import Self

import msgspec
import zstandard

from runner.clients.client import Received
from runner.clients.wire import decode_reply, encode_answer
from runner.engine.attempt_events import answered_event, completed_event
from runner.job import ImportedAnswer, Job, Task
from runner.job_faults import JobFaults, read_reply
from runner.messages import Reply
from runner.plan import BLOCK, stage_of
from runner.workload import Workload
from store.events import (
    Entry,
    Event,
    RunFinished,
    TaskFailed,
    TasksPlanned,
)
from store.log.interface import Log
from store.task import PlannedTask, manifest_bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSummary:
    """Models and replicates of an import, counted before anything is written."""

    models: tuple[str, ...]  #: of the subject role, in the order they appear
    replicates: int
    answers: int
    failed: int = 0  #: of the answers, calls that failed in the other tool
    skipped: int = 0  #: of the answers, tasks that were never sent
    notes: tuple[str, ...] = ()  #: sentences about the files, each once


def census(job: Job, answers: Iterable[ImportedAnswer]) -> ImportSummary:
    """Count models and replicates before anything is written."""
    subjects = {stage.name for stage in job.stages if stage.role == "subject"}
    models: dict[str, None] = {}
    notes: dict[str, None] = {}
    replicates = count = failed = skipped = 0
    for count, answer in enumerate(answers, 1):  # noqa: B007 - the number of answers
        skipped += answer.spec.skip is not None
        failed += answer.spec.skip is None and answer.text is None
        if answer.spec.stage in subjects:
            models[answer.model] = None
        replicates = max(replicates, answer.replicate)
        if answer.notes:
            notes.update(dict.fromkeys(answer.notes))
    return ImportSummary(
        models=tuple(models),
        replicates=replicates,
        answers=count,
        failed=failed,
        skipped=skipped,
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
    received = _received(answer, text)
    parsed = read_reply(stage, work.dataset, task, received.reply, faults)
    event = answered_event(
        received,
        task=number,
        attempt=0,
        latency_ms=answer.latency_ms,
        cost_usd=answer.cost_usd,
    )
    return [
        Entry(event=event, payload=received.body),
        completed_event(number, 0, parsed),
    ]


def _received(answer: ImportedAnswer, text: str) -> Received:
    """Return the reply of an answer as if it had just been received."""
    if answer.body is not None:
        reply = decode_reply(answer.form, answer.body)
        return Received(reply=reply, form=answer.form, body=answer.body)
    reply = Reply(
        text=text,
        finish_reason=answer.finish_reason,
        usage=answer.usage,
        served=answer.served,
    )
    form, body = encode_answer(reply, answer.created_s)
    return Received(reply=reply, form=form, body=body)


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
