"""Requests from outside: written by anybody, read on from where one was."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.control import Command, CommandTail, forward_command, send_command
from store.runs import RunFolder


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    return RunFolder(tmp_path)


def command(number: int) -> Command:
    return Command(
        id=f"c{number}",
        author="someone",
        host="here",
        at_us=1000 + number,
        kind="retry",
        payload={"filter": "state:failed"},
    )


def test_what_is_written_is_read_once_and_in_order(folder: RunFolder) -> None:
    tail = CommandTail(folder.control)
    assert tail.read() == []
    send_command(folder, command(1))
    send_command(folder, command(2))
    assert tail.read() == [command(1), command(2)]
    assert tail.read() == []
    send_command(folder, command(3))
    assert tail.read() == [command(3)]
    assert CommandTail(folder.control).read() == [command(n) for n in (1, 2, 3)]


def test_the_file_has_no_blank_line_even_where_one_was_left_unfinished(
    folder: RunFolder,
) -> None:
    for number in range(3):
        send_command(folder, command(number))
    with folder.control.open("ab") as file:
        file.write(b'{"id": "torn", "auth')
    for number in range(3, 6):
        send_command(folder, command(number))
    lines = folder.control.read_bytes().split(b"\n")
    assert lines.pop() == b""
    assert len(lines) == 7
    assert all(lines)


def test_processes_that_write_together_leave_whole_lines(folder: RunFolder) -> None:
    def ask(first: int) -> None:
        for number in range(first, first + 50):
            send_command(folder, command(number))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(ask, range(0, 400, 50)))
    tail = CommandTail(folder.control)
    assert {each.id for each in tail.read()} == {f"c{n}" for n in range(400)}
    assert tail.unreadable == 0
    assert folder.control.read_bytes().count(b"\n") == 400


def test_a_line_still_being_written_is_left_for_later(folder: RunFolder) -> None:
    send_command(folder, command(1))
    line = folder.control.read_bytes()
    tail = CommandTail(folder.control)
    folder.control.write_bytes(line[:-20])
    assert tail.read() == []
    folder.control.write_bytes(line)
    assert tail.read() == [command(1)]


def test_a_line_left_unfinished_spoils_only_itself(folder: RunFolder) -> None:
    send_command(folder, command(1))
    with folder.control.open("ab") as file:
        file.write(b'{"id": "torn", "auth')
    send_command(folder, command(2))
    tail = CommandTail(folder.control)
    assert tail.read() == [command(1), command(2)]
    assert tail.unreadable == 1


@pytest.mark.parametrize(
    "line", [b"[]", b"\xff\xfe", b"{}", b'{"id": 1}', b"null", b"not json"]
)
def test_lines_that_are_no_command_are_passed_over(
    folder: RunFolder, line: bytes
) -> None:
    folder.control.write_bytes(line + b"\n")
    send_command(folder, command(1))
    tail = CommandTail(folder.control)
    assert tail.read() == [command(1)]
    assert tail.unreadable == 1


@given(cuts=st.lists(st.integers(0, 2000), max_size=8), count=st.integers(0, 6))
def test_reading_at_any_moments_gives_every_command_once(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], count: int
) -> None:
    folder = RunFolder(tmp_path_factory.mktemp("run"))
    for number in range(count):
        send_command(folder, command(number))
    whole = folder.control.read_bytes() if count else b""
    tail = CommandTail(folder.control)
    seen: list[Command] = []
    for cut in [*sorted(cuts), len(whole)]:
        folder.control.write_bytes(whole[:cut])
        seen += tail.read()
    assert seen == [command(number) for number in range(count)]


def test_a_request_that_comes_from_elsewhere_stands_here_once(
    folder: RunFolder,
) -> None:
    send_command(folder, command(1))
    for number in (1, 2, 2):
        forward_command(folder, msgspec.json.encode(command(number)))
    assert CommandTail(folder.control).read() == [command(1), command(2)]


def test_what_is_no_request_is_not_handed_on(folder: RunFolder) -> None:
    with pytest.raises(ValueError, match="no request"):
        forward_command(folder, b'{"id": 1}')
    assert not folder.control.exists()
