"""The command rm: deletes runs with their files."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from runner.cli import arguments
from runner.cli.console import DONE, print_json, print_note, print_text
from runner.errors import UsageError
from store.clock import SystemClock

if TYPE_CHECKING:
    from store.read.live import LiveStatus
    from store.removal import FolderSize
    from store.runs import RunFolder

CLOCK = SystemClock()

WORKING = frozenset({"live", "quiet", "stalled", "paused", "draining"})
"""States in which a process works on a run, on this machine or another."""


@dataclass(frozen=True, slots=True)
class Doomed:
    """A run that is to be deleted."""

    folder: RunFolder
    size: FolderSize
    seen: LiveStatus | None  #: None: its log cannot be read
    labels: str  #: labels of people in its folder, in words; "": there are none


@click.command()
@click.argument("run_names", nargs=-1, required=True, metavar="RUN...")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@arguments.runs_dir
@arguments.as_json
def rm(run_names: Sequence[str], yes: bool, runs_dir: Path, as_json: bool) -> int:
    """Delete RUNs with all their files: log, answers, scorings, exports.

    Lists what would be deleted and asks. With --yes, each RUN is a whole id or a
    folder, not a prefix. A run with a live process is refused. Copies in other folders
    and the response cache are kept; cached answers need not be paid for again.
    """
    from store.removal import remove_run

    doomed = list(_chosen(runs_dir, run_names, is_exact=yes))
    if not yes:
        _ask(doomed)
    for run in doomed:
        removed = remove_run(run.folder)
        if as_json:
            print_json(
                "siftlog.removal/1",
                {
                    "run": run.folder.run_id,
                    "removed": str(run.folder.path),
                    "files": removed.files,
                    "bytes": removed.bytes,
                },
            )
        else:
            size = _size(removed.bytes)
            labels = f", {run.labels}" if run.labels else ""
            print_text(
                f"Removed {run.folder.path}: {removed.files:,} files, {size}{labels}."
            )
    return DONE


def _chosen(
    runs_dir: Path, run_names: Sequence[str], *, is_exact: bool
) -> Iterator[Doomed]:
    """Yield the runs to delete, each once, after a check of all.

    Raises:
        UsageError: one of them is live, or is named by a prefix without being shown.
        StoreError: one of them is no run, or its folder holds something else too.
    """
    from runner.run.fork import forks_of
    from store.removal import check_removable, folder_size
    from store.runs import LAST, find_run

    folders = {}
    for name in run_names:
        folder = find_run(runs_dir, name)
        is_whole = name in {folder.run_id, LAST} or Path(name).is_dir()
        if is_exact and not is_whole:
            raise UsageError(
                f"{name!r} is a prefix of {folder.run_id}: with --yes, write the "
                "whole id."
            )
        folders[folder.path.resolve()] = folder
    every = []
    doomed = {folder.run_id for folder in folders.values()}
    for folder in folders.values():
        check_removable(folder)
        seen = _status(folder)
        if folder.is_alive() or (seen is not None and seen.state in WORKING):
            raise UsageError(
                f"Run {folder.run_id} is live: end it first with siftlog drain "
                f"{folder.run_id} or siftlog cancel {folder.run_id}."
            )
        forks = [run for run in forks_of(folder) if run not in doomed]
        if forks:
            raise UsageError(
                f"Run {folder.run_id} has a fork, {forks[0]}, that looks for answers "
                f"in it: delete {forks[0]} first, or both at once; a bundle of the "
                "fork needs no other run."
            )
        every.append(Doomed(folder, folder_size(folder.path), seen, _labels(folder)))
    yield from every


def _status(folder: RunFolder) -> LiveStatus | None:
    """Return the status of a run; None if its log is damaged or was never started."""
    from store.database import open_reader
    from store.errors import StoreError
    from store.read.live import live_status

    try:
        with open_reader(folder.log) as reader:
            return live_status(reader, CLOCK.now_us(), is_held=folder.is_alive())
    except StoreError:
        return None


def _labels(folder: RunFolder) -> str:
    """Describe the labels in a run's folder."""
    from store.errors import StoreError
    from store.labels.folder import read_labels

    try:
        labels = read_labels(folder.labels)
    except StoreError:
        return "labels that cannot be read"
    if not labels.labels and not labels.adjudications:
        return ""
    count, people = len(labels.current), len(labels.authors)
    return (
        f"{count:,} label{'s' if count != 1 else ''} by {people:,} "
        f"{'people' if people != 1 else 'person'}"
    )


def _ask(doomed: Sequence[Doomed]) -> None:
    """List the runs and ask.

    Raises:
        UsageError: there is no terminal to ask on.
        click.Abort: the answer was no.
    """
    from store.document import Numbers, TableBlock, Words, as_text
    from store.read.usage import dollars

    if not sys.stdin.isatty():
        raise UsageError("rm asks before it deletes; without a terminal, add --yes.")
    rows = [
        (
            run.folder.run_id,
            None if run.seen is None else run.seen.status.job,
            None if run.seen is None else run.seen.progress.done,
            None if run.seen is None else dollars(run.seen.status.cost_usd),
            _size(run.size.bytes),
            "unreadable" if run.seen is None else run.seen.state,
        )
        for run in doomed
    ]
    columns = (
        Words("run"),
        Words("job"),
        Numbers("done"),
        Numbers("cost"),
        Numbers("size"),
        Words("state"),
    )
    print_note(as_text([TableBlock(columns, rows, indent=0)]))
    what = "this run" if len(doomed) == 1 else f"these {len(doomed)} runs"
    contents = ["all answers in it", *(run.labels for run in doomed if run.labels)]
    click.confirm(f"Delete {what} and {' and '.join(contents)}?", abort=True, err=True)


def _size(count: int) -> str:
    """Format a number of bytes."""
    for unit, bytes_of in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= bytes_of:
            return f"{count / bytes_of:,.1f} {unit}"
    return f"{count} bytes"
