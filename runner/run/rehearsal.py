"""Forecasts a fork: which requests it asks, what it adopts, and what both cost.

A rehearsal runs the fork offline with the engine that runs it later, so both plan,
adopt and ask the same tasks; only its replies are those of the job's baseline. What is
adopted is exact. What is asked is exact up to the follow-ups of answers still to come,
and its cost is as good as the baseline's length.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from runner.clients.client import Call, ModelClient, is_offline
from runner.clients.offline import FunctionClient
from runner.job import Job
from runner.messages import AnyReply, Reply, Request, Usage
from runner.money.prices import prices_of
from runner.money.tokens import prompt_tokens, text_tokens, worst_output
from runner.options import RunOptions
from runner.run.context import RunContext
from runner.run.endpoints import connect
from runner.run.folder import create
from runner.run.fork import ParentAnswers, parent_answers
from runner.run.launch import ResumeState, RunSession
from runner.workload import Workload
from store.database import open_reader
from store.errors import Unwritable
from store.events import AttemptAnswered, AttemptStarted, Entry
from store.lineage import ForkOrigin
from store.log.sqlite import SqliteLog
from store.read.tasks import events, every_task
from store.runs import RunFolder
from store.task import pico

PAGE: Final = 2_000


@dataclass(slots=True, kw_only=True)
class ForkedStage:
    """Tasks of a stage and model in a fork."""

    adopted: int = 0
    sent: int = 0
    saved_pico: int = 0  #: what the adopted answers had cost
    spend_pico: int | None = 0  #: what the sent ones will cost; None: unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedRequest:
    """A request that the parent run has no answer to."""

    stage: str
    key: str
    model: str
    replicate: int
    request_sha256: str
    is_certain: bool  #: no request of an earlier stage differs


@dataclass(frozen=True, slots=True, kw_only=True)
class ForkForecast:
    """Answers that a fork adopts, and requests that it sends."""

    stages: Mapping[tuple[str, str], ForkedStage]  #: by stage and model
    sent: tuple[ChangedRequest, ...]

    @property
    def saved_pico(self) -> int:
        """Cost of the adopted answers, in pico-dollars."""
        return sum(stage.saved_pico for stage in self.stages.values())

    @property
    def spend_pico(self) -> int | None:
        """Estimated cost of the requests to send, in pico-dollars; None: unknown."""
        spends = [stage.spend_pico for stage in self.stages.values()]
        return None if None in spends else sum(filter(None, spends))


async def baseline_reply(job: Job, request: Request) -> AnyReply:
    """Return the reply of a job's baseline, with the usage that it would have."""
    content = await asyncio.to_thread(job.baseline, request)
    written = 0
    if isinstance(content, str):
        written = min(text_tokens(content) + 1, worst_output(request))
    usage = Usage(tokens_in=prompt_tokens(request), tokens_out=written)
    if isinstance(content, str):
        return Reply(text=content, usage=usage)
    return replace(content, usage=usage)


def rehearsing(job: Job, parent: ParentAnswers) -> FunctionClient:
    """Return a client that replies like the parent run, else like the baseline."""

    async def answer(call: Call) -> AnyReply:
        reply = await parent.again(call.task, call.request_sha256)
        return await baseline_reply(job, call.request) if reply is None else reply

    return FunctionClient(answer)


def without_limits(options: RunOptions) -> RunOptions:
    """Return options of a rehearsal: nothing is sent, so nothing has to wait."""
    free: dict[str, object] = {"rpm": None, "tpm": None}
    return options.model_copy(
        update={
            **free,
            "budget": None,
            "cache": False,
            "batch": False,
            "stop_if": ("off",),
            "models": {
                model: of_model.model_copy(update=free)
                for model, of_model in options.models.items()
            },
        }
    )


