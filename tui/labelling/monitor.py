"""Opens the labelling screen over the monitor."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from jobs.cli.label_folders import author_name
from jobs.kit.labels.desk import LabelSelection, open_desk
from jobs.kit.labels.session import LabelSession
from store.clock import Clock
from store.runs import RunFolder
from tui.labelling.focus import FocusClock
from tui.labelling.screen import LabelScreen
from tui.render.glyphs import Glyphs


def label_screen(
    folder: RunFolder, items: tuple[str, ...], clock: Clock, glyphs: Glyphs
) -> LabelScreen:
    """Create the screen for a run; it loads the run's data when it is shown.

    The author and the folder of labels are those of `siftlog label`: SIFTLOG_AUTHOR or
    the user, and SIFTLOG_LABELS or that of the run.

    Args:
        folder: of the run.
        items: keys of items; empty: those of the latest draw, or all.
        clock: of the monitor.
        glyphs: the characters that the terminal supports.
    """
    focus = FocusClock(clock)
    shared = os.environ.get("SIFTLOG_LABELS")
    labels = Path(shared) if shared else folder.labels
    # a list of tasks shows their values: a label from there is no blind one
    selection = LabelSelection(
        items=items, continues_draw=True, is_assisted=bool(items)
    )

    @asynccontextmanager
    async def opened() -> AsyncIterator[LabelSession]:
        author = author_name(os.environ.get("SIFTLOG_AUTHOR"))
        async with (
            open_desk(folder, labels, selection) as desk,
            desk.session(author, focus) as session,
        ):
            yield session

    return LabelScreen(opened, glyphs, focus)
