"""tests.runner.test_forms"""

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
from runner.clients.wire import encode_answer
from runner.clients.wire_openai import OPENAI_CHAT, encode_reply
from runner.export import answers, tasks
from runner.messages import RankedDocument, Ranking, Usage, Vectors
from runner.scorecard import Cell
from runner.table_files import (
    FORMULA,
    WRITERS,
    ExportTable,
    Kind,
    Record,
    RowBuffer,
    columns,
    planned_files,
    write,
)
from store.database import open_reader
from store.tables import last_seq
from tests.store.logs import COURSE, written
from tests.store.samples import RUN_STARTED, completed, plan_first, reply, started

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


KINDS = (
    (OPENAI_CHAT, encode_reply("yes", "stop", Usage(tokens_in=5, tokens_out=1))),
    encode_answer(Vectors.of([[0.5, -1.0]])),
    encode_answer(Ranking(results=(RankedDocument(index=1, score=0.25),))),
)


def test_tasks_are_as_they_stood_at_one_event(tmp_path: Path) -> None:
    with open_reader(written(tmp_path / "log.db", *COURSE)) as reader:
        sheet = tasks(reader, last_seq(reader))
        every = [*sheet.rows]
        early = [*tasks(reader, 6).rows]
    task, state, error = map(sheet.names.index, ("task", "state", "error"))
    # by family: the judge of the first task stands behind it
    assert [row[task] for row in every] == [1, 5, 2, 3, 4]
    assert [row[state] for row in every] == [
        *("completed", "running", "failed", "completed", "skipped")
    ]
    assert [row[error] for row in every] == [None, None, "Overloaded", None, None]
    assert [row[task] for row in early] == [1, 2, 3, 4], "5 was planned later"
    moved = ["completed", "running", "running", "skipped"]
    assert [row[state] for row in early] == moved, "what has moved since is open"


def test_an_answer_of_every_kind_is_one_cell(tmp_path: Path) -> None:
    units = [
        [started(n), reply(n, body, form=form, cached=n == 2), completed(n)]
        for n, (form, body) in enumerate(KINDS, 1)
    ]
    path = written(
        tmp_path / "log.db", [RUN_STARTED], [plan_first(4)], *units, [started(4)]
    )
    with open_reader(path) as reader:
        sheet = answers(reader, last_seq(reader))
        rows = [dict(zip(sheet.names, row, strict=True)) for row in sheet.rows]
    assert [row["task"] for row in rows] == [1, 2, 3], "4 has no reply"
    assert [row["reply"] for row in rows] == ["yes", "[[0.5, -1.0]]", "[[1, 0.25]]"]
    assert [row["cached"] for row in rows] == [False, True, False]
    assert {row["tokens_in"] for row in rows} == {50}


KINDS_CELLS: st.SearchStrategy[Cell] = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=3)
)
TYPES = {
    Kind.NOTHING: type(None),
    Kind.BOOLEAN: bool,
    Kind.INTEGER: int,
    Kind.NUMBER: float,
    Kind.TEXT: str,
}


@given(st.sampled_from(Kind), st.sampled_from(Kind), st.sampled_from(Kind))
def test_the_kind_of_a_column_does_not_depend_on_the_order_of_its_cells(
    a: Kind, b: Kind, c: Kind
) -> None:
    assert a.with_(b) is b.with_(a)
    assert a.with_(b).with_(c) is a.with_(b.with_(c))
    assert a.with_(a) is a.with_(Kind.NOTHING) is a


@given(st.lists(KINDS_CELLS))
def test_every_cell_fits_the_column_that_was_made_for_it(cells: list[Cell]) -> None:
    kind = Kind.NOTHING
    for cell in cells:
        kind = kind.with_(Kind.of(cell))
    for cell in cells:
        held = kind.cell(cell)
        assert type(held) in {type(None), TYPES[kind]}
        is_undefined = cell is None or (isinstance(cell, float) and math.isnan(cell))
        assert (held is None) is is_undefined
        if type(cell) is TYPES[kind] and not is_undefined:
            assert held == cell
        if kind is Kind.INTEGER and held is not None:
            assert -(2**63) <= held < 2**63  # type: ignore[operator]
