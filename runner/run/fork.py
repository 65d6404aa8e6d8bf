"""Continues a finished run as another one: adopts answers to unchanged requests.

`ParentAnswers` finds the answer of the parent run to a request by its hash, which
covers the model, every parameter and all texts.

A fork can adopt from any run that has ended, so every one is a cache
(`design/fork.md`).
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import structs

from runner.clients.client import ClientOptions, Received
from runner.clients.wire import decode_reply
from runner.engine.answer_cache import origin_of
from runner.errors import MalformedReply, UsageError
from runner.job import Job, Task
from runner.messages import AnyReply
from runner.money.prices import api_of
from runner.options import RunOptions
from runner.roles import assigned
from store.database import LogReader, open_reader
from store.errors import StoreError
from store.events import AttemptAnswered, AttemptStarted, Entry
from store.forked import origin, parent_log
from store.lineage import ForkedBody, ForkOrigin, ParentLog
from store.read.live import AT_WORK, live_status, union_progress
from store.read.status import added_stages, run_started
from store.read.tasks import events, every_task, stored_replies
from store.runs import RunFolder, list_runs
from store.tables import head, last_seq
from store.task import TaskState, pico, usd
from store.time_travel import open_to_end
from store.union.origins import Origin, Origins

PAGE: Final = 2_000


@dataclass(slots=True, kw_only=True)
class _Cost:
    """Request and cost of a task in a log of the parent run."""

    request_sha256: str  #: of the first attempt: a re-ask has another request
    pico_usd: int = 0


class _Adoptable(NamedTuple):
    """An answer of the parent run."""

    seq: int  #: in the log that is read, which of a split run is the union
    body: ForkedBody  #: without its hash


class ParentAnswers:
    """Finds answers of the parent run to the requests of its fork."""

    def __init__(self, log: Path, fork: ForkOrigin) -> None:
        """Read which requests the parent run has answers to."""
        self._log = log
        self._models = frozenset(fork.models)
        self._anew = frozenset(fork.anew)
        with open_to_end(log) as reader:
            self._answers = dict(_answers(reader, fork))

    def serves(self, model: str) -> bool:
        """Return whether *model* had the same endpoint in the parent run."""
        return model in self._models

    async def find(self, requests: Sequence[tuple[Task, str]]) -> list[Received | None]:
        """Return the reply to each task's request, given by its hash, or None."""
        matches = [
            None if task.stage in self._anew else self._answer(task, sha256)
            for task, sha256 in requests
        ]
        seqs = [answer.seq for answer in matches if answer is not None]
        received = await asyncio.to_thread(self._received, seqs)
        return [
            None
            if answer is None or (reply := received.get(answer.seq)) is None
            else replace(
                reply,
                forked=structs.replace(answer.body, sha256=_sha256(reply.body)),
            )
            for answer in matches
        ]

    async def again(self, task: Task, sha256: str) -> AnyReply | None:
        """Return the reply to a request, also of a stage that is asked anew."""
        answer = self._answer(task, sha256) if self.serves(task.model) else None
        if answer is None:
            return None
        received = (await asyncio.to_thread(self._received, [answer.seq])).get(
            answer.seq
        )
        return None if received is None else received.reply

    def _answer(self, task: Task, sha256: str) -> _Adoptable | None:
        return self._answers.get((task.stage, sha256, task.replicate))

    def _received(self, seqs: Sequence[int]) -> dict[int, Received]:
        received = {}
        with open_reader(self._log) as reader:
            for stored in stored_replies(reader, seqs).values():
                answered = stored.answered
                try:
                    reply = decode_reply(answered.form, stored.body)
                except MalformedReply:
                    continue
                received[stored.seq] = Received(
                    body=stored.body,
                    form=answered.form,
                    reply=reply,
                    status=answered.status,
                    headers=answered.headers,
                )
        return received


