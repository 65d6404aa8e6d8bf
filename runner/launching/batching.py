"""What a run has in batches as a process takes it up, and the clients that go on."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence

from runner.batch.carrier import Setting
from runner.batch.client import BatchClient
from runner.batch.endpoint import BatchEndpoint
from runner.batch.ids import run_tag
from runner.batch.known import left_batches
from runner.batch.opening import open_batch_clients
from runner.errors import UsageError
from runner.launching.shell import Shell
from runner.options import RunOptions
from store.database import open_reader
from store.events import AttemptStarted
from store.log.interface import Log
from store.read.usage import sent_starts
from store.runs import RunFolder


def carried(folder: RunFolder, options: RunOptions) -> Sequence[AttemptStarted]:
    """The attempts that earlier processes have put, or were to put, into batches.

    None of them was sent without its batch standing in the log, so what became of each
    can be found out, and none is unknown.

    Raises:
        UsageError: there are some, and the run is to go on without batches.
    """
    with open_reader(folder.log) as reader:
        found = [start for start in sent_starts(reader) if start.batched]
    if found and not options.batch:
        raise UsageError(
            f"{len(found):,} requests of run {folder.run_id} wait in batches: go on "
            f"with siftlog resume {folder.run_id} --batch."
        )
    return found


def tag_of(folder: RunFolder) -> str:
    """The beginning of the keys of all batches of a run, or of a shard of it."""
    return run_tag(f"{folder.run_id}{folder.part}")


def batch_clients(
    folder: RunFolder,
    log: Log,
    options: RunOptions,
    shell: Shell,
    *,
    endpoints: Mapping[str, BatchEndpoint],
    starts: Sequence[AttemptStarted],
    leaving: asyncio.Event,
) -> dict[str, BatchClient]:
    """The clients of the models that are asked by batches.

    Args:
        folder: the run's.
        log: the run's.
        options: how calls are sent.
        shell: what surrounds the run.
        endpoints: where these models are asked.
        starts: the attempts that go on.
        leaving: set as the process is about to end.
    """
    if not endpoints:
        return {}
    with open_reader(folder.log) as reader:
        left = left_batches(reader, starts)
    setting = Setting(
        tag=tag_of(folder),
        log=log,
        clock=shell.clock,
        leaving=leaving,
        tell=shell.tell,
        ids=set(left.ids),
        adopted=left.adopted,
    )
    return open_batch_clients(endpoints, options, setting, left)
