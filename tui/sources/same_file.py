"""Whether a log is still the file that was first seen under its name.

A file that was deleted can be read on by whoever has it open, and one that stands in
its place is another run: neither may look as if nothing had happened.
"""

from __future__ import annotations

import os

from store.errors import StoreError
from store.runs import RunFolder


class SameFile:
    """A run's log, by what tells a file from another in its place."""

    def __init__(self, folder: RunFolder) -> None:
        self._folder = folder
        self._seen: tuple[int, int] | None = None

    def check(self) -> None:
        """See that it is there, and the same as before.

        Raises:
            StoreError: it is not.
        """
        run_id = self._folder.run_id
        try:
            found = os.stat(self._folder.log)  # noqa: PTH116 - its numbers, not the path
        except PermissionError as error:
            raise StoreError(
                f"the folder of {run_id} may not be entered: ask its owner for the "
                "right to read it"
            ) from error
        except OSError as error:
            raise StoreError(
                f"the log of {run_id} is gone, deleted or moved: list what is there "
                "with 'siftlog runs'"
            ) from error
        identity = found.st_dev, found.st_ino
        if self._seen not in {None, identity}:
            raise StoreError(
                f"the log of {run_id} is another file by now: leave, and watch the run "
                "again to see that one"
            )
        self._seen = identity
