"""Creates the folder of a run and its log, and finds the runs of a group.

Also replaces output folders atomically.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from glob import escape
from pathlib import Path

from runner.errors import RunnerError, UsageError
from runner.fingerprint import code_fingerprint
from runner.installed import version
from runner.options import RunOptions, write_toml
from runner.roles import assigned
from runner.workload import Workload
from store.clock import Clock
from store.database import WriterLock, open_reader
from store.errors import LogBusy, RunExists, StoreError
from store.events import Entry, ExpectedUsage, RunStarted
from store.filesystem import make_folder, network_problem
from store.lineage import ForkOrigin
from store.log.integrity import check_absent
from store.log.sqlite import SqliteLog
from store.read.status import run_started
from store.read.usage import spending
from store.runs import RunFolder, list_runs
from store.slices import Shard
from store.titles import write_titles


@asynccontextmanager
async def create(
    folder: RunFolder,
    work: Workload,
    options: RunOptions,
    clock: Clock,
    *,
    imported: bool = False,
    expects: ExpectedUsage | None = None,
    group: str | None = None,
    shard: Shard | None = None,
    fork: ForkOrigin | None = None,
    added: Sequence[Entry] = (),
) -> AsyncIterator[SqliteLog]:
    """Create a new run's log with its first event; the folder must not hold a run.

    A shard's log may exist without events, if its writer died before the first. A fork
    begins with the stages that were *added* to its parent, in the same commit.
    """
    if (refused := network_problem(folder.path)) is not None:
        raise StoreError(refused)
    if shard is None:
        check_new(folder)
    make_folder(folder.path)
    if shard is None or shard.index == 0:
        write_titles(folder.whole.titles, work.titles())
    # external judges, embedders and rankers are recorded with each task
    roles = (
        {"subject": options.model} if imported else assigned(work.job, options).models
    )
    settings = work.settings.model_dump(mode="json")
    write_toml(folder.config, job=work.job.name, options=options, settings=settings)
    async with await _create_log(folder, work, options, clock) as log:
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
                fork=fork,
                code=code_fingerprint(work.job),
            ),
            *added,
        )
        yield log


def check_new(folder: RunFolder, option: str = "--run-id") -> None:
    """Refuse a folder that holds a run, or held one whose log is missing.

    Args:
        folder: of the new run.
        option: that names it.

    Raises:
        UsageError: it holds a run.
        EventsLost: its log is missing.
    """
    if folder.log.exists() or folder.shards():
        raise UsageError(
            f"There is a run {folder.run_id!r} already; continue with "
            f"siftlog resume {folder.run_id} or choose another {option}."
        )
    check_absent(folder.log)


async def _create_log(
    folder: RunFolder, work: Workload, options: RunOptions, clock: Clock
) -> SqliteLog:
    """Return a log without events, new or left by a process that died here."""
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
    """Return the writer's host and process id, for messages about a busy log."""
    return f"{os.uname().nodename}:{os.getpid()}"


def _config_hash(work: Workload, options: RunOptions) -> bytes:
    """Hash what defines a run; limits and other options may change on a resume."""
    pinned = {
        "job": work.job.name,
        "models": assigned(work.job, options).models,
        "replicates": options.replicates,
    }
    return hashlib.sha256(json.dumps(pinned, sort_keys=True).encode()).digest()


LOCK = "group.lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSpending:
    """Usage of a group's budget by its runs, in pico-dollars."""

    spent_pico: int = 0
    possible_pico: int = 0  #: may be billed; includes calls lost in a crash


def members(runs_dir: Path, group: str) -> list[RunFolder]:
    """Return the runs of a group; unreadable runs are skipped."""
    folders = []
    for folder in list_runs(runs_dir):
        try:
            with open_reader(folder.log) as reader:
                first = run_started(reader)
        except StoreError:
            continue
        if first.group == group:
            folders.append(folder)
    return folders


def elsewhere(
    runs_dir: Path, group: str | None, *, but: RunFolder | None = None
) -> GroupSpending:
    """Return the usage of a group's budget by its runs, *but* one of them."""
    spent = possible = 0
    for folder in members(runs_dir, group) if group is not None else ():
        if but is not None and folder.run_id == but.run_id:
            continue
        with open_reader(folder.log) as reader:
            money = spending(reader)
        spent += money.spent_pico
        possible += money.possible_pico + money.in_flight_pico
    return GroupSpending(spent_pico=spent, possible_pico=possible)


