"""The real command on a real terminal: what it sends, and what it leaves behind."""

from __future__ import annotations

import json
import re
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from store.control import Command, send_command
from store.events import (
    CommandRejected,
    LimitObserved,
    RunFinished,
    RunPaused,
    TaskFailed,
)
from store.runs import RunFolder
from tests.replacing import replace
from tests.store.logs import COURSE, written
from tests.store.samples import RUN_STARTED, failed, plan, started, task
from tests.terminals import WATCH, Terminal, on_terminal
from tests.tui.sights import HOSTILE

ATTACK = HOSTILE[HOSTILE.index("\x1b") :]
"""What no column is too narrow for."""
PICTURE = "␛]0;".encode()
"""What is shown of it."""


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path / "runs" / "r1")
    folder.path.mkdir(parents=True)
    odd = {"stage": ATTACK, "model": ATTACK, "key": ATTACK}
    hostile = (
        [plan([task(6, key=HOSTILE), task(7, **odd)], first=6)],
        [started(6), failed(6, message=HOSTILE)],
        [started(7), failed(7, error=ATTACK, message=HOSTILE, retry_in_s=None)],
        [TaskFailed(task=7, attempt=1, error=ATTACK)],
        [LimitObserved(model=ATTACK, concurrency=8, in_flight=0)],
        [RunPaused(by=ATTACK, paused=True, stage=ATTACK)],
        [CommandRejected(command="c9", kind=ATTACK, author=ATTACK, reason=HOSTILE)],
    )
    settings = json.dumps({ATTACK: ATTACK})
    written(
        folder.log,
        [replace(RUN_STARTED, job=ATTACK, job_version=HOSTILE, settings=settings)],
        *COURSE[1:-1],
        *hostile,
        [RunFinished(completed=2, failed=1, skipped=1)],
    )
    asked = Command(id=ATTACK, author=ATTACK, host=ATTACK, at_us=0, kind=ATTACK)
    send_command(folder, asked)
    return folder


@contextmanager
def monitor(
    run: RunFolder,
    *,
    term: str = "xterm-256color",
    before: str = "",
    code: str = WATCH,
    after: str = "; echo left with $?; stty -a",
    variables: str = "",
) -> Iterator[Terminal]:
    """The monitor of one run on a terminal of 120 by 40."""
    path = ":".join(sys.path)
    lines = [
        f"export PYTHONPATH={path} LANG=C.UTF-8 TERM={term} {variables};",
        f"stty rows 40 columns 120; {before}",
        f"{sys.executable} -c '{code}' r1 {after}",
    ]
    with on_terminal(lines, cwd=run.path.parent.parent) as terminal:
        yield terminal


MODES = re.compile(rb"\x1b\[\?(\d+)([hl])")
ESCAPES = re.compile(
    rb"\x1b(?:\][^\x07\x1b]*(?:\x07|\x1b\\\\)|\[[0-?]*[ -/]*[@-~]|[@-Z\\-_])"
)


def left_on(shown: bytes) -> set[bytes]:
    """The modes of the terminal that were changed and not set back."""
    modes = dict(MODES.findall(shown))
    # a terminal shows its cursor and wraps its lines
    usual = {b"25": b"h", b"7": b"h"}
    return {mode for mode, at in modes.items() if at != usual.get(mode, b"l")}


#: Of the screens, by the key that leads to each: what one left is still being sent.
HEADINGS = {
    b"t": b"TASKS",
    b"e": b"EVENTS",
    b"a": b"COMMANDS LOG",
    b"i": b"CONFIG",
    b"1": b"RUNS",
}


def test_nothing_of_a_hostile_text_steers_the_terminal_and_q_leaves_it_as_it_was(
    run: RunFolder,
) -> None:
    before = {path: path.read_bytes() for path in run.path.iterdir()}
    with monitor(run) as terminal:
        terminal.read_until(b"Overloaded")
        terminal.read_until(b"as of")
        for key, heading in HEADINGS.items():
            at = len(terminal.shown)
            terminal.type(key)
            terminal.read_until(heading, after=at)
            terminal.read_until(PICTURE, after=at)
        terminal.type(b"q")
        shown = terminal.read_until(b"left with 0")
        shown = terminal.read_until(b"echo")
    assert b"]0;owned\x07" not in shown
    assert "\u202e".encode() not in shown
    assert "\u200b".encode() not in shown
    assert b"[/INST]" in shown
    assert b"\x1b[?1049h" in shown
    assert not left_on(shown)
    assert b"Traceback" not in shown
    kept = {path: path.read_bytes() for path in run.path.iterdir()}
    assert {path: kept[path] for path in before} == before