def forecast(log: Path, order: Sequence[str]) -> ForkForecast:
    """Read the forecast from the log of a rehearsal, or the outcome from a fork's."""
    stages: dict[tuple[str, str], ForkedStage] = {}
    hashes: dict[int, str] = {}
    answered: dict[int, list[AttemptAnswered]] = {}
    sent: list[ChangedRequest] = []
    changed: set[str] = set()  #: stages with a request that differs
    after = 0
    with open_reader(log) as reader:
        kinds = ["attempt_started", "attempt_answered"]
        while page := events(reader, after=after, limit=PAGE, kinds=kinds):
            after = page[-1].seq
            for event in (row.event for row in page):
                if isinstance(event, AttemptStarted):
                    hashes.setdefault(event.task, event.request_sha256)
                elif isinstance(event, AttemptAnswered):
                    answered.setdefault(event.task, []).append(event)
        for row in every_task(reader):
            if row.task not in hashes or is_offline(row.model):
                continue
            figures = stages.setdefault((row.stage, row.model), ForkedStage())
            replies = answered.get(row.task, [])
            if replies and replies[0].forked is not None:
                figures.adopted += 1
                figures.saved_pico += pico(replies[0].forked.cost_usd)
                continue
            figures.sent += 1
            changed.add(row.stage)
            for reply in replies:
                if figures.spend_pico is None or reply.cost_usd is None:
                    figures.spend_pico = None
                else:
                    figures.spend_pico += pico(reply.cost_usd)
            sent.append(
                ChangedRequest(
                    stage=row.stage,
                    key=row.key,
                    model=row.model,
                    replicate=row.replicate,
                    request_sha256=hashes[row.task],
                    is_certain=row.root == row.task
                    or not changed.intersection(order[: order.index(row.stage)]),
                )
            )
    return ForkForecast(stages=stages, sent=tuple(sent))


@contextmanager
def rehearsal_room() -> Iterator[Path]:
    """Yield a temporary folder for the runs of a rehearsal.

    Raises:
        Unwritable: it has no space for their logs.
    """
    # nothing else is written in a rehearsal: the parent run is only read
    with TemporaryDirectory(prefix="siftlog-") as room:
        try:
            yield Path(room)
        except Unwritable as error:
            cause: BaseException = error
            while cause.__cause__ is not None:
                cause = cause.__cause__
            raise Unwritable(
                f"the forecast cannot keep its log in {Path(room).parent} ({cause}): "
                "free space there, or set TMPDIR to another folder"
            ) from error


async def rehearse(
    parent: RunFolder,
    name: str,
    work: Workload,
    options: RunOptions,
    context: RunContext,
    *,
    fork: ForkOrigin,
    added: Sequence[Entry] = (),
) -> ForkForecast:
    """Run a fork offline in a temporary folder, and return what it would ask.

    Args:
        parent: the run that is forked.
        name: the id of the fork.
        work: the fork's job, settings and data.
        options: how its calls are sent.
        context: its context.
        fork: what it may adopt.
        added: the events of its added stages, which *work* has already.
    """
    with rehearsal_room() as room:
        (room / fork.run).symlink_to(parent.path.absolute())
        folder = RunFolder(room / name)
        free = without_limits(options)
        async with create(
            folder, work, free, context.clock, fork=fork, added=added
        ) as log:
            await log.serve_forked_bodies()
            answers = await asyncio.to_thread(parent_answers, folder, fork)
            await act_out(
                folder,
                log,
                work,
                options,
                context,
                client=rehearsing(work.job, answers),
                resume_state=ResumeState(parent=answers),
            )
        return forecast(folder.log, [stage.name for stage in work.job.stages])


async def act_out(
    folder: RunFolder,
    log: SqliteLog,
    work: Workload,
    options: RunOptions,
    context: RunContext,
    *,
    client: ModelClient,
    resume_state: ResumeState,
) -> None:
    """Carry a run out in a temporary folder; *client* replies for online models.

    Args:
        folder: the run's.
        log: open for writing.
        work: its job, settings and data.
        options: how its calls would be sent.
        context: its context.
        client: replies instead of the endpoints.
        resume_state: state in which the run is found.
    """
    free = without_limits(options)
    connections = connect(work, free, context)
    online = {m for m in connections.clients if not is_offline(m)}
    for model in online:
        await connections.clients[model].close()
    session = RunSession(
        folder=folder,
        log=log,
        work=work,
        options=free,
        context=replace(
            context,
            notify=lambda _: None,
            launched=lambda: None,
            watch=lambda *_: nullcontext(),
            obey=lambda *_: None,
        ),
        connections=replace(
            connections,
            clients={**connections.clients, **dict.fromkeys(online, client)},
        ),
        prices=prices_of(connections.clients, options),
        resume_state=resume_state,
    )
    await session.carry_out(None)
