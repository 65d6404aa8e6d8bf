"""A file with a line that never ends is refused before it fills the memory."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from jobs.inputs.files import read_csv, read_jsonl
from jobs.inputs.rows import InputFindings
from jobs.paper_investigation.rows import read_rows
from jobs.property_extraction.papers import read_papers
from runner import json_entries
from runner.errors import DatasetError
from runner.json_entries import LINE_BYTES, lines_of

Reader = Callable[[Path], Iterable[object]]

READERS: dict[str, Reader] = {
    "rows": lambda path: list(read_jsonl(path, ("a",), findings=InputFindings())),
    "csv": lambda path: list(read_csv(path, ("a",), findings=InputFindings())),
    "bench": lambda path: list(read_rows(path, "strict", InputFindings())),
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
        list(read_jsonl(path, ("a",), findings=InputFindings()))


@pytest.mark.parametrize("end", [b"", b"\n"])
def test_a_line_of_exactly_the_limit_is_read(
    end: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_entries, "LINE_BYTES", 8)
    whole = b"x" * (8 - len(end)) + end
    assert list(lines_of(io.BytesIO(b"a\n" + whole), "f")) == [(1, b"a\n"), (2, whole)]
    with pytest.raises(DatasetError, match="f line 2"):
        list(lines_of(io.BytesIO(b"a\nx" + whole), "f"))
