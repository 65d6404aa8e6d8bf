"""Stored results of a parser: used if they are of the same replies, else replaced."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from runner.job import ReplyParser
from runner.messages import ParseFailure, Reply
from runner.score.parsed_replies import ParsedReplies, page_key


class Length(msgspec.Struct, array_like=True):
    n: int = 0
    failure: ParseFailure | None = None


def measured(stage: str, reply: Reply) -> Length:
    return Length(n=len(stage) + len(reply.text))


PARSER = ReplyParser(name="length", result=Length, parse=measured)
PAGES = [[1, 2], [5], [7, 9]]
LINKS = {10: b"ten", 20: b"twenty"}


def passed(
    folder: Path,
    pages: list[list[int]] = PAGES,
    *,
    code: str = "c",
    last: int = 10,
    of: Callable[[int], Length | None] = Length,
    writes: bool = True,
) -> list[int]:
    """Read all pages; return the events whose replies had to be parsed."""
    parsed: list[int] = []

    def parse(page: list[int]) -> list[Length | None]:
        parsed.extend(page)
        return [*map(of, page)]

    with ParsedReplies(
        folder, PARSER, page_key(code, last, LINKS[last]), LINKS.get, writes=writes
    ) as stored:
        for page in pages:
            found = stored.page(page, lambda page=page: parse(page))
            assert found == [*map(of, page)]
    assert [path.name for path in folder.glob("*")] in ([], ["length"])
    return parsed


def test_a_second_pass_parses_nothing_and_a_longer_log_only_what_is_new(
    tmp_path: Path,
) -> None:
    assert passed(tmp_path) == [1, 2, 5, 7, 9]
    assert passed(tmp_path) == []
    longer = [*PAGES, [12]]
    assert passed(tmp_path, longer, last=20) == [12]
    assert passed(tmp_path, longer, last=20) == []


def test_another_parser_or_another_log_parses_all(tmp_path: Path) -> None:
    passed(tmp_path)
    assert passed(tmp_path, code="other") == [1, 2, 5, 7, 9]
    passed(tmp_path, last=20)
    # the log was cut since: the link of the file is none of it
    assert passed(tmp_path, last=10) == [1, 2, 5, 7, 9]


def test_changed_pages_are_parsed_and_the_others_kept(tmp_path: Path) -> None:
    passed(tmp_path)
    assert passed(tmp_path, [[1, 2], [6], [7, 9]]) == [6]
    assert passed(tmp_path, [[1, 2], [6]]) == []
    assert passed(tmp_path, [[1, 2], [6]]) == []


def test_replies_after_the_last_link_and_exceptions_are_parsed_each_time(
    tmp_path: Path,
) -> None:
    def failing(seq: int) -> Length:
        return Length(failure=ParseFailure(reason="parser_error") if seq == 5 else None)

    assert passed(tmp_path, [[1], [5], [12]], of=failing) == [1, 5, 12]
    assert passed(tmp_path, [[1], [5], [12]], of=failing) == [5, 12]


def test_a_reader_writes_nothing(tmp_path: Path) -> None:
    assert passed(tmp_path, writes=False) == [1, 2, 5, 7, 9]
    assert [*tmp_path.glob("*")] == []


def test_a_folder_that_cannot_be_written_does_not_matter(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    parser_folder = tmp_path / "file" / "parsed"
    assert passed(parser_folder) == [1, 2, 5, 7, 9]


@given(data=st.data())
def test_damage_is_noticed_and_repaired(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        passed(folder)
        file = folder / "length"
        whole = bytearray(file.read_bytes())
        at = data.draw(st.integers(0, len(whole) - 1))
        if data.draw(st.booleans()):
            whole[at] ^= 1 << data.draw(st.integers(0, 7))
        else:
            del whole[at:]
        file.write_bytes(whole)
        passed(folder)
        assert passed(folder) == []
