"""Titles stand beside keys, and nothing depends on them."""

from __future__ import annotations

from pathlib import Path

import pytest

from store.errors import Unwritable
from store.titles import LONGEST, read_titles, write_titles

TITLES = [("PMC1", "The first"), ("PMC2", ""), ("r:7", "A record"), ("r", "A review")]


def test_a_key_has_the_title_of_the_longest_item_that_it_starts_with(
    tmp_path: Path,
) -> None:
    path = tmp_path / "titles.db"
    write_titles(path, TITLES)
    keys = ("PMC1", "PMC1/mcq:7", "PMC10", "PMC2", "r:7", "r:7#0", "r:8", "")
    assert read_titles(path, keys) == {
        "PMC1": "The first",
        "PMC1/mcq:7": "The first",
        "r:7": "A record",
        "r:7#0": "A record",
        "r:8": "A review",
    }
    assert read_titles(path, ()) == {}


def test_titles_are_written_once_and_clipped(tmp_path: Path) -> None:
    path = tmp_path / "titles.db"
    write_titles(path, [("a", "x" * 999), ("a", "again")])
    write_titles(path, [("a", "other")])
    assert read_titles(path, ["a"]) == {"a": "x" * LONGEST}
    assert [found.name for found in tmp_path.iterdir()] == ["titles.db"]


def test_without_titles_there_is_no_file(tmp_path: Path) -> None:
    write_titles(tmp_path / "titles.db", [("a", "")])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("content", [b"", b"no database, and longer than a header" * 9])
def test_a_damaged_file_hides_nothing_else(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "titles.db"
    assert read_titles(path, ["a"]) == {}
    path.write_bytes(content)
    assert read_titles(path, ["a"]) == {}


def test_titles_that_cannot_be_written_end_in_a_sentence(tmp_path: Path) -> None:
    path = tmp_path / "gone" / "titles.db"
    with pytest.raises(Unwritable, match=r"titles\.db could not be written"):
        write_titles(path, TITLES)
