"""Filters are remembered, in a file too, and nothing that is in the way is trouble."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tui.hostile import HOSTILE
from tui.screens import palette
from tui.sources.filters import RECENT, FilterFile, FilterMemory, Filters


@given(
    st.lists(st.tuples(st.booleans(), st.sampled_from("abcdefghijklmnopqrstuvwxyz")))
)
def test_each_is_offered_once_and_stars_come_first(
    steps: list[tuple[bool, str]],
) -> None:
    memory = FilterMemory()
    for is_turned, words in steps:
        if is_turned:
            assert memory.turn(words) == (words in memory.filters.starred)
        else:
            memory.use(words)
            assert memory.filters.recent[0] == words
    offered = memory.filters.offered
    assert len(set(offered)) == len(offered)
    assert offered[: len(memory.filters.starred)] == memory.filters.starred
    assert len(memory.filters.recent) <= RECENT


def test_two_monitors_share_a_file_and_a_third_finds_it(tmp_path: Path) -> None:
    path = tmp_path / "siftlog" / "filters.json"
    one, other = FilterFile(path), FilterFile(path)
    one.use("state:failed")
    assert other.turn("parse:*")
    one.use("latency>5s")
    one.use("")
    one.use("x" * 501)
    found = FilterFile(path).filters
    assert found == Filters(starred=("parse:*",), recent=("latency>5s", "state:failed"))
    assert not other.turn("parse:*")
    assert FilterFile(path).filters.starred == ()
    assert [each.name for each in path.parent.iterdir()] == ["filters.json"]


@pytest.mark.parametrize("content", ["", "[]", '{"starred": 1, "recent": [2, "a"]}'])
def test_a_file_that_says_something_else_is_no_trouble(
    tmp_path: Path, content: str
) -> None:
    path = tmp_path / "filters.json"
    path.write_text(content, "utf-8")
    assert FilterFile(path).filters.starred == ()


def test_where_nothing_can_be_written_it_is_remembered_all_the_same(
    tmp_path: Path,
) -> None:
    (tmp_path / "file").write_text("in the way", "utf-8")
    memory = FilterFile(tmp_path / "file" / "filters.json")
    memory.use("state:failed")
    assert memory.filters.recent == ("state:failed",)


def test_the_palette_offers_plain_words_alone_and_names_the_stars() -> None:
    asked: list[str] = []
    remembered = Filters(starred=("state:failed",), recent=HOSTILE[:7])
    (command,) = palette.filter_commands(remembered, asked.append)
    assert command.title == "Tasks: * state:failed"
    command.callback()
    assert asked == ["state:failed"]
