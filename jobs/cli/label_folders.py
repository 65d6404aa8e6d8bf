"""Finds the labels that a command names, and opens them for writing.

A name is a run, with labels in its folder or in that of `--labels`, or a folder of
label logs.
"""

from __future__ import annotations

import getpass
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from runner.cli import arguments

if TYPE_CHECKING:
    from jobs.kit.labels.source import LabelSource
    from store.labels.writer import LabelWriter
    from store.runs import RunFolder

level_option = click.option(
    "--level",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Level of the intervals.",
)
labels_option = arguments.option(
    "--labels",
    "labels_dir",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="FOLDER",
    help="Folder of label logs, which several runs may share.  [default: RUN/labels]",
)
author_option = arguments.option(
    "--author",
    metavar="NAME",
    help="Name of the person who labels.  [default: your user name]",
)
field_option = click.option(
    "--field", "field_name", metavar="NAME", help="Field to use, if there are several."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelTarget:
    """The labels that a command names."""

    folder: Path  #: of label logs
    run: RunFolder | None  #: None: the name is a folder of label logs

    @contextmanager
    def source(self) -> Iterator[LabelSource | None]:
        """Load the run's data; None without a run."""
        from jobs.kit.labels.source import label_source

        with nullcontext() if self.run is None else label_source(self.run) as source:
            yield source


def target_of(runs_dir: Path, name: str, labels_dir: Path | None) -> LabelTarget:
    """Return the labels of a run, or of a folder of label logs.

    Raises:
        StoreError: neither exists.
    """
    from store.errors import NoSuchRun, NotALog
    from store.labels.folder import label_logs
    from store.runs import resolve

    try:
        run = resolve(runs_dir, name)
    except (NoSuchRun, NotALog):
        if not label_logs(Path(name)):
            raise
        return LabelTarget(folder=Path(name), run=None)
    return LabelTarget(folder=labels_dir or run.labels, run=run)


def author_name(author: str | None) -> str:
    """Return the name of the person who labels.

    Raises:
        StoreError: the name is invalid.
        UsageError: the system has no user name.
    """
    from runner.errors import UsageError
    from store.labels.writer import check_author

    try:
        return check_author(author or getpass.getuser())
    except (OSError, KeyError, ImportError) as error:
        raise UsageError(
            "This system has no user name: name yourself with --author NAME or "
            "SIFTLOG_AUTHOR."
        ) from error


@asynccontextmanager
async def writing(folder: Path, author: str) -> AsyncIterator[LabelWriter]:
    """Open the author's label log in a folder."""
    from importlib.metadata import version

    from store.clock import SystemClock
    from store.labels.writer import LabelWriter

    async with await LabelWriter.open(
        folder,
        author=author,
        clock=SystemClock(),
        owner=f"{os.uname().nodename}:{os.getpid()}",
        siftlog_version=version("siftlog"),
    ) as writer:
        yield writer