@contextmanager
def lock_group(runs_dir: Path, group: str) -> Iterator[Path]:
    """Lock a group for the block; yield its folder.

    Raises:
        RunnerError: another process works on it.
    """
    folder = runs_dir / group
    folder.mkdir(parents=True, exist_ok=True)
    lock = WriterLock(folder / LOCK)
    try:
        lock.acquire()
    except LogBusy as error:
        raise RunnerError(
            f"Another process works on the runs of {group}, whose limits and budget "
            f"are kept by one; see them with siftlog runs --group {group}."
        ) from error
    try:
        yield folder
    finally:
        lock.release()


_OLD = ".old"
"""Suffix of a folder's name while another folder replaces it."""

_DRAFT = ".draft"
"""Suffix of the name of a folder that is being written."""


@contextmanager
def replaced(target: Path, *, force: bool) -> Iterator[Path]:
    """Yield an empty folder that replaces *target* at the end of the block.

    After an error in the block, *target* is unchanged.

    Args:
        target: path of the folder.
        force: replace an existing one; never merge.

    Raises:
        UsageError: it exists and may not be replaced, or cannot be written.
    """
    if target.name in {"", ".."}:
        raise UsageError(
            f"{target} is not a folder that can be replaced: name another --out."
        )
    if target.is_symlink():
        target = target.resolve()  # the link stays, and its target is replaced
    draft = target.with_name(f".{target.name}.{os.getpid()}{_DRAFT}")
    old = target.with_name(f".{target.name}.{os.getpid()}{_OLD}")
    try:
        _clear_drafts(target)
        if _put_back(target) and not force:
            raise UsageError(
                f"{target} was being replaced when the process was killed, "
                "and is restored: name another --out, or use --force."
            )
        if target.exists() and not force:
            raise UsageError(
                f"{target} exists already: name another --out, or use --force."
            )
        if target.exists() and not target.is_dir():
            raise UsageError(f"{target} is not a folder: name another --out.")
        draft.mkdir(parents=True)
        yield draft
        if target.exists():
            target.replace(old)
        draft.replace(target)
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror}.") from error
    finally:
        _put_back(target)  # stopped between the two moves
        shutil.rmtree(draft, ignore_errors=True)


@contextmanager
def drafting(target: Path) -> Iterator[Path]:
    """Yield an empty temporary folder next to *target*; remove it at the end.

    Leftovers of a killed process are removed.

    Raises:
        OSError: it cannot be created; the error names *target*.
    """
    draft = target.with_name(f".{target.name}.{os.getpid()}{_DRAFT}")
    try:
        _clear_drafts(target)
        draft.mkdir(parents=True)
    except OSError as error:
        # the hidden folder's name means nothing to the user
        raise OSError(error.errno, error.strerror, str(target)) from error
    try:
        yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _put_back(target: Path) -> bool:
    """Restore *target* if it was moved away and never replaced.

    A killed process leaves it hidden next to *target*: it is moved back if *target* is
    missing, and deleted otherwise.
    """
    is_back = False
    for _, old in _of_processes(target, _OLD):
        if target.exists():
            shutil.rmtree(old, ignore_errors=True)
        else:
            old.replace(target)
            is_back = True
    return is_back


def _clear_drafts(target: Path) -> None:
    """Remove temporary folders that killed processes left for *target*."""
    for process, draft in _of_processes(target, _DRAFT):
        # a draft with this process's id is from an earlier process with the same id
        if process == os.getpid() or not _is_running(process):
            shutil.rmtree(draft, ignore_errors=True)


def _of_processes(target: Path, end: str) -> list[tuple[int, Path]]:
    """Return hidden folders next to *target* with that suffix, with their pids."""
    begin = f".{target.name}."
    paths = sorted(target.parent.glob(f"{escape(begin)}*{end}"))
    names = ((path.name[len(begin) : -len(end)], path) for path in paths)
    return [(int(name), path) for name, path in names if name.isdecimal()]


def _is_running(process: int) -> bool:
    """Return whether a process with that id exists, of any user."""
    try:
        os.kill(process, 0)  # signal 0 only checks
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