def _sha256(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def _answers(
    reader: LogReader, fork: ForkOrigin
) -> Iterator[tuple[tuple[str, str, int], _Adoptable]]:
    """Yield the answers of a run by stage, hash of the request and replicate."""
    place = Origins(reader).origin if fork.logs else partial(Origin, "")
    last = {log.log: log.seq for log in fork.logs} or {"": fork.seq}
    #: by task and log: shards may have asked the same
    costs: dict[tuple[int, str], _Cost] = {}
    after = 0
    kinds = ["attempt_started", "attempt_answered"]
    while page := events(reader, after=after, limit=PAGE, kinds=kinds):
        after = page[-1].seq
        for row in page:
            event, (log, seq) = row.event, place(row.seq)
            if seq > last.get(log, 0):
                continue
            if isinstance(event, AttemptStarted):
                if (event.task, log) not in costs:
                    first = _Cost(request_sha256=event.request_sha256)
                    costs[event.task, log] = first
            elif isinstance(event, AttemptAnswered) and (event.task, log) in costs:
                before = event.forked.cost_usd if event.forked else 0.0
                paid = pico(event.cost_usd or 0.0) + pico(before)
                costs[event.task, log].pico_usd += paid
    for task in every_task(reader):
        if task.state is not TaskState.COMPLETED or task.reply_seq is None:
            continue
        log, seq = place(task.reply_seq)
        cost = costs.get((task.task, log))
        # a later answer: the parent run has asked again since
        if cost is not None and seq <= last.get(log, 0):
            yield (
                (task.stage, cost.request_sha256, task.replicate),
                _Adoptable(
                    task.reply_seq,
                    ForkedBody(
                        seq=seq, sha256="", cost_usd=usd(cost.pico_usd), log=log
                    ),
                ),
            )


def parent_answers(fork: RunFolder, origin: ForkOrigin) -> ParentAnswers:
    """Return the answers that a fork may adopt.

    Raises:
        UsageError: the parent run is not beside the fork.
    """
    log = parent_log(fork.log, origin)
    if origin.logs:
        RunFolder(log.parent).refresh()  # the union can be made again
    if not log.exists():
        raise UsageError(
            f"Run {fork.run_id} adopts answers of run {origin.run}, which is not in "
            f"{log.parent.parent}: put its folder back there."
        )
    return ParentAnswers(log, origin)


def fork_origin(
    parent: RunFolder,
    job: Job,
    before: RunOptions,
    now: RunOptions,
    environment: Mapping[str, str],
    *,
    now_us: int,
    from_stage: str | None,
) -> ForkOrigin:
    """Return what a fork may adopt from a run that no process is writing.

    Args:
        parent: the run; it may be unfinished.
        job: its job.
        before: the run's own options.
        now: the options of the fork.
        environment: holds addresses of providers.
        now_us: microseconds since 1970 UTC.
        from_stage: the first stage that is asked anew; None: none is.

    Raises:
        UsageError: the run is imported or running, or lacks the stage.
    """
    stages = [stage.name for stage in job.stages]
    if from_stage is not None and from_stage not in stages:
        raise UsageError(
            f"--from-stage {from_stage}: {job.name} has the stages {', '.join(stages)}."
        )
    with open_reader(parent.log) as reader:
        first, added = run_started(reader), added_stages(reader)
        seq, link, logs = _end(reader)
        # shards may run on other machines
        seen = live_status(reader, now_us, is_held=False) if logs else None
    if first.imported:
        raise UsageError(
            f"Run {parent.run_id} was imported, so it has no requests to compare; "
            "start a new run with siftlog run."
        )
    if parent.is_alive() or (seen is not None and seen.state in AT_WORK):
        raise UsageError(
            f"Run {parent.run_id} is running: stop it with siftlog drain "
            f"{parent.run_id}, or wait for its end, before you fork it."
        )

    def endpoint(model: str, options: RunOptions) -> object:
        return origin_of(
            model,
            ClientOptions(
                base_url=options.of(model).base_url,
                api=api_of(model, options),
                environment=environment,
            ),
        )

    earlier = {model for of_role in first.models.values() for model in of_role}
    earlier.update(event.model for event, _ in added)
    models = [
        model
        for model in assigned(job, now).all_models
        if model in earlier and (where := endpoint(model, now)) is not None
        if where == endpoint(model, before)
    ]
    return ForkOrigin(
        run=parent.run_id,
        seq=seq,
        link=link,
        models=models,
        anew=() if from_stage is None else tuple(stages[stages.index(from_stage) :]),
        logs=logs,
    )


def _end(reader: LogReader) -> tuple[int, str, tuple[ParentLog, ...]]:
    """Return the last event of a run, the hash of its chain there, and its logs.

    Of a split run: the number of events in its logs, and the digest of their ends.
    """
    whole = union_progress(reader)
    if whole is None:
        return last_seq(reader), head(reader), ()
    logs = tuple(
        ParentLog(log=part.log, seq=part.events, link=part.link)
        for part in sorted(whole.parts, key=lambda part: part.log)
    )
    return sum(log.seq for log in logs), whole.digest, logs


def carried_stages(parent: RunFolder) -> list[Entry]:
    """Return the events that add the stages of a run to its fork.

    Without their budgets, which are of the run.
    """
    with open_reader(parent.log) as reader:
        return [
            Entry(event=structs.replace(event, budget_usd=None), payload=declaration)
            for event, declaration in added_stages(reader)
        ]


def forks_of(parent: RunFolder) -> list[str]:
    """Return the ids of the forks of *parent*; unreadable runs are skipped.

    A fork reads the parent's answers whenever it is resumed, also if it has adopted
    none so far.
    """
    forks = []
    for folder in list_runs(parent.path.parent):
        try:
            with open_reader(folder.log) as reader:
                fork = origin(reader)
        except StoreError:
            continue
        if fork is not None and fork.run == parent.run_id:
            forks.append(folder.run_id)
    return forks
