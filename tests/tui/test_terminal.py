"""The real command on a real terminal: what it sends, and what it leaves behind."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from store.events import RunFinished
from store.runs import RunFolder
from tests.store.logs import COURSE, written
from tests.store.samples import failed, plan, started, task
from tests.terminals import Terminal, on_terminal
from tests.tui.sights import HOSTILE

WATCH = "import sys; from tui.cli import watch; sys.exit(watch.main(standalone_mode=0))"


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path / "runs" / "r1")
    folder.path.mkdir(parents=True)
    hostile = (
        [plan([task(6, key=HOSTILE)], first=6)],
        [started(6), failed(6, message=HOSTILE)],
    )
    written(
        folder.log,
        *COURSE[:-1],
        *hostile,
        [RunFinished(completed=2, failed=1, skipped=1)],
    )
    return folder


@contextmanager
def monitor(run: RunFolder) -> Iterator[Terminal]:
    """The monitor of one run on a terminal of 120 by 40."""
    path = ":".join(sys.path)
    size = "stty rows 40 columns 120"
    words = f"{sys.executable} -c '{WATCH}' r1; echo left with $?; stty -a"
    lines = [
        f"export PYTHONPATH={path} LANG=C.UTF-8 TERM=xterm-256color; {size};",
        words,
    ]
    with on_terminal(lines, cwd=run.path.parent.parent) as terminal:
        yield terminal


def test_nothing_of_a_hostile_text_steers_the_terminal_and_q_leaves_it_as_it_was(
    run: RunFolder,
) -> None:
    before = {path: path.read_bytes() for path in run.path.iterdir()}
    with monitor(run) as terminal:
        shown = terminal.read_until(b"Overloaded")
        terminal.read_until(b"as of")
        terminal.type(b"q")
        shown = terminal.read_until(b"left with 0")
        shown = terminal.read_until(b"echo")
    assert b"]0;owned\x07" not in shown
    assert "\u202e".encode() not in shown
    assert b"[/INST]" in shown
    assert b"\x1b[?1049h" in shown
    assert shown.rindex(b"\x1b[?1049l") > shown.rindex(b"\x1b[?1049h")
    assert b"Traceback" not in shown
    kept = {path: path.read_bytes() for path in run.path.iterdir()}
    assert {path: kept[path] for path in before} == before
