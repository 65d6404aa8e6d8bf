"""Keeps the union of a run's logs fresh while its shards write them."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Final

from runner.launching.shell import Shell
from store.database import open_reader
from store.errors import StoreError
from store.read.status import Status, status
from store.runs import RunFolder

REFRESH_S: Final = 1.0
"""Between two looks at the shards' logs: monitors see a run about as late."""

FIRST_S: Final = 0.1
"""While there is nothing to be seen yet, or somebody else is merging."""

PATIENCE_S: Final = 3.0
"""With a look that fails."""


class Freshness:
    """The union of one run, as it was last looked at."""

    def __init__(self, folder: RunFolder, shell: Shell) -> None:
        """Nothing was looked at; `shell.launched` is told when there is something."""
        self._folder = folder
        self._shell = shell
        self._merging = threading.Lock()
        self.status: Status | None = None  #: None: no shard has written yet

    async def keep(self) -> None:
        """Look for ever; where that fails, the run goes on.

        A sentence says so if it goes on failing: a log that is just being made is none.
        """
        clock = self._shell.clock
        began: float | None = None  #: to fail
        is_told = False
        while True:
            pause = FIRST_S if self.status is None else REFRESH_S
            await clock.sleep_until(clock.monotonic() + pause)
            try:
                await self.look()
            except StoreError as error:
                now = clock.monotonic()
                began = now if began is None else began
                if now - began > PATIENCE_S and not is_told:
                    is_told = True
                    self._shell.tell(str(error))
            else:
                began, is_told = None, False

    async def look(self, *, to_the_end: bool = False) -> None:
        """Take in what the shards have written, and see how the run stands.

        Args:
            to_the_end: wait for whoever else is merging, who may have missed the last.

        Raises:
            StoreError: a log, or a place where logs are, cannot be read.
        """
        was_there = self.status is not None
        self.status = await asyncio.to_thread(self._merged, to_the_end=to_the_end)
        if self.status is not None and not was_there:
            self._shell.launched()

    def _merged(self, *, to_the_end: bool) -> Status | None:
        folder = self._folder
        # a look that was given up goes on in its thread
        with self._merging:
            while folder.refresh() is None and to_the_end and folder.shards():
                time.sleep(FIRST_S)
        if not folder.log.exists():
            return None
        with open_reader(folder.log) as reader:
            return status(reader)
