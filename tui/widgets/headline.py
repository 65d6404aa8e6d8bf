"""A panel with the job's headline metrics of a run, computed now and then."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from textual.content import Content
from textual.worker import Worker

from store.clock import Clock
from store.errors import StoreError
from store.printable import printable
from tui.render.glyphs import Glyphs
from tui.render.headline import HeadlineState
from tui.render.layout import Room
from tui.sources.command import CommandFailed
from tui.sources.headline import HeadlineProgress, HeadlineSource
from tui.sources.result import Headline
from tui.widgets.panel import TitledPanel


class HeadlinePanel(TitledPanel[HeadlineState]):
    """Shows the headline metrics, their age, and a running computation."""

    def __init__(
        self,
        source: HeadlineSource,
        clock: Clock,
        glyphs: Glyphs,
        name: str,
        draw: Callable[[HeadlineState, Room], Content],
    ) -> None:
        """Create the panel.

        Args:
            source: computes the metrics; closed with the panel.
            clock: schedules the computations.
            glyphs: the characters that the terminal supports.
            name: id of the panel.
            draw: draws the metrics.
        """
        super().__init__(draw, "metrics so far", glyphs, name)
        self._source = source
        self._clock = clock
        self._reckoning = HeadlineProgress()

    def on_unmount(self) -> None:
        """Stop the child process."""
        self._source.close()

    def poll(self, ended: int, recorded: Headline | None = None) -> None:
        """Compute the metrics if due, unless a scoring of these tasks has them.

        Args:
            ended: tasks that have ended.
            recorded: metrics of the newest scoring.
        """
        if recorded is not None and recorded.ended == ended and self.headline is None:
            now = self._clock.monotonic()
            self._reckoning = self._reckoning.started(now).answered(now, recorded)
            self.redraw()
        if self._reckoning.is_due(self._clock.monotonic(), ended):
            self.compute()

    def compute(self) -> None:
        """Compute the metrics, unless that is running."""
        if not self._reckoning.is_busy:
            self._reckoning = self._reckoning.started(self._clock.monotonic())
            _: Worker[None] = self.run_worker(self._compute, exit_on_error=False)
        self.redraw()

    async def _compute(self) -> None:
        try:
            latest_headline = await self._source.read()
        except (CommandFailed, StoreError, sqlite3.Error) as error:
            failure = printable(str(error))
            self._reckoning = self._reckoning.failed(self._clock.monotonic(), failure)
        else:
            self._reckoning = self._reckoning.answered(
                self._clock.monotonic(), latest_headline
            )
        self.redraw()

    @property
    def headline(self) -> Headline | None:
        """The latest metrics; None: not known yet."""
        return self._reckoning.headline

    def redraw(self) -> None:
        """Show the metrics with their current age."""
        now = self._clock.monotonic()
        self.show(HeadlineState(reckoning=self._reckoning, now_s=now))
