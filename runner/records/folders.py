"""Folders that appear whole or not at all, and those that files are drafted in."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path

from runner.errors import UsageError

_OLD = ".old"
"""End of the name that a folder has while another takes its place."""

_DRAFT = ".draft"
"""End of the name of a folder that is being written."""


@contextmanager
def replaced(target: Path, *, force: bool) -> Iterator[Path]:
    """An empty folder beside *target* that takes its place once the body is through.

    Whatever goes wrong inside, *target* is as it was before.

    Args:
        target: where the folder will be.
        force: replace one that is there; it is not merged into.

    Raises:
        UsageError: something is there and may not be replaced, or the place cannot be
            written.
    """
    if target.name in {"", ".."}:
        raise UsageError(f"{target} is no folder of its own: name another --out.")
    if target.is_symlink():
        target = target.resolve()  # the link stays, and what it names is replaced
    draft = target.with_name(f".{target.name}.{os.getpid()}{_DRAFT}")
    old = target.with_name(f".{target.name}.{os.getpid()}{_OLD}")
    try:
        _clear_drafts(target)
        if _put_back(target) and not force:
            raise UsageError(
                f"{target} was being replaced when the process was killed, and is back "
                "as it was: name another --out, or use --force."
            )
        if target.exists() and not force:
            raise UsageError(
                f"{target} exists already: name another --out, or use --force."
            )
        if target.exists() and not target.is_dir():
            raise UsageError(f"{target} is no folder: name another --out.")
        draft.mkdir(parents=True)
        yield draft
        if target.exists():
            target.replace(old)
        draft.replace(target)
    except OSError as error:
        raise UsageError(f"{target} cannot be written: {error.strerror}.") from error
    finally:
        _put_back(target)  # stopped between the two moves, by whatever
        shutil.rmtree(draft, ignore_errors=True)


@contextmanager
def drafting(target: Path) -> Iterator[Path]:
    """An empty folder beside *target* for what is to become it, gone at the end.

    What a process that was killed has left of one is removed.
    """
    draft = target.with_name(f".{target.name}.{os.getpid()}{_DRAFT}")
    _clear_drafts(target)
    draft.mkdir(parents=True)
    try:
        yield draft
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def _put_back(target: Path) -> bool:
    """Put back what was moved away for *target* and never replaced.

    A process that was killed leaves it hidden beside the target: in its place if the
    second move was not made, and of no use if it was.
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
    """Remove what processes that were killed had begun to write for *target*."""
    for process, draft in _of_processes(target, _DRAFT):
        # one of this process's number is of an earlier process that had the number
        if process == os.getpid() or not _is_running(process):
            shutil.rmtree(draft, ignore_errors=True)


def _of_processes(target: Path, end: str) -> list[tuple[int, Path]]:
    """The hidden folders beside *target* with that end, each with its process."""
    begin = f".{target.name}."
    found = sorted(target.parent.glob(f"{escape(begin)}*{end}"))
    names = ((path.name[len(begin) : -len(end)], path) for path in found)
    return [(int(name), path) for name, path in names if name.isdecimal()]


def _is_running(process: int) -> bool:
    """Whether there is a process of that number, whoever's it is."""
    try:
        os.kill(process, 0)  # signal 0 is none
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
