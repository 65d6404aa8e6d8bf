from __future__ import annotations

import gc
import gzip
from pathlib import Path

import pytest

from jobs.kit.inputs.files import entries_in
from jobs.kit.inputs.open_file import OpenFile
from runner.errors import DatasetError
from runner.json_entries import BOM

LINES = BOM + b'{"a": 1}\r\n\r\n{"b": "\xc3\xa9"}\r\n'


def descriptors(path: Path) -> int:
    """How often this process has *path* open."""
    links = Path("/proc/self/fd").iterdir()
    # the listing itself is open while it is read
    return sum(link.exists() and link.readlink() == path for link in links)


@pytest.mark.parametrize("name", ["a.jsonl", "a.jsonl.gz"])
def test_an_object_can_be_read_again_by_its_place(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(gzip.compress(LINES) if name.endswith("gz") else LINES)
    entries = list(entries_in(path))
    file = OpenFile(path)
    assert [(entry.line, entry.fields) for entry in entries] == [
        (1, {"a": 1}),
        (3, {"b": "\u00e9"}),
    ]
    assert [file.object_at(entry.start, entry.size) for entry in reversed(entries)] == [
        entry.fields for entry in reversed(entries)
    ]


def test_one_descriptor_serves_all_reads_until_the_object_is_gone(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"0123456789")
    file = OpenFile(path)
    assert descriptors(path) == 0
    assert [file.read(start, 2) for start in (8, 0, 9)] == [b"89", b"01", b"9"]
    assert descriptors(path) == 1
    del file
    gc.collect()
    assert descriptors(path) == 0


def test_a_file_that_is_replaced_is_read_as_it_was(tmp_path: Path) -> None:
    path, other = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    path.write_bytes(b"old text")
    file = OpenFile(path)
    assert file.read(0, 3) == b"old"
    other.write_bytes(b"new text")
    other.replace(path)
    assert file.read(0, 3) == b"old"


def test_a_file_that_was_changed_in_place_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a": 1}\n')
    file = OpenFile(path)
    path.write_bytes(b'"a", "b"\n')
    with pytest.raises(DatasetError, match="a"):
        file.object_at(0, 9)


def test_a_file_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="No such file"):
        OpenFile(tmp_path / "a.jsonl").read(0, 1)
