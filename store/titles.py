"""Keeps the titles of a run's items, for lists of tasks.

Titles come from the job's data and are shown beside the keys of items. They are not
part of the log: a small database beside it holds them, written once when the run is
created. Without it everything works, and keys stand alone.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from itertools import chain, islice
from pathlib import Path
from typing import Final

from store.errors import Unwritable
from store.statements import queries

LONGEST: Final = 300
"""Maximum characters of a title that are kept."""
SEPARATORS: Final = "/:#"
"""Characters that end the item in a task's key, as in `PMC123/mcq_drug:30033`."""

_SQL: Final = queries("titles")


def write_titles(path: Path, titles: Iterable[tuple[str, str]]) -> None:
    """Write items and their titles to a new database at *path*, in flat memory.

    Without a title, or if *path* exists, nothing is written.

    Raises:
        Unwritable: the disk is full, or fails.
    """
    rows = ((item, title[:LONGEST]) for item, title in titles if title)
    first = list(islice(rows, 1))
    if not first or path.exists():
        return
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)
    try:
        with closing(sqlite3.connect(draft)) as db, db:
            db.execute(_SQL["create"])
            db.executemany(_SQL["insert"], chain(first, rows))
        draft.replace(path)
    except sqlite3.OperationalError as error:
        raise Unwritable(
            f"{path} could not be written ({error}): free space or repair the disk"
        ) from error
    finally:
        draft.unlink(missing_ok=True)


def read_titles(path: Path, keys: Iterable[str]) -> dict[str, str]:
    """Return the titles of tasks' keys; omit those that are not known.

    The title of a key is that of the longest item that the key starts with.
    """
    wanted = {key: list(_items(key)) for key in keys}
    if not wanted or not path.is_file():
        return {}
    items = json.dumps(sorted(set(chain.from_iterable(wanted.values()))))
    try:
        with closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
        ) as db:
            titles = dict(db.execute(_SQL["of_items"], (items,)).fetchall())
    except sqlite3.Error:
        return {}  # titles are an addition: a damaged file hides nothing else
    title_by_key = {
        key: next((titles[item] for item in items if item in titles), "")
        for key, items in wanted.items()
    }
    return {key: title for key, title in title_by_key.items() if title}


def _items(key: str) -> Iterator[str]:
    """Yield a key and its parts before a separator, the longest first."""
    yield key
    for at in range(len(key) - 1, 0, -1):
        if key[at] in SEPARATORS:
            yield key[:at]
