"""The forms of a file that holds a sheet: JSON lines, CSV, Parquet."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from runner.exporting.arrow import arrow_chunks, schema
from runner.exporting.sheet import Sheet
from runner.records.render import csv_lines
from runner.scorecard import Cell


def write_jsonl(path: Path, sheet: Sheet) -> int:
    """One JSON object a line; the number of rows.

    JSON has no infinite numbers: they become null here, and stay in the other forms.
    """
    rows = 0
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for chunk in sheet.chunks():
            for row in chunk:
                values = dict(zip(sheet.names, map(_finite, row), strict=True))
                file.write(json.dumps(values, ensure_ascii=False, allow_nan=False))
                file.write("\n")
            rows += len(chunk)
    return rows


def _finite(cell: Cell) -> Cell:
    return None if isinstance(cell, float) and math.isinf(cell) else cell


def write_csv(path: Path, sheet: Sheet) -> int:
    """CSV with a header; what a spreadsheet would run is quoted. The number of rows."""
    rows = 0
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(csv_lines([sheet.names]))
        for chunk in sheet.chunks():
            file.write(csv_lines(chunk))
            rows += len(chunk)
    return rows


def write_parquet(path: Path, sheet: Sheet) -> int:
    """Parquet with zstd; the number of rows."""
    import pyarrow.parquet as pq  # noqa: PLC0415 - 0.2 s that only this form needs

    rows = 0
    with pq.ParquetWriter(path, schema(sheet), compression="zstd") as writer:
        for batch in arrow_chunks(sheet):
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows


WRITERS: Final[Mapping[str, Callable[[Path, Sheet], int]]] = {
    "jsonl": write_jsonl,
    "csv": write_csv,
    "parquet": write_parquet,
}
"""File ending to writer."""
