"""Excel files of tables: cells keep their types, and no text becomes a formula."""

from __future__ import annotations

import re
import zipfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.table_files import (
    SHEET_CHARS,
    ExportTable,
    Kind,
    columns,
    write_xlsx,
)


def _sheet(path: Path) -> str:
    with zipfile.ZipFile(path) as book:
        return book.read("xl/worksheets/sheet1.xml").decode()


def _table(*rows: tuple[object, ...]) -> ExportTable:
    kinds = columns(id=Kind.TEXT, n=Kind.INTEGER, ok=Kind.BOOLEAN, x=Kind.NUMBER)
    return ExportTable(name="t", columns=kinds, rows=rows)  # type: ignore[arg-type]


def test_cells_keep_their_types(tmp_path: Path) -> None:
    table = _table(("a", 3, True, 0.5), ("b", None, None, float("inf")))
    assert write_xlsx(tmp_path / "t.xlsx", table) == 2
    sheet = _sheet(tmp_path / "t.xlsx")
    assert '<c r="B2"><v>3</v></c>' in sheet
    assert '<c r="C2" t="b"><v>1</v></c>' in sheet
    assert '<c r="D2"><v>0.5</v></c>' in sheet
    assert "B3" not in sheet
    assert "inf" in sheet


@given(st.sampled_from("=+-@\t"), st.text(max_size=20))
def test_no_text_becomes_a_formula(
    tmp_path_factory: pytest.TempPathFactory, first: str, rest: str
) -> None:
    path = tmp_path_factory.mktemp("x") / "t.xlsx"
    write_xlsx(
        path, _table((first + rest.encode(errors="replace").decode(), None, None, None))
    )
    assert "<f>" not in _sheet(path)


def test_a_long_text_is_cut_and_the_bytes_are_stable(tmp_path: Path) -> None:
    table = _table(("x" * (SHEET_CHARS + 5), 1, None, None))
    write_xlsx(tmp_path / "a.xlsx", table)
    write_xlsx(tmp_path / "b.xlsx", table)
    assert (tmp_path / "a.xlsx").read_bytes() == (tmp_path / "b.xlsx").read_bytes()
    cell = re.search(r"<t[^>]*>(x+…)</t>", _sheet(tmp_path / "a.xlsx"))
    assert cell is not None
    assert len(cell[1]) == SHEET_CHARS
