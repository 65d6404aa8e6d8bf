"""CSV files, read and written by tests."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path


def rows(path: Path) -> list[dict[str, str]]:
    """A CSV file's rows."""
    with path.open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def write_csv(path: Path, columns: Sequence[str], lines: Iterable[object]) -> Path:
    """A CSV file of *lines*: sequences of cells, or mappings by column."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        for line in lines:
            writer.writerow(
                [line.get(name, "") for name in columns]
                if isinstance(line, Mapping)
                else line
            )
    return path
