"""Who may write into a run's folder: one place, and only where it exists."""

from __future__ import annotations

import ast
import asyncio
import getpass
from pathlib import Path

import pytest

from store.control import CommandTail
from store.runs import RunFolder
from tests.store.memory_log import START_US, FakeClock
from tui.control.commands import FolderCommandSender, control_of
from tui.sources.command import CommandFailed

TUI = Path(__file__).resolve().parents[3] / "tui"
WRITERS = {"write", "Command"}
"""What `store.control` has for those who ask; the rest of it reads."""


def test_a_request_is_one_line_with_its_author_and_the_state_it_was_made_in(
    tmp_path: Path,
) -> None:
    control = control_of(RunFolder(tmp_path), FakeClock())
    assert control is not None
    names = [
        control.ask("pause", {"stage": "ask"}, "live"),
        control.ask("withdraw", {"id": "c"}, None),
    ]
    first, second = CommandTail(RunFolder(tmp_path).control).read()
    assert [first.id, second.id] == names
    assert (first.kind, first.payload) == ("pause", {"stage": "ask"})
    assert (first.author, first.at_us) == (getpass.getuser(), START_US)
    assert (first.expected_state, second.expected_state) == ("live", None)


def test_where_only_looking_is_wanted_or_allowed_nobody_asks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RunFolder(tmp_path)
    assert control_of(folder, FakeClock(), is_read_only=True) is None
    monkeypatch.setattr("os.access", lambda path, mode: False)  # noqa: ARG005 - as it is called
    assert control_of(folder, FakeClock()) is None


def test_a_run_that_cannot_be_scored_says_why(tmp_path: Path) -> None:
    control = FolderCommandSender(RunFolder(tmp_path / "r1"), FakeClock())
    with pytest.raises(CommandFailed, match="r1"):
        asyncio.run(control.score())
    control.close()


def test_nothing_else_in_the_monitor_writes_requests() -> None:
    found = {
        path.relative_to(TUI).as_posix()
        for path in TUI.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom)
        and node.module == "store.control"
        and WRITERS.intersection(name.name for name in node.names)
    }
    assert found == {"control/commands.py"}
