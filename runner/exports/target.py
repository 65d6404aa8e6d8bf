"""Fills a new folder, or a new file, with a run in the form of another program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final

from runner.errors import RunnerError, UsageError
from runner.exports import FORMS
from runner.exports.source import ExportSource
from runner.run.folder import drafting

FILE_ENDINGS: Final = frozenset(
    {
        *(".csv", ".db", ".eval", ".gz", ".html", ".json", ".jsonl", ".md"),
        *(".parquet", ".sqlite", ".tar", ".tgz", ".txt", ".xlsx", ".yaml", ".yml"),
        ".zip",
    }
)
"""Endings with which nobody expects a folder."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedPart:
    """A file of an export."""

    path: Path
    size: int  #: bytes


def write_target(form: str, source: ExportSource) -> list[ExportedPart]:
    """Write a run in a form of another program to a new folder or file.

    It appears at the end, complete, or not at all.

    Args:
        form: a name in `FORMS`.
        source: the run, and where the folder or file will be.

    Returns:
        The files that the other program opens, without their parts.

    Raises:
        UsageError: the target exists, a package that the form needs is missing, or one
            file cannot hold the run.
        RunnerError: it cannot be written.
    """
    module = import_module(FORMS[form].module)
    out = source.out
    with _drafted(out) as draft:
        if out.suffix in FORMS[form].endings:
            write_file: Callable[[ExportSource, Path], None] = module.write_file
            write_file(source, draft)
            paths = [draft]
        else:
            draft.mkdir()
            write: Callable[[ExportSource, Path], Iterator[Path]] = module.write
            paths = list(write(source, draft))
        return [
            ExportedPart(path=out / path.relative_to(draft), size=path.stat().st_size)
            for path in paths
        ]


def check_target(form: str, out: Path) -> None:
    """Refuse a target that exists, or whose ending is not one of the form's files.

    Raises:
        UsageError: it is such a target.
    """
    _refuse_existing(out)
    endings = FORMS[form].endings
    if out.suffix in FILE_ENDINGS and out.suffix not in endings:
        file = f", or a file that ends in {' or '.join(endings)}" if endings else ""
        raise UsageError(
            f"{out} ends like a file, and --to {form} writes a folder{file}: name a "
            f"folder, such as {out.with_suffix('')}."
        )


def _refuse_existing(out: Path) -> None:
    if out.exists() or out.is_symlink():
        raise UsageError(
            f"{out} exists already, and an export replaces nothing: give another name, "
            "or remove it."
        )


@contextmanager
def _drafted(out: Path) -> Iterator[Path]:
    """Yield a path at which *out* is written, before it is moved there."""
    try:
        with drafting(out) as drafts:
            draft = drafts / out.name
            yield draft
            _refuse_existing(out)
            draft.rename(out)
    except OSError as error:
        raise RunnerError(
            f"{out} cannot be written ({error.strerror}): check the free space, or "
            "write it elsewhere."
        ) from error
