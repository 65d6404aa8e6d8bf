"""How the run was set up: job, models, inputs, settings, hashes."""

from __future__ import annotations

import sqlite3

from store.errors import StoreError
from tui.drawing.run.configured import configured
from tui.screens.page import PageScreen
from tui.watched import Watched


class ConfigScreen(PageScreen):
    """Read once: what a run was started with does not change while it is watched."""

    def __init__(self, watched: Watched) -> None:
        self._source = watched.sources.config(watched.folder)
        super().__init__(
            "config",
            f"CONFIG {self._source.run_id} · secrets are masked",
            "Reading the log.",
            watched.glyphs,
        )

    def on_mount(self) -> None:
        """Read it, off the loop that draws."""
        self.run_worker(self._read(), exit_on_error=False)

    async def _read(self) -> None:
        try:
            setup = await self._source.read()
        except (StoreError, sqlite3.Error) as error:
            self.show(f"{error}.\n\nBack with esc.")
        else:
            self.show(configured(setup.began, setup.planned, setup.config))

    def on_unmount(self) -> None:
        """Let go of the log."""
        self._source.close()
