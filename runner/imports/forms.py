"""Lists the forms of other tools' files, and recognises a file by its content.

A form is a row of `FORMS`: its name for `--format`, what is recognised, and its reader.
The keys of the first object of a file decide; names of files do not.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from zipfile import is_zipfile

from runner.errors import DatasetError, UsageError
from runner.imports import inspect_logs
from runner.imports.json_stream import first_keys
from runner.imports.records import ForeignReply, opened

ARCHIVE: Final = "zip"
"""Stands for the keys of an archive, which is no JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignForm:
    """A form of files."""

    title: str  #: the tool and what the file is
    keys: tuple[frozenset[str], ...]
    """Keys of the first object; a file has all of one of these sets."""
    read: Callable[[Path], Iterator[ForeignReply]]

    def fits(self, keys: Collection[str]) -> bool:
        """Return whether a file whose first object has *keys* is in this form."""
        return any(wanted.issubset(keys) for wanted in self.keys)


def _of(*keys: str) -> frozenset[str]:
    return frozenset(keys)


FORMS: Final[Mapping[str, ForeignForm]] = {
    "inspect": ForeignForm(
        title="inspect_ai log, .eval",
        keys=(_of(ARCHIVE),),
        read=inspect_logs.read_archive,
    ),
    "inspect-json": ForeignForm(
        title="inspect_ai log, .json",
        keys=(_of("version", "status", "eval"), _of("eval", "samples")),
        read=inspect_logs.read_json,
    ),
}
"""In the order in which they are tried."""


def recognised(path: Path) -> str | None:
    """Return the name of a file's form; None if it is in none.

    Raises:
        DatasetError: the file cannot be read.
    """
    keys = _keys(path)
    return next((name for name, form in FORMS.items() if form.fits(keys)), None)


def _keys(path: Path) -> Sequence[str]:
    with opened(path) as file:
        keys = first_keys(file, path.name)
    return keys or ([ARCHIVE] if _is_archive(path) else [])


def _is_archive(path: Path) -> bool:
    """Return whether a file is an archive, or the beginning of one."""
    with path.open("rb") as file:
        return file.read(4) == b"PK\x03\x04" or is_zipfile(file)


def read_files(
    paths: Sequence[Path], form: str | None = None, model: str | None = None
) -> Iterator[ForeignReply]:
    """Yield the replies in files, file by file.

    Args:
        paths: the files.
        form: of all of them, a name in `FORMS`; None: each by its content.
        model: of replies whose file does not name one.

    Raises:
        DatasetError: a file is in no known form, or damaged.
        UsageError: a reply has no model.
    """
    for path in paths:
        name = form or recognised(path)
        if name is None:
            known = "; ".join(f"{name}: {form.title}" for name, form in FORMS.items())
            raise DatasetError(
                f"{path.name}: fits no known format ({known}; force one with --format)."
            )
        for reply in FORMS[name].read(path):
            if not reply.model and not model:
                raise UsageError(
                    f"{path.name} names no model for {reply.item!r}; add --model NAME."
                )
            yield reply if reply.model else replace(reply, model=model or "")
