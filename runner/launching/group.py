"""Runs that were started together: who they are, what they spent, who works on them.

A group is a name in the first event of each of its runs. Its folder, beside theirs,
holds what is made of all of them, and a lock: limits and a budget are kept by one
process, so one at a time works on a group.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from runner.errors import RunnerError
from store.database import open_reader
from store.errors import LogBusy, StoreError
from store.read.status import run_started
from store.read.usage import spending
from store.runs import RunFolder, WriterLock, list_runs

LOCK = "group.lock"


@dataclass(frozen=True, slots=True, kw_only=True)
class Spent:
    """What runs of a group have taken of its budget, in pico-dollars."""

    spent_pico: int = 0
    possible_pico: int = 0  #: may be billed; calls that a crash gave up are among them


def members(runs_dir: Path, group: str) -> list[RunFolder]:
    """The runs of a group; those that cannot be read are passed over."""
    found = []
    for folder in list_runs(runs_dir):
        try:
            with open_reader(folder.log) as reader:
                first = run_started(reader)
        except StoreError:
            continue
        if first.group == group:
            found.append(folder)
    return found


def elsewhere(
    runs_dir: Path, group: str | None, *, but: RunFolder | None = None
) -> Spent:
    """What the runs of a group have taken of its budget, *but* one of them."""
    spent = possible = 0
    for folder in members(runs_dir, group) if group is not None else ():
        if but is not None and folder.run_id == but.run_id:
            continue
        with open_reader(folder.log) as reader:
            money = spending(reader)
        spent += money.spent_pico
        possible += money.possible_pico + money.in_flight_pico
    return Spent(spent_pico=spent, possible_pico=possible)


@contextmanager
def held(runs_dir: Path, group: str) -> Iterator[Path]:
    """Work on a group alone while the body runs; its folder.

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
