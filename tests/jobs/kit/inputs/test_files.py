"""A file with a line that never ends is refused before it fills the memory.

Rows of CSV and JSONL: what comes back, and errors that name their place.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs.kit.inputs.cells import Filled, InputCell, Number, Text, Texts, Whole
from jobs.kit.inputs.files import (
    csv_columns,
    entries_in,
    read_json,
    read_objects,
    read_table,
)
from jobs.kit.inputs.rows import InputFindings, RowModel, Spelled
from jobs.property_extraction.papers import read_papers
from runner import json_entries
from runner.errors import DatasetError
from runner.json_entries import LINE_BYTES, lines_of

Reader = Callable[[Path], Iterable[object]]


class OneColumn(RowModel):
    a: InputCell


class Cells(RowModel):
    a: InputCell
    b: InputCell


class Pair(RowModel):
    a: Text
    b: Text


class Measured(RowModel):
    a: Whole
    b: Number | None


class Sheet(RowModel, extra="allow"):
    """A table of any columns."""


READERS: dict[str, Reader] = {
    "rows": lambda path: list(read_objects(path, OneColumn, findings=InputFindings())),
    "csv": lambda path: list(read_table(path, OneColumn, findings=InputFindings())),
    "entries": lambda path: list(entries_in(path)),
    "papers": lambda path: [read_papers(path)],
}


@pytest.mark.parametrize("name", READERS)
def test_a_line_without_end_is_one_sentence(name: str, tmp_path: Path) -> None:
    path = tmp_path / ("rows.csv" if name == "csv" else "rows.jsonl")
    with path.open("wb") as file:
        file.write(b"\n" if name != "csv" else b"a\n")
        file.truncate(LINE_BYTES * 4)  # a sparse file: it takes no room
    with pytest.raises(DatasetError) as raised:
        READERS[name](path)
    said = str(raised.value)
    assert said.startswith(f"{path.name} line 2: longer than {LINE_BYTES:,} bytes (")
    assert "\n" not in said


def test_a_small_file_that_unpacks_to_one_long_line_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        for _ in range(2 * LINE_BYTES >> 20):
            file.write(bytes(1 << 20))
    assert path.stat().st_size < 2 << 20
    with pytest.raises(DatasetError, match=r"rows.jsonl.gz line 1: longer than"):
        list(read_objects(path, OneColumn, findings=InputFindings()))


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_line_of_exactly_the_limit_is_read(
    end: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_entries, "LINE_BYTES", 8)
    whole = b"x" * (8 - len(end)) + end
    assert list(lines_of(io.BytesIO(b"a\n" + whole), "f")) == [(1, b"a\n"), (2, whole)]
    with pytest.raises(DatasetError, match="f line 2"):
        list(lines_of(io.BytesIO(b"a\nx" + whole), "f"))


BOM = b"\xef\xbb\xbf"
CELLS = st.text(st.characters(codec="utf-8"), max_size=12)
AB = ("a", "b")

relaxed = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def write(folder: Path, data: bytes, name: str = "rows.csv") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def rows_of(path: Path, *, allow_ragged: bool = False) -> list[Cells]:
    return list(
        read_table(path, Cells, findings=InputFindings(), allow_ragged=allow_ragged)
    )


def complaint(read: Callable[[], object]) -> str:
    with pytest.raises(DatasetError) as caught:
        read()
    return str(caught.value)


@relaxed
@given(
    rows=st.lists(st.tuples(CELLS, CELLS), max_size=6),
    bom=st.booleans(),
    ends=st.sampled_from(["\n", "\r\n"]),
    zipped=st.booleans(),
)
def test_any_text_comes_back_from_csv_as_it_was(
    tmp_path: Path, rows: list[tuple[str, str]], bom: bool, ends: str, zipped: bool
) -> None:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator=ends, quoting=csv.QUOTE_ALL)
    writer.writerows([AB, *rows])
    data = (BOM if bom else b"") + text.getvalue().encode()
    path = write(tmp_path, gzip.compress(data) if zipped else data, "rows.csv.gz")
    if not zipped:
        path = path.rename(tmp_path / "rows.csv")
    pairs = read_table(path, Pair, findings=InputFindings())
    found = [(row.a, row.b) for row in pairs]
    assert found == rows


@relaxed
@given(
    objects=st.lists(st.fixed_dictionaries({"a": CELLS, "b": st.integers(0, 9)})),
    bom=st.booleans(),
    ends=st.sampled_from(["\n", "\r\n", "\n\n"]),
)
def test_any_objects_come_back_from_jsonl(
    tmp_path: Path, objects: list[dict[str, object]], bom: bool, ends: str
) -> None:
    text = "".join(json.dumps(each, ensure_ascii=False) + ends for each in objects)
    path = write(tmp_path, (BOM if bom else b"") + text.encode(), "rows.jsonl")
    found = list(read_objects(path, Cells, findings=InputFindings()))
    assert [{"a": row.a, "b": row.b} for row in found] == objects
    step = ends.count("\n")
    assert [row.line for row in found] == [1 + step * n for n in range(len(objects))]


def test_ids_are_text_and_only_an_empty_cell_is_missing(tmp_path: Path) -> None:
    path = write(tmp_path, b"b,a\nNA,007\nnull,nan\n,0\n")
    rows = rows_of(path)
    assert [row.a for row in rows] == ["007", "nan", "0"]
    assert [row.b for row in rows] == ["NA", "null", None]

    class Whole(RowModel):
        a: Filled
        b: Filled

    read = lambda: list(read_table(path, Whole, findings=InputFindings()))  # noqa: E731 - short
    assert complaint(read) == (
        "rows.csv line 4: b is missing (fill it in or remove the row)."
    )


def test_a_blank_cell_is_an_empty_list_and_not_a_list_of_a_blank_id(
    tmp_path: Path,
) -> None:
    class Lists(RowModel):
        a: Text
        b: Texts

    path = write(tmp_path, b"a,b\nq,\nq,p_1|p_2\n")
    first, second = read_table(path, Lists, findings=InputFindings())
    assert (first.b, second.b) == ((), ("p_1", "p_2"))


def test_a_record_over_several_lines_is_named_by_its_first(tmp_path: Path) -> None:
    path = write(tmp_path, b'a,b\n"one\ntwo",x\n\n"y\r\n",z\n1,2,3\n')
    found: list[Cells] = []
    said = complaint(
        lambda: found.extend(read_table(path, Cells, findings=InputFindings()))
    )
    assert "rows.csv line 7: 3 fields where the header has 2" in said
    rows = []
    for row in read_table(path, Cells, findings=InputFindings()):
        rows.append((row.line, row.a))
        if len(rows) == 2:
            break
    assert rows == [(2, "one\ntwo"), (5, "y\r\n")]


def test_columns_come_in_any_order_and_unknown_ones_are_noted(tmp_path: Path) -> None:
    noticed = InputFindings()
    path = write(tmp_path, b"z,B,a,z\n1,2,3,4\n")

    class Spelling(RowModel):
        a: Text
        b: Annotated[Text, Spelled("B")]

    (row,) = read_table(path, Spelling, findings=noticed)
    assert (row.a, row.b) == ("3", "2")
    (finding,) = noticed.findings()
    assert (finding.code, finding.n, finding.example) == ("unknown_column", 2, "z")
    assert finding.severity == "info"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("semicolons", "\ufeffa;b;c\r\n1;0,5;x\r\n2;;y\r\n"),
        ("tabs", "a\tb\tc\n1\t0.5\tx\n2\t\ty\n"),
        ("lines", '{"a": 1, "b": 0.5, "c": "x"}\n\n{"a": 2, "b": "", "c": "y"}\n'),
        ("absent", '{"a": 1, "b": 0.5, "c": "x"}\n{"a": 2, "c": "y"}\n'),
        ("list", '\n[\n  {"a": 1,\n "b": 0.5, "c": "x"},\n{"a": 2, "b": null}]\n'),
        ("one line", '[{"a": 1, "b": 0.5, "c": "x"}, {"a": 2, "b": null, "c": 3}]'),
        ("printed", '{\n"a": 1,\n "b": 0.5, "c": ""}\n{\n"a": 2\n}\n'),
    ],
)
def test_a_table_may_have_other_delimiters_or_be_objects(
    tmp_path: Path, name: str, text: str
) -> None:
    noticed = InputFindings()
    path = write(tmp_path, text.encode(), f"{name}.csv")
    one, two = read_table(path, Measured, findings=noticed)
    assert [row.a for row in (one, two)] == [1, 2]
    assert (one.b, two.b) == (0.5, None)
    (found,) = noticed.findings()
    assert (found.code, found.example) == ("unknown_column", "c")
    assert csv_columns(path) == ("a", "b", "c")


def test_a_header_with_a_comma_is_one_of_commas(tmp_path: Path) -> None:
    """Other delimiters may stand in its names."""
    path = write(tmp_path, b"a,b; c (K;Pa;m)\n1,2\n")
    assert csv_columns(path) == ("a", "b; c (K;Pa;m)")
    assert csv_columns(write(tmp_path, b"lone (a)\n1\n")) == ("lone (a)",)
    path = write(tmp_path, b'a,b\n1,"0,5"\n')
    with pytest.raises(DatasetError, match="b is '0,5'"):
        list(read_table(path, Measured, findings=InputFindings()))


def test_objects_of_a_spread_file_are_named_by_their_lines(tmp_path: Path) -> None:
    path = write(tmp_path, b'[\n {"a": 1,\n  "b": 2},\n\n {"a": 1}\n]')
    assert "rows.csv line 5: no key b" in complaint(
        lambda: list(read_objects(path, Cells, findings=InputFindings()))
    )
    path = write(tmp_path, b'[\n {"a": 1},\n {"a" 2}]')
    assert "rows.csv line 3, column 7: not valid JSON" in complaint(
        lambda: list(read_objects(path, OneColumn, findings=InputFindings()))
    )
    path = write(tmp_path, b'[{"a": 1},\n 3]')
    assert "rows.csv line 2: a number instead of an object" in complaint(
        lambda: list(read_objects(path, OneColumn, findings=InputFindings()))
    )


def test_a_file_of_another_kind_is_refused_without_its_content(tmp_path: Path) -> None:
    line = json.dumps({"text": "x" * 4000})
    said = complaint(lambda: rows_of(write(tmp_path, f"{line[:-1]}\n".encode())))
    assert len(said) < 300
    said = complaint(lambda: rows_of(write(tmp_path, f"{line}\n".encode())))
    assert said.startswith("rows.csv: column 'a' is missing (found: text);")
    said = complaint(
        lambda: list(
            read_objects(
                write(tmp_path, b"a,b\n1,2\n"), Cells, findings=InputFindings()
            )
        )
    )
    assert "this looks like CSV, write its rows as objects" in said


def test_unknown_keys_of_objects_are_noted_once_each(tmp_path: Path) -> None:
    noticed = InputFindings()
    path = write(tmp_path, b'{"a": 1, "b": 2, "c": 3}\n{"a": 1, "b": 2, "c": 4}\n')
    assert len(list(read_objects(path, Cells, findings=noticed))) == 2
    (finding,) = noticed.findings()
    assert (finding.code, finding.n, finding.example) == ("unknown_column", 1, "c")


def test_short_rows_are_refused_or_filled_up_and_counted(tmp_path: Path) -> None:
    path = write(tmp_path, b"a,b\n1\n2,3\n4\n")
    assert complaint(lambda: rows_of(path)) == (
        "rows.csv line 2: 1 field where the header has 2 (complete the "
        "row, or use --allow-ragged to read missing cells at its end "
        "as blank)."
    )
    noticed = InputFindings()
    rows = list(read_table(path, Cells, findings=noticed, allow_ragged=True))
    assert [row.b for row in rows] == [None, "3", None]
    (finding,) = noticed.findings()
    assert (finding.code, finding.n, finding.example) == ("ragged_rows", 2, "line 2")


def test_long_rows_are_refused_even_where_short_ones_are_not(tmp_path: Path) -> None:
    path = write(tmp_path, b"a,b\n1,2,\n")
    said = complaint(lambda: rows_of(path, allow_ragged=True))
    assert "line 2: 3 fields where the header has 2 (quote a field" in said


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "rows.csv: the file is empty (a header of columns is expected)."),
        (b"a,c\n1,2\n", "rows.csv: column 'b' is missing (found: a, c); name it"),
        (b"a,b,a\n", "rows.csv: column 'a' occurs twice (remove or rename one)."),
        (b'a,b\n1,"2\n', "rows.csv line 2: not CSV, unexpected end of data (check"),
        (b'a,b\n1,"2"3\n', "rows.csv line 2: not CSV, "),
        (b"a,b\n1,2\n\xff,3\n", "rows.csv line 3: byte 1 of the line is not UTF-8"),
        (b"a,b\n1,\x00\n\xc3\x28,", "rows.csv line 3: byte 1 of the line is not UTF-8"),
    ],
)
def test_a_file_that_is_no_csv_is_refused_by_place(
    tmp_path: Path, data: bytes, said: str
) -> None:
    path = write(tmp_path, data)
    assert complaint(lambda: rows_of(path)).startswith(said)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b'{"a": 1, "b": 2}\n{"a": ', "rows.jsonl line 2: not valid JSON, "),
        (b"[1]", "rows.jsonl line 1: a list instead of an object"),
        (b'\n{"a": 1}', "rows.jsonl line 2: no key b (add it to the object)."),
        (b'{"a": "\xff", "b": 1}', "rows.jsonl line 1: byte 8 of the line is not"),
    ],
)
def test_a_line_that_is_no_object_is_refused_by_place(
    tmp_path: Path, data: bytes, said: str
) -> None:
    path = write(tmp_path, data, "rows.jsonl")
    read = lambda: list(read_objects(path, Cells, findings=InputFindings()))  # noqa: E731 - short
    assert complaint(read).startswith(said)


def test_a_file_that_is_not_there_is_an_error_and_so_is_half_an_archive(
    tmp_path: Path,
) -> None:
    absent = tmp_path / "absent.csv"
    assert f"{absent}: No such file or directory (check" in complaint(
        lambda: rows_of(absent)
    )
    half = gzip.compress(b"a,b\n" + os.urandom(500).hex().encode())[:100]
    path = write(tmp_path, half, "half.csv.gz")
    assert "and that it is whole" in complaint(lambda: rows_of(path))
    path = write(tmp_path, b"a,b\n1,2\n", "plain.csv.gz")
    assert "Not a gzipped file" in complaint(lambda: rows_of(path))


def test_a_text_longer_than_the_csv_modules_bound_is_read(tmp_path: Path) -> None:
    long = "x" * 200_000
    path = write(tmp_path, f"a,b\n{long},1\n".encode())
    assert rows_of(path)[0].a == long


def test_the_header_alone_tells_a_files_format(tmp_path: Path) -> None:
    path = write(tmp_path, BOM + b'b,"a"\nnot,read,at,all\n')
    assert csv_columns(path) == ("b", "a")


def test_one_json_value_is_read_whole(tmp_path: Path) -> None:
    path = write(tmp_path, BOM + b'{"a":\n [1, 0.1]}', "one.json")
    assert read_json(path) == {"a": [1, 0.1]}
    path = write(tmp_path, b'{"a":', "one.json")
    assert complaint(lambda: read_json(path)).startswith("one.json: not valid JSON, ")


@pytest.mark.realdata
def test_the_published_sample_has_eight_ragged_rows(realdata: Path) -> None:
    path = realdata / "evidence_pipeline" / "published" / "sample_per_query.csv"
    said = complaint(lambda: list(read_table(path, Sheet, findings=InputFindings())))
    assert "line 3: 15 fields where the header has 16" in said
    noticed = InputFindings()
    columns = csv_columns(path)
    rows = list(
        read_table(path, Sheet, findings=noticed, further=columns, allow_ragged=True)
    )
    (finding,) = noticed.findings()
    assert (len(rows), finding.code, finding.n) == (16, "ragged_rows", 8)
    extras = [row.model_extra or {} for row in rows]
    filled = [
        cells["has_evidence_gold"] for cells in extras if "alert_correct" in cells
    ]
    assert filled == ["1"] * 8


def test_bytes_that_are_not_utf_8_can_be_replaced_and_are_counted(
    tmp_path: Path,
) -> None:
    path = write(tmp_path, b'{"b": "\xff"}\n{"b": "\xfe"}\n', "a.jsonl")
    findings = InputFindings()
    entries = list(entries_in(path, replaced=findings))
    assert [entry.fields["b"] for entry in entries] == ["\ufffd", "\ufffd"]
    (finding,) = findings.findings()
    assert (finding.code, finding.n, finding.example) == ("replaced_bytes", 2, "line 1")
    assert "line 1: byte 8 of the line is not UTF-8 (re-save it)." in complaint(
        lambda: list(entries_in(path, cure="re-save it"))
    )
