"""Deletes a run's folder, so that a kill at any moment leaves a run or none.

The folder is moved aside under a hidden name before anything in it is deleted, which is
one step of the file system. What a killed process leaves behind is hidden from every
list of runs, and the next removal deletes it.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from store.database import WriterLock
from store.errors import StoreError
from store.runs import RunFolder

REMOVED = ".removed"
"""Suffix of the hidden name of a folder that is being deleted."""

_RUN_FILES = re.compile(
    r"\..*|log(\..*)?|run(\..*)?\.log|run\.toml|control\.jsonl|placing\.lock|"
    r"places\.json|titles\.db|scores|parsed|exports|labels|certificates"
)
"""Names in a run's folder that siftlog writes or keeps; hidden ones are drafts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderSize:
    """Number and size of a folder's files."""

    files: int
    bytes: int


def folder_size(path: Path) -> FolderSize:
    """Count the files of a folder; those that vanish meanwhile are left out."""
    sizes = list(_sizes(path))
    return FolderSize(files=len(sizes), bytes=sum(sizes))


def _sizes(path: Path) -> Iterator[int]:
    for file in path.rglob("*"):
        try:
            if not file.is_dir():
                yield file.lstat().st_size
        except FileNotFoundError:
            continue


def check_removable(folder: RunFolder) -> None:
    """Refuse a folder that holds more than a run's files.

    Raises:
        StoreError: it is a link, or holds something that siftlog did not write.
    """
    if folder.path.is_symlink():
        raise StoreError(
            f"{folder.path} is a link to {folder.path.resolve()}: name the folder "
            "itself"
        )
    names = (path.name for path in folder.path.iterdir())
    foreign = sorted(name for name in names if not _RUN_FILES.fullmatch(name))
    if foreign:
        raise StoreError(
            f"{folder.path} also holds {foreign[0]}"
            f"{f' and {len(foreign) - 1} more' if foreign[1:] else ''}, which siftlog "
            "did not write: move it elsewhere first"
        )


def remove_run(folder: RunFolder) -> FolderSize:
    """Delete a run with all files in its folder; return what was deleted.

    Copies of its log in other places stay, and so does the response cache.

    Args:
        folder: of the whole run, not of a shard.

    Raises:
        LogBusy: a process works on it.
        StoreError: the folder holds something else too.
    """
    check_removable(folder)
    sweep(folder.path.parent)
    hidden = folder.path.with_name(f".{folder.run_id}{REMOVED}")
    size = folder_size(folder.path)
    with _locked(folder):
        folder.path.rename(hidden)
    shutil.rmtree(hidden)
    return size


def sweep(runs_dir: Path) -> None:
    """Delete what killed removals left behind."""
    for hidden in runs_dir.glob(f".*{REMOVED}"):
        shutil.rmtree(hidden, ignore_errors=True)


@contextmanager
def _locked(folder: RunFolder) -> Iterator[None]:
    """Hold every lock of a run, so that no process starts to work on it.

    Raises:
        LogBusy: a process works on it.
    """
    with ExitStack() as stack:
        parts = (folder, *folder.shards())
        locks = (folder.driver_lock, *(part.lock for part in parts))
        for path in (*locks, *folder.labels.glob("*.lock")):
            lock = WriterLock(path)
            lock.acquire()
            stack.callback(lock.release)
        yield
