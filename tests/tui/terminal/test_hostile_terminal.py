"""On a real terminal, no byte of what models wrote steers it."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from tests.terminals import on_terminal

ROOT = Path(__file__).resolve().parents[3]
TITLE = "␛]0;pwned␇".encode()
PROMPT = "␛]52;c;cHduZWQ=␇<009B>2J␛[2Jpwned-c1".encode()
LEFT = b"\x1b[?1049l"
"""The screen that was there before is shown again."""


def test_escape_sequences_of_tasks_reach_the_terminal_as_pictures() -> None:
    words = ("TERM=xterm-256color", sys.executable, "-m", "tests.tui.hostile_app")
    with on_terminal(words, cwd=ROOT) as terminal:
        terminal.read_until(TITLE)
        terminal.type(b"\r")
        # the first task's prompt, below its attempts
        shown = terminal.read_until(PROMPT)
        if shutil.which("less"):
            terminal.type(b"v")
            terminal.read_until(LEFT)
            # in the pager, which may have come with the same bytes
            terminal.shown = terminal.shown.partition(LEFT)[2]
            shown += terminal.read_until(PROMPT)
            terminal.shown = b""
            terminal.type(b"q")
            # on the screen that comes back
            shown += terminal.read_until(PROMPT)
            terminal.shown = b""
        terminal.type(b"\x11")
        shown += terminal.read_until(LEFT)
    assert TITLE in shown
    assert PROMPT in shown
    assert b"\x1b]0;pwned" not in shown
    assert b"\x1b]52;" not in shown
    assert "\u009b".encode() not in shown
