from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner import table_files
from runner.scorecard import Cell
from runner.table_files import (
    WRITERS,
    ExportTable,
    Kind,
    Record,
    RowBuffer,
    columns,
    planned_files,
    write,
)
from runner.typeset import (
    FORMULA,
)

CELLS: st.SearchStrategy[Cell] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=4),
    st.sampled_from(["=1+1", "@x", "a\r\nb", "\u2028", "-1"]),
)
ROWS = st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=12)
WIDTH = ("a", "b", "c")


def _written(rows: list[Record], form: str) -> bytes:
    with ExitStack() as stack, TemporaryDirectory() as folder:
        put = RowBuffer(WIDTH, stack)
        for row in rows:
            put.add(row)
        path = Path(folder) / "x"
        made = ExportTable(name="x", columns=put.columns, rows=put)
        assert WRITERS[form](path, made) == len(rows)
        return path.read_bytes()


def _finite(cell: Any) -> Any:
    return None if isinstance(cell, float) and math.isinf(cell) else cell


@settings(deadline=None, max_examples=60)
@given(rows=ROWS)
def test_all_forms_say_the_same_and_none_is_a_formula(rows: list[Record]) -> None:
    table = pq.read_table(io.BytesIO(_written(rows, "parquet")))
    held = [tuple(row.values()) for row in table.to_pylist()]
    lines = _written(rows, "jsonl").decode().split("\n")[:-1]
    assert [json.loads(line) for line in lines] == [
        dict(zip(WIDTH, map(_finite, row), strict=True)) for row in held
    ]
    text = io.StringIO(_written(rows, "csv").decode(), newline="")
    head, *read = csv.reader(text)
    assert tuple(head) == WIDTH
    assert len(read) == len(held)
    for row, cells in zip(held, read, strict=True):
        for cell, shown in zip(row, cells, strict=True):
            if isinstance(cell, str):
                assert shown == (f"'{cell}" if cell.startswith(FORMULA) else cell)
            elif cell is None:
                assert shown == ""
            else:
                assert shown == repr(cell).replace("T", "t").replace("F", "f")


def test_a_columns_type_does_not_depend_on_what_stands_in_it(tmp_path: Path) -> None:
    every = columns(
        text=Kind.TEXT, n=Kind.INTEGER, x=Kind.NUMBER, ok=Kind.BOOLEAN, no=Kind.NOTHING
    )
    schemas = set()
    rows: list[list[Record]] = [[], [(None,) * 5], [("a", 1, 2, True, None)]]
    for number, given_rows in enumerate(rows):
        path = tmp_path / str(number)
        WRITERS["parquet"](path, ExportTable(name="x", columns=every, rows=given_rows))
        schemas.add(tuple((f.name, f.type) for f in pq.read_schema(path)))
    assert schemas == {
        (
            ("text", pa.string()),
            ("n", pa.int64()),
            ("x", pa.float64()),
            ("ok", pa.bool_()),
            ("no", pa.null()),
        )
    }


def test_rows_are_held_by_number_and_by_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_files, "CHUNK_ROWS", 3)
    monkeypatch.setattr(table_files, "CHUNK_BYTES", 100)
    cells = ["x" * 60] * 3 + ["x"] * 4
    made = ExportTable(
        name="x", columns=columns(a=Kind.TEXT), rows=[(c,) for c in cells]
    )
    assert [len(chunk) for chunk in made.chunks()] == [2, 3, 2]
    assert [c for chunk in made.chunks() for (c,) in chunk] == cells


def test_rows_put_aside_beyond_the_memory_come_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(table_files, "IN_MEMORY", 10)
    rows: list[Record] = [(2**70, "x"), (1, "y" * 100), (None, "")]
    with ExitStack() as stack:
        put = RowBuffer(("n", "text"), stack)
        for row in rows:
            put.add(row)
        assert [*put] == [(str(2**70), "x"), *rows[1:]]
        assert [column.kind for column in put.columns] == [Kind.TEXT, Kind.TEXT]


def test_a_table_without_rows_has_no_file_of_json_lines(tmp_path: Path) -> None:
    one = columns(n=Kind.INTEGER)

    def made(form: str, *rows: Record) -> set[str]:
        write(tmp_path, form, [ExportTable(name="a", columns=one, rows=iter(rows))])
        return {path.name for path in tmp_path.iterdir()}

    assert made("jsonl", (1,)) == {"a.jsonl"}
    assert made("jsonl") == set()  # nor that of an earlier export
    assert made("csv") == {"a.csv"}


def test_what_cannot_be_finished_leaves_what_was_there(tmp_path: Path) -> None:
    def breaks() -> Iterator[Record]:
        yield (1,)
        raise OSError(28, "No space left on device")

    one = columns(n=Kind.INTEGER)
    whole = [
        ExportTable(name="a", columns=one, rows=[(1,)]),
        ExportTable(name="b/c", columns=one, rows=[(2,)]),
    ]
    write(tmp_path, "jsonl", whole)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.jsonl")}
    assert len(before) == 2
    broken = ExportTable(name="b/c", columns=one, rows=breaks())
    with pytest.raises(OSError, match="No space"):
        write(
            tmp_path, "jsonl", [ExportTable(name="a", columns=one, rows=[(9,)]), broken]
        )
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before
    assert {path.name for path in tmp_path.iterdir()} == {"a.jsonl", "b"}


def test_a_dry_run_counts_and_writes_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "exports"
    made = ExportTable(
        name="a", columns=columns(n=Kind.INTEGER), rows=iter([(1,), (2,)])
    )
    (told,) = planned_files(folder, "csv", [made])
    assert (told.path, told.rows, told.size) == (folder / "a.csv", 2, None)
    assert not folder.exists()
