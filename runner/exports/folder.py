"""Fills a new folder with a run in the form of another program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from runner.errors import RunnerError, UsageError
from runner.exports import FORMS
from runner.exports.source import ExportSource
from runner.run.folder import drafting


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedPart:
    """A file of an exported folder."""

    path: Path
    size: int  #: bytes


def export_folder(form: str, source: ExportSource) -> list[ExportedPart]:
    """Write a run in a form of another program to a new folder.

    The folder appears at the end, complete, or not at all.

    Args:
        form: a name in `FORMS`.
        source: the run, and where the folder will be.

    Returns:
        The files that the other program opens, without their parts.

    Raises:
        UsageError: the folder exists, or a package that the form needs is missing.
        RunnerError: it cannot be written.
    """
    write: Callable[[ExportSource, Path], Iterator[Path]]
    write = import_module(FORMS[form]).write
    out = source.out
    with _new_folder(out) as draft:
        return [
            ExportedPart(path=out / path.relative_to(draft), size=path.stat().st_size)
            for path in list(write(source, draft))
        ]


def refuse_existing(out: Path) -> None:
    """Refuse a folder that is there already.

    Raises:
        UsageError: it exists.
    """
    if out.exists() or out.is_symlink():
        raise UsageError(
            f"{out} exists already, and an export replaces nothing: name a new folder, "
            "or remove it."
        )


@contextmanager
def _new_folder(out: Path) -> Iterator[Path]:
    """Yield a folder that becomes *out* unless an error is raised."""
    refuse_existing(out)
    try:
        with drafting(out) as drafts:
            draft = drafts / "draft"
            draft.mkdir()
            yield draft
            refuse_existing(out)
            draft.rename(out)
    except OSError as error:
        raise RunnerError(
            f"{out} cannot be written ({error.strerror}): check the free space, or "
            "name another folder."
        ) from error
