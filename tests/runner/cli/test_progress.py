"""How often what takes long says how far it is."""

from __future__ import annotations

import io
import sys

import pytest

from runner.cli.console import ERASE
from runner.cli.progress import PLAIN_S, TERMINAL_S, paced_progress
from tests.store.memory_log import FakeClock


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("stderr", "pause", "said"),
    [
        (io.StringIO(), PLAIN_S, "b␛[2J\nd\n"),
        (Terminal(), TERMINAL_S, f"{ERASE}b␛[2J{ERASE}d{ERASE}"),
    ],
    ids=["file", "terminal"],
)
def test_only_lines_that_are_due_are_shown(
    monkeypatch: pytest.MonkeyPatch, stderr: io.StringIO, pause: float, said: str
) -> None:
    monkeypatch.setattr(sys, "stderr", stderr)
    clock = FakeClock()
    with paced_progress(clock) as show:
        show("a")
        clock.advance(pause)
        show("b\x1b[2J")
        show("c")
        clock.advance(pause)
        show("d")
    assert stderr.getvalue() == said