def test_keys_that_are_written_at_once_all_arrive(run: RunFolder) -> None:
    with monitor(run) as terminal:
        terminal.read_until(b"as of")
        for keys, shown in (
            (b"t/state:failed\r", b"item-2"),
            (b"1", b"RUNS"),
            (b"\rt?", b"closes"),
            (b"\x1bi", b"CONFIG"),
            (b"2te/kind:run_started\r", b"EVENTS"),
        ):
            at = len(terminal.shown)
            terminal.type(keys)
            terminal.read_until(shown, after=at)
        terminal.type(b"q")
        terminal.read_until(b"left with 0")


def test_a_storm_of_sizes_and_a_killing_signal_leave_no_trace(run: RunFolder) -> None:
    with monitor(run, before="exec", after="", term="screen-256color") as terminal:
        terminal.read_until(b"as of")
        for number in range(50):
            terminal.resize(60 + 7 * (number % 17), 15 + number % 31)
        for size, part in (
            ((165, 45), b"latency"),
            ((79, 23), b"needs a window of 80"),
            ((120, 40), b"latency"),
        ):
            at = len(terminal.shown)
            terminal.resize(*size)
            terminal.read_until(part, after=at)
        terminal.leader.send_signal(signal.SIGTERM)
        shown = terminal.read_until(b"\x1b[?1004l")
        assert terminal.leader.wait(20) == 128 + signal.SIGTERM
    assert not left_on(shown)
    assert b"Traceback" not in shown


def test_it_can_be_put_aside_and_taken_up_again(run: RunFolder) -> None:
    after = "; echo put aside; fg > /dev/null; echo left with $?"
    with monitor(run, before="set -m;", after=after, term="xterm") as terminal:
        terminal.read_until(b"as of")
        terminal.type(b"\x1a")
        shown = terminal.read_until(b"put aside")
        aside = shown.index(b"put aside")
        assert not left_on(shown[:aside])
        terminal.read_until(b"as of", after=aside)
        terminal.type(b"\x03")
        shown = terminal.read_until(b"left with 0")
    assert b"left with 0" in shown
    assert b"\x1b[?1049h" in shown[aside:]
    assert not left_on(shown)


def test_an_error_is_told_once_the_terminal_is_as_it_was(run: RunFolder) -> None:
    fails = "import tui.screens.run as r; r.RunScreen.poll = lambda self: 1 / 0; "
    with monitor(run, code=fails + WATCH) as terminal:
        shown = terminal.read_until(b"left with 1")
    assert b"left with 1" in shown
    told = shown[shown.rindex(b"\x1b[?1049l") :]
    assert told.count(b"ZeroDivisionError") == 1
    assert b"locals" not in told


def test_a_console_without_signs_or_colours_gets_neither(run: RunFolder) -> None:
    with monitor(run, term="linux", variables="NO_COLOR=1") as terminal:
        terminal.read_until(b"as of")
        terminal.type(b"q")
        shown = terminal.read_until(b"left with 0")
    text = ESCAPES.sub(b"", shown)
    assert text.isascii()
    assert b"\x1b" not in text
    styles = {
        code
        for style in re.findall(rb"\x1b\[([0-9;]*)m", shown)
        for code in style.split(b";")
    }
    # nothing, bold, dim, italic, underlined, reversed, the terminal's own colours
    assert styles <= {b"", b"0", b"1", b"2", b"3", b"4", b"7", b"39", b"49"}


def test_it_ends_with_its_terminal(run: RunFolder) -> None:
    with monitor(run, before="exec", after="") as terminal:
        terminal.read_until(b"as of")
        terminal.hang_up()
        assert terminal.leader.wait(20)
