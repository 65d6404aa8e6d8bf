"""The job's headline so far, computed anew by a child as the run goes on."""

from __future__ import annotations

import sqlite3

from textual.worker import Worker

from store.clock import Clock
from store.errors import StoreError
from store.printable import printable
from tui.drawing.glyphs import Glyphs
from tui.drawing.run.headline import Standing, headline
from tui.sources.child import ChildFailed
from tui.sources.headline import HeadlineSource, Reckoning
from tui.widgets.panel import TitledPanel


class HeadlinePanel(TitledPanel[Standing]):
    """Shows what is known, how old it is, and that it is being computed."""

    def __init__(
        self, source: HeadlineSource, clock: Clock, glyphs: Glyphs, name: str
    ) -> None:
        super().__init__(headline, "metrics so far", glyphs, name)
        self._source = source
        self._clock = clock
        self._reckoning = Reckoning()

    def on_unmount(self) -> None:
        """End the child."""
        self._source.close()

    def look(self, seq: int) -> None:
        """Have it computed where that is due.

        Args:
            seq: the log's last event.
        """
        if self._reckoning.is_due(self._clock.monotonic(), seq):
            self.compute()

    def compute(self) -> None:
        """Have it computed, if that is not being done."""
        if not self._reckoning.is_busy:
            self._reckoning = self._reckoning.asked(self._clock.monotonic())
            _: Worker[None] = self.run_worker(self._compute, exit_on_error=False)
        self.tell()

    async def _compute(self) -> None:
        try:
            found = await self._source.read()
        except (ChildFailed, StoreError, sqlite3.Error) as error:
            failure = printable(str(error))
            self._reckoning = self._reckoning.failed(self._clock.monotonic(), failure)
        else:
            self._reckoning = self._reckoning.answered(self._clock.monotonic(), found)
        self.tell()

    def tell(self) -> None:
        """Show what is known, with its present age."""
        now = self._clock.monotonic()
        self.show(Standing(reckoning=self._reckoning, now_s=now))
