"""A member's name leads to one file below the folder of the bundle, or is refused."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.bundle.archive import LONGEST, problem


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
