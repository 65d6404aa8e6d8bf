"""Sheets as files in a run's folder, each whole or not there.

A sheet without rows has no file of JSON lines: an empty file has no columns either, and
readers such as polars refuse it. CSV and Parquet carry their columns.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from runner.exporting.forms import WRITERS
from runner.exporting.sheet import Sheet


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """A file that was made, or would be."""

    path: Path
    rows: int
    size: int | None  #: in bytes; None: it was not written


def foretell(folder: Path, form: str, sheets: Iterable[Sheet]) -> list[Exported]:
    """What `write` would make; everything is read, and nothing is written."""
    counts = [(sheet, sum(map(len, sheet.chunks()))) for sheet in sheets]
    return [
        Exported(path=_place(folder, sheet, form), rows=rows, size=None)
        for sheet, rows in counts
        if _has_file(form, rows)
    ]


def write(folder: Path, form: str, sheets: Iterable[Sheet]) -> list[Exported]:
    """Write each sheet to its place in *folder*; a file that is there is replaced.

    None is replaced before all are written: what is there belongs together.
    """
    folder.mkdir(parents=True, exist_ok=True)
    made: list[tuple[Path, Exported]] = []
    empty: list[Path] = []
    with TemporaryDirectory(prefix=".", dir=folder) as drafts:
        for number, sheet in enumerate(sheets):
            draft = Path(drafts) / str(number)
            rows = WRITERS[form](draft, sheet)
            path, size = _place(folder, sheet, form), draft.stat().st_size
            if not _has_file(form, rows):
                empty.append(path)
                continue
            made.append((draft, Exported(path=path, rows=rows, size=size)))
        for draft, exported in made:
            exported.path.parent.mkdir(parents=True, exist_ok=True)
            draft.replace(exported.path)
        for path in empty:
            path.unlink(missing_ok=True)
    return [exported for _, exported in made]


def _has_file(form: str, rows: int) -> bool:
    return form != "jsonl" or rows > 0


def _place(folder: Path, sheet: Sheet, form: str) -> Path:
    return folder / f"{sheet.name}.{form}"
