"""A new run's folder and log: everything that is fixed once it has begun."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from runner.errors import UsageError
from runner.options import RunOptions, write_toml
from runner.roles import assigned
from runner.work import Work
from store.clock import Clock
from store.errors import RunExists, StoreError
from store.events import ExpectedUsage, RunStarted
from store.filesystem import make_folder, network_problem
from store.log.integrity import check_absent
from store.log.sqlite import SqliteLog
from store.runs import RunFolder
from store.slices import Shard


@asynccontextmanager
async def create(
    folder: RunFolder,
    work: Work,
    options: RunOptions,
    clock: Clock,
    *,
    imported: bool = False,
    expects: ExpectedUsage | None = None,
    group: str | None = None,
    shard: Shard | None = None,
) -> AsyncIterator[SqliteLog]:
    """A new run's log with its first event; the folder must not hold a run yet.

    A shard's log may be there without any event: its writer died before the first.
    """
    if (refused := network_problem(folder.path)) is not None:
        raise StoreError(refused)
    if shard is None:
        check_new(folder)
    make_folder(folder.path)
    # who judged, embedded or ranked elsewhere stands with each task
    roles = (
        {"subject": options.model} if imported else assigned(work.job, options).models
    )
    settings = work.settings.model_dump(mode="json")
    write_toml(folder.config, job=work.job.name, options=options, settings=settings)
    async with await _made(folder, work, options, clock) as log:
        await log.append(
            RunStarted(
                run_id=folder.run_id,
                job=work.job.name,
                job_version=work.job.version,
                code_sha256=work.code_sha256,
                settings=work.settings_json,
                models={role: list(of_role) for role, of_role in roles.items()},
                replicates=options.replicates,
                inputs=work.inputs,
                siftlog_version=version("siftlog"),
                imported=imported,
                expected=expects,
                budget_usd=options.budget,
                group=group,
                stopping=None if imported else options.stopping,
                shard=shard,
            )
        )
        yield log


def check_new(folder: RunFolder) -> None:
    """Refuse a folder where there is a run, or was one whose log is gone.

    Raises:
        UsageError: there is one.
        EventsLost: there was one.
    """
    if folder.log.exists() or folder.shards():
        raise UsageError(
            f"There is a run {folder.run_id!r} already; "
            f"go on with siftlog resume {folder.run_id} or choose another --run-id."
        )
    check_absent(folder.log)


async def _made(
    folder: RunFolder, work: Work, options: RunOptions, clock: Clock
) -> SqliteLog:
    """A log without any event, made by this process or by one that died there."""
    try:
        return await SqliteLog.create(
            folder.log,
            run_id=folder.run_id,
            config_sha256=_config_hash(work, options),
            clock=clock,
            owner=owner(),
        )
    except RunExists:
        return await SqliteLog.open(folder.log, clock=clock, owner=owner())


def owner() -> str:
    """Who writes: host and process, for people who meet a busy log."""
    return f"{os.uname().nodename}:{os.getpid()}"


def _config_hash(work: Work, options: RunOptions) -> bytes:
    """Pins what a run is; what merely paces it may change from resume to resume."""
    pinned = {
        "job": work.job.name,
        "models": assigned(work.job, options).models,
        "replicates": options.replicates,
    }
    return hashlib.sha256(json.dumps(pinned, sort_keys=True).encode()).digest()
