"""Files and folders: names that survive a power cut, and whether a file is the same."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Final

_NO_SYNC: Final = {
    errno.EINVAL,
    errno.EBADF,
    errno.ENOTSUP,
    errno.EOPNOTSUPP,
    errno.ENOSYS,
}
"""Errors of file systems that cannot sync a folder (shares of CIFS, some of FUSE): the
name of a file is then as safe there as it gets."""


def make_folder(folder: Path) -> None:
    """Make a folder and its parents, and sync each name; it may exist."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)


def replace_file(path: Path, content: bytes) -> None:
    """Write *content* to *path*, whole or not at all, and sync it with its name.

    Several processes may do so at a time; the last one wins.
    """
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with unfinished.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Sync the names in a folder, where its file system can."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _NO_SYNC:
            raise
    finally:
        os.close(descriptor)


def identity_of(file: Path) -> tuple[int, int] | None:
    """Device and inode of a file; None where there is none."""
    try:
        found = file.stat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino
