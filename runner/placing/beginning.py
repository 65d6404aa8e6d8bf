"""What must hold before a process may place the shards of a run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from runner.errors import RunnerError, UsageError
from store.clock import Clock
from store.database import open_reader
from store.errors import LogBusy
from store.read.live import union_progress
from store.runs import RunFolder, WriterLock

LOOK_S: Final = 0.25


def check_split(folder: RunFolder) -> None:
    """Raise `UsageError` where a run has one log, which its shards would not know."""
    folder.refresh()
    if not folder.log.exists():
        return
    with open_reader(folder.log) as reader:
        if union_progress(reader) is None:
            raise UsageError(
                f"Run {folder.run_id} is not split, and cannot be any more; go on with "
                f"siftlog resume {folder.run_id} without --engine."
            )


@contextmanager
def alone(folder: RunFolder) -> Iterator[None]:
    """Drive a run alone while the body runs: limits and money are kept by one."""
    lock = WriterLock(folder.driver_lock)
    try:
        lock.acquire()
    except LogBusy as error:
        raise RunnerError(
            f"Another process places the shards of run {folder.run_id}; watch it with "
            f"siftlog status {folder.run_id}."
        ) from error
    try:
        yield
    finally:
        lock.release()


async def outlive(
    folder: RunFolder, clock: Clock, tell: Callable[[str], None], longest_s: float
) -> None:
    """Wait for the shards of a driver that died; they end by themselves.

    Raises:
        RunnerError: they are at work for another reason.
    """
    until = clock.monotonic() + longest_s
    if folder.is_written():
        tell("Shards of an earlier process still finish their calls.")
    while folder.is_written() and clock.monotonic() < until:
        await clock.sleep_until(clock.monotonic() + LOOK_S)
    if folder.is_written():
        raise RunnerError(
            f"Shards of run {folder.run_id} are at work that somebody else has "
            f"started: wait until they end, or end them with siftlog drain "
            f"{folder.run_id}."
        )
