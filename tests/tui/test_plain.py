"""A run as plain lines: when one is said, and that nothing in it steers a terminal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from store.database import WriterLock
from store.errors import StoreError
from store.events import RunFinished
from store.runs import RunFolder
from tests.processes import environment
from tests.replacing import replace
from tests.runner.toy_jobs import LoopClock, run_virtual
from tests.store.logs import COURSE, written
from tests.terminals import WATCH, on_terminal
from tests.tui.sights import (
    HOSTILE,
    FakeSource,
    every_state,
    later,
    snapshot,
    with_signs,
    with_status,
)
from tui.plain import PlainReporter, follow, line_of
from tui.sources.run_snapshot import ReadProblem, SnapshotOrProblem


def test_a_line_is_said_every_half_minute_and_with_every_change(tmp_path: Path) -> None:
    live = snapshot(tmp_path / "r1")
    paused = with_signs(live, paused_by="ops")
    teller = PlainReporter()
    seen = [(0, live), (1, live), (29, live), (30, live), (31, paused), (32, live)]
    seen += [(61, live), (62, live)]
    said = [now for now, sight in seen if list(teller.lines(sight, float(now)))]
    assert said == [0, 30, 31, 32, 62]


def test_every_line_is_ascii_whatever_a_run_is_called(tmp_path: Path) -> None:
    for state, seen in every_state(tmp_path / "r1"):
        hostile = with_status(seen, run_id=HOSTILE, why=HOSTILE)
        line = line_of(hostile)
        assert line.isascii()
        assert line.isprintable()
        assert f" {state}: " in line
        assert line.startswith("2026-01-01T00:0")


def test_a_line_says_the_pace_and_the_end(tmp_path: Path) -> None:
    live = snapshot(tmp_path / "r1")
    assert line_of(live) == (
        "2026-01-01T00:00:00Z r1 live: 19.0 %, 2 of about 10 done; 1 failed; "
        "1 running; 1 waiting; 4 failures in 10 min; left 1 s (at least 0 s); "
        "cost $0.7500"
    )
    assert "left" not in line_of(with_signs(live, phase="run_finished"))


def test_it_goes_on_until_nobody_works_on_the_run(tmp_path: Path) -> None:
    live = snapshot(tmp_path / "r1")
    sights: list[SnapshotOrProblem] = [later(live, s) for s in range(70)]
    sights.append(with_signs(live, phase="run_finished"))
    said: list[str] = []
    source = FakeSource(sights)

    run_virtual(follow(source, LoopClock(), said.append))
    assert [line.split()[2] for line in said][-1] == "finished:"
    assert source.looks == 71


def test_a_log_that_goes_away_ends_it_with_the_sentence(tmp_path: Path) -> None:
    source = FakeSource([snapshot(tmp_path / "r1"), ReadProblem(sentence="it is gone")])
    said: list[str] = []
    with pytest.raises(StoreError, match="it is gone"):
        run_virtual(follow(source, LoopClock(), said.append))
    assert len(said) == 1


def test_a_process_that_died_is_told_and_ends_it(tmp_path: Path) -> None:
    dead = replace(later(snapshot(tmp_path / "r1"), 60), is_alive=False)
    said: list[str] = []
    run_virtual(follow(FakeSource([dead]), LoopClock(), said.append))
    assert "siftlog resume r1" in said[0]


@pytest.fixture
def runs_dir(tmp_path: Path) -> Path:
    folder = RunFolder(tmp_path / "runs" / "r1")
    folder.path.mkdir(parents=True)
    ended = RunFinished(completed=2, failed=1, skipped=1)
    written(folder.log, *COURSE[:-1], [ended])
    return folder.path.parent


def test_without_a_terminal_it_prints_lines(runs_dir: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WATCH, "r1"],
        cwd=runs_dir.parent,
        env=environment(None) | {"PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert done.stderr == b""
    assert done.stdout.count(b"\n") == 1
    assert b" r1 finished: " in done.stdout
    assert done.stdout.isascii()


def test_on_a_terminal_plain_sends_no_control_codes(runs_dir: Path) -> None:
    words = ("--plain", "--runs-dir", runs_dir)
    line = " ".join(
        map(str, (sys.executable, "-c", f"'{WATCH}'", *words, "; echo end"))
    )
    with on_terminal(
        [f"export PYTHONPATH={':'.join(sys.path)};", line], cwd=runs_dir
    ) as terminal:
        shown = terminal.read_until(b"end\r\n")
    assert b"finished" in shown
    assert b"\x1b" not in shown
    assert shown.replace(b"\r\n", b"").isascii()


def test_a_person_who_leaves_sees_no_traceback(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "runs" / "r1")
    folder.path.mkdir(parents=True)
    written(folder.log, *COURSE[:-1])
    lock = WriterLock(folder.lock)
    lock.acquire()
    line = f"{sys.executable} -c '{WATCH}' --plain; echo left with $?"
    with on_terminal(
        [f"export PYTHONPATH={':'.join(sys.path)};", line], cwd=tmp_path
    ) as terminal:
        terminal.read_until(b" lost: ")
        terminal.type(b"\x03")
        shown = terminal.read_until(b"left with 0\r\n")
    lock.release()
    assert b"left with 0" in shown
    assert b"Traceback" not in shown
