"""What the command palette offers beyond what textual brings: places to go.

Names that a log gives are offered only where they are plain words: the palette is not
asked to show any other text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from textual.app import SystemCommand

from store.printable import printable
from store.runs import RunFolder
from tui.sources.filters import Filters
from tui.sources.run import Snapshot

_PLAIN = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,59}")
"""As every class of `runner.errors` is called."""
_FILTERS = {
    "Tasks that failed": "state:failed",
    "Tasks that wait for a retry": "state:waiting",
    "Tasks under way": "state:running",
    "Tasks that could not be parsed": "parse:*",
}


def runs(
    folders: Sequence[RunFolder], show: Callable[[RunFolder], None]
) -> Iterator[SystemCommand]:
    """A command for each run."""
    for folder in folders:
        if RunFolder.is_valid_id(folder.run_id):
            yield SystemCommand(
                f"Run {folder.run_id}", "Show this run", partial(show, folder)
            )


def tasks(
    snapshot: Snapshot | None, show: Callable[[str], None]
) -> Iterator[SystemCommand]:
    """A command for each filter that somebody who sees a run may want."""
    yield SystemCommand("Tasks", "List the run's tasks", partial(show, ""))
    filters = dict(_FILTERS)
    for error in snapshot.facts.errors if snapshot else ():
        if _PLAIN.fullmatch(error.error):
            filters[f"Tasks with the error {error.error}"] = f"err:{error.error}"
    for title, expression in filters.items():
        yield SystemCommand(title, expression, partial(show, expression))


def filters(
    remembered: Filters, show: Callable[[str], None]
) -> Iterator[SystemCommand]:
    """A command for each filter that was used before, those with a star first."""
    for expression in remembered.offered:
        # the palette reads brackets as markup
        if printable(expression) == expression and "[" not in expression:
            star = "* " if expression in remembered.starred else ""
            yield SystemCommand(
                f"Tasks: {star}{expression}",
                "A filter used before",
                partial(show, expression),
            )
