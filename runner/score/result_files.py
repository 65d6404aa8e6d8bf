"""Writes what a scoring returned into the files of its folder."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TextIO, assert_never

from runner.score.render import METRICS, OPERATIONS, metrics_table, result_of
from runner.score.result import RESULT
from runner.scorecard import Scorecard, StreamedLine, StreamedRow, Table, Verdict
from runner.table_files import (
    WRITERS,
    ExportTable,
    Record,
    RowBuffer,
    csv_writer,
    has_parquet,
)
from store.notable import NotableItems
from store.verdicts import write_verdicts


def write_files(
    draft: Path,
    card: Scorecard,
    content: bytes,
    operations: bytes,
    items: NotableItems | None = None,
) -> None:
    """Write all files of a scoring except reports into a new folder.

    Args:
        draft: the folder.
        card: the scorecard.
        content: of `scorecard.json`.
        operations: content of `operations.json`.
        items: watch the verdicts, for reports.
    """
    draft.mkdir()
    (draft / "scorecard.json").write_bytes(content)
    (draft / OPERATIONS).write_bytes(operations)
    (draft / RESULT).write_bytes(result_of(card).json())
    verdicts = _write_files(draft, card)
    if items is not None:
        verdicts = items.watch(verdicts)
    write_verdicts(draft / "verdicts.db", verdicts)


_NAME = re.compile(r"(?:[A-Za-z0-9_][A-Za-z0-9._-]*/){0,2}[A-Za-z0-9_][A-Za-z0-9._-]*")


def _inside(name: str) -> str:
    """Check a file name, which may include subfolders.

    Raises:
        ValueError: it could point elsewhere.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} cannot be the name of a scoring's file.")
    return name


def _created(draft: Path, name: str) -> TextIO:
    path = draft / _inside(name)
    path.parent.mkdir(exist_ok=True, parents=True)
    return path.open("w", encoding="utf-8", newline="")


def _write_files(draft: Path, card: Scorecard) -> Iterator[Verdict]:
    """Write tables and artifacts in one pass over the details; yield the verdicts.

    Empty JSON lines artifacts have no file, as in exports: an empty file has no
    columns, and readers such as polars refuse it.
    """
    with ExitStack() as stack:

        def opened(name: str) -> TextIO:
            return stack.enter_context(_created(draft, name))

        every = list(card.tables)
        if not any(table.name == METRICS for table in every):
            every.append(metrics_table(card))
        tables = {t.name: _TableFile(t, opened(f"{t.name}.csv"), stack) for t in every}
        artifacts = {a.name: opened(a.name).write for a in card.artifacts if not a.text}
        # closed at once: there may be more of them than possible open files
        for whole in (a for a in card.artifacts if a.text):
            with _created(draft, whole.name) as file:
                file.write(whole.text)
        for detail in card.details:
            match detail:
                case StreamedRow():
                    tables[detail.table].add(detail.cells)
                case StreamedLine():
                    artifacts[detail.artifact](detail.text)
                case Verdict():
                    yield detail
                case _:
                    assert_never(detail)
        for table_file in tables.values():
            table_file.write_further(draft)
    _drop_empty(draft / artifact.name for artifact in card.artifacts)


class _TableFile:
    """Writes a table as CSV row by row, and buffers its rows for further formats."""

    def __init__(self, table: Table, file: TextIO, stack: ExitStack) -> None:
        self._table = table
        self._write = csv_writer(file)
        self._write(table.columns)
        self._rows = RowBuffer(table.columns, stack) if table.further_formats else None
        for cells in table.rows:
            self.add(cells)

    def add(self, cells: Record) -> None:
        """Write the next row."""
        self._write(cells)
        if self._rows is not None:
            self._rows.add(cells)

    def write_further(self, folder: Path) -> None:
        """Write the table in its further formats, as far as they are installed."""
        if self._rows is None:
            return
        name = self._table.name
        whole = ExportTable(name=name, columns=self._rows.columns, rows=self._rows)
        for form in self._table.further_formats:
            if form == "parquet" and not has_parquet():
                continue  # the command says so
            WRITERS[form](folder / f"{name}.{form}", whole)


def _drop_empty(artifacts: Iterable[Path]) -> None:
    for path in artifacts:
        if path.suffix == ".jsonl" and not path.stat().st_size:
            path.unlink()
