"""Rows of JSONL files: encodings, line ends, and errors that name their place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs.kit.inputs.rows import InputFindings
from jobs.paper_investigation.rows import JsonRow, read_rows
from runner.errors import DatasetError

VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-(10**9), 10**9), st.text(max_size=20)
)
OBJECTS = st.lists(st.dictionaries(st.text(max_size=8), VALUES, max_size=4), max_size=6)


def write(folder: Path, data: bytes, name: str = "rows.jsonl") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def read(path: Path) -> list[JsonRow]:
    return list(read_rows(path, "strict", InputFindings()))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(objects=OBJECTS, bom=st.booleans(), ends=st.sampled_from(["\n", "\r\n"]))
def test_any_objects_come_back_whatever_the_line_ends_and_blank_lines(
    tmp_path: Path, objects: list[dict[str, object]], bom: bool, ends: str
) -> None:
    lines = [json.dumps(each, ensure_ascii=False) for each in objects]
    text = ends.join(line for pair in lines for line in (pair, "", "  "))
    path = write(tmp_path, (b"\xef\xbb\xbf" if bom else b"") + text.encode())
    rows = read(path)
    assert [row.fields for row in rows] == objects
    assert [row.line for row in rows] == [1 + 3 * n for n in range(len(objects))]


def test_a_row_can_be_found_again_by_its_place(tmp_path: Path) -> None:
    path = write(tmp_path, b'\xef\xbb\xbf{"a": 1}\r\n\r\n{"b": "\xc3\xa9"}\r\n')
    first, second = read(path)
    data = path.read_bytes()
    assert json.loads(data[first.start :][: first.size].decode("utf-8-sig")) == {"a": 1}
    assert json.loads(data[second.start :][: second.size]) == {"b": "é"}


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        (b'{"a": ', "not valid JSON"),
        (b'{"a": NaN}', "not valid JSON"),
        (b"[1]", "a list instead of an object"),
        (b"null", "null instead of an object"),
    ],
)
def test_a_broken_line_is_named_by_file_and_line(
    tmp_path: Path, line: bytes, complaint: str
) -> None:
    path = write(tmp_path, b'{"a": 1}\n\n' + line + b"\n")
    with pytest.raises(DatasetError, match=rf"^rows\.jsonl line 3: {complaint}"):
        read(path)


def test_bytes_that_are_not_utf_8_are_named_by_their_offset(tmp_path: Path) -> None:
    path = write(tmp_path, b'{"a": 1}\n{"b": "\xff"}\n')
    with pytest.raises(DatasetError, match=r"line 2: byte 16 is not UTF-8"):
        read(path)


def test_the_offset_counts_a_byte_order_mark(tmp_path: Path) -> None:
    path = write(tmp_path, b'\xef\xbb\xbf{"b": "\xff"}\n')
    with pytest.raises(DatasetError, match=r"line 1: byte 10 is not UTF-8"):
        read(path)


def test_bytes_that_are_not_utf_8_can_be_replaced_and_are_counted(
    tmp_path: Path,
) -> None:
    path = write(tmp_path, b'{"b": "\xff"}\n{"b": "\xfe"}\n')
    noticed = InputFindings()
    rows = list(read_rows(path, "replace", noticed))
    assert [row.text("b") for row in rows] == ["\ufffd", "\ufffd"]
    (finding,) = noticed.findings()
    assert (finding.code, finding.n, finding.example) == ("replaced_bytes", 2, "line 1")


def test_a_missing_file_is_one_sentence_with_its_path(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"gone\.jsonl: No such file or directory"):
        read(tmp_path / "gone.jsonl")


@pytest.mark.parametrize(
    ("value", "text"),
    [("  x ", "x"), (None, ""), (7, "7"), (0.03, "0.03"), (1e-05, "1e-05")],
)
def test_a_field_is_read_as_trimmed_text(
    tmp_path: Path, value: object, text: str
) -> None:
    (row,) = read(write(tmp_path, json.dumps({"a": value}).encode()))
    assert row.text("a") == text


@pytest.mark.parametrize("value", [True, [], {}])
def test_a_field_that_is_no_text_is_an_error_with_its_name(
    tmp_path: Path, value: object
) -> None:
    (row,) = read(write(tmp_path, json.dumps({"a": value}).encode()))
    with pytest.raises(DatasetError, match=r"rows\.jsonl line 1: a is "):
        row.text("a")


@pytest.mark.parametrize(("fields", "why"), [({}, "missing"), ({"a": " "}, "blank")])
def test_a_required_field_says_whether_it_is_missing_or_blank(
    tmp_path: Path, fields: dict[str, object], why: str
) -> None:
    (row,) = read(write(tmp_path, json.dumps(fields).encode()))
    with pytest.raises(DatasetError, match=f"a is {why}"):
        row.required("a")


@pytest.mark.parametrize("value", ["rs1", [1], [["rs1"]]])
def test_a_list_of_texts_accepts_nothing_else(tmp_path: Path, value: object) -> None:
    (row,) = read(write(tmp_path, json.dumps({"a": value}).encode()))
    with pytest.raises(DatasetError, match="line 1: a "):
        row.texts("a")
