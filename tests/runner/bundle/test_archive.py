"""The archive has nothing of the moment in it, and no byte of it is changed unseen.

A member's name leads to one file below the folder of the bundle, or is refused.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.bundle import archive
from runner.bundle.archive import LONGEST, problem
from runner.bundle.verify import check
from store.errors import ignore_progress
from tests.runner.bundle.conftest import Bundled
from tests.runner.bundle.forging import contents

MEMBERS = {"a.txt": b"first " * 100, "b/ä.txt": b"", "c": os.urandom(3000)}


def _write(path: Path, method: int = ZIP_DEFLATED) -> str:
    def pieces(data: bytes) -> Iterable[bytes]:
        return (data[at : at + 7] for at in range(0, len(data), 7))

    return archive.write(
        path,
        ((name, len(data), pieces(data)) for name, data in MEMBERS.items()),
        method=method,
    )


@pytest.mark.parametrize("method", [ZIP_DEFLATED, ZIP_STORED])
def test_what_goes_in_comes_out(tmp_path: Path, method: int) -> None:
    path = tmp_path / "x.zip"
    digest = _write(path, method)
    assert contents(path) == MEMBERS
    assert digest == hashlib.sha256(path.read_bytes()).hexdigest()
    assert archive.has_seal(path)
    assert archive.is_sealed(path)


def test_neither_time_nor_owner_nor_umask_changes_a_byte(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        _write(tmp_path / "one.zip")
    finally:
        os.umask(before)
    _write(tmp_path / "two.zip")
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()
    with ZipFile(tmp_path / "one.zip") as opened:
        for info in opened.infolist():
            assert info.date_time == (1980, 1, 1, 0, 0, 0)
            assert info.external_attr >> 16 == archive.MODE


@settings(max_examples=2000 if "SIFTLOG_PROVE" in os.environ else 25)
@given(data=st.data())
def test_a_flipped_bit_or_a_missing_end_is_found_wherever_it_is(
    bundled: Bundled, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    content = bytearray(bundled.path.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1), label="at")
    if data.draw(st.integers(0, 9), label="whether to cut") == 0:
        del content[at:]
    else:
        content[at] ^= 1 << data.draw(st.integers(0, 7), label="bit")
    path = tmp_path_factory.getbasetemp() / "flipped.zip"
    path.write_bytes(content)
    found = check(path, ignore_progress)
    assert not found.is_sound
    assert not found.is_rebuilt
    assert all(fault.where and fault.message for fault in found.faults)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("/etc/passwd", "absolute"),
        ("C:/x", "absolute"),
        ("../x", "leads out"),
        ("inputs/../../x", "leads out"),
        ("inputs\\..\\x", "backslash"),
        ("inputs//x", "not the name of a file"),
        ("./x", "not the name of a file"),
        ("inputs/", "not the name of a file"),
        ("", "not the name of a file"),
        ("a\0b", "cannot be shown"),
        ("a\nb", "cannot be shown"),
        ("a\udcffb", "cannot be shown"),
        ("x" * (LONGEST + 1), "too long"),
        ("x/" * 50 + "x", "too long"),
    ],
)
def test_a_name_that_could_lead_elsewhere_is_told_why(name: str, said: str) -> None:
    assert said in str(problem(name))


@pytest.mark.parametrize(
    "name", ["bundle.json", "inputs/papers/PMC 1 (copy).md", "inputs/x/..a/ü–~.csv"]
)
def test_names_of_ordinary_files_are_taken(name: str) -> None:
    assert problem(name) is None


PIECES = st.sampled_from(["a", "..", ".", "/", "\\", "\0", "C:", "~", "\n", "é"])


@given(st.lists(PIECES, max_size=8).map("".join))
def test_a_name_that_is_taken_stays_below_the_folder(name: str) -> None:
    if problem(name) is None:
        folder = Path("/nowhere/at/all")
        assert (folder / name).resolve().is_relative_to(folder)
        assert str(PurePosixPath(name)) == name
