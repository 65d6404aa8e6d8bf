"""One writer per log on one machine: `flock` on a file beside it.

The kernel gives the lock back when its holder dies, however it dies, so there is no
stale lock to think about. Across machines and mounts the epoch in the log is the fence.
"""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from store.errors import LogBusy

#: A reader's `is_held` takes a shared lock for an instant, so that one refusal is not
#: yet proof of a writer: the exclusive lock is asked for this often, this far apart.
ATTEMPTS = 10
PAUSE_S = 0.01


class WriterLock:
    """The right to write one log, held from `acquire` to `release`."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def acquire(self) -> None:
        """Take the lock.

        Raises:
            LogBusy: another process has it.
        """
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        for attempt in range(ATTEMPTS):
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if attempt + 1 < ATTEMPTS:
                    time.sleep(PAUSE_S)
            else:
                self._descriptor = descriptor
                return
        os.close(descriptor)
        raise LogBusy(
            f"{self._path.with_suffix('.db')} is being written by another process: "
            "look at it with 'siftlog watch', or wait until it ends"
        )

    def release(self) -> None:
        """Give the lock back; harmless when it is not held."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def is_held(path: Path) -> bool:
    """Whether a live process holds the lock at *path*; writes nothing."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
