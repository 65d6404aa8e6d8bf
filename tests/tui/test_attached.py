"""Monitors of a live run: all tell the same, and notice when its process is gone.

Real processes throughout; SIFTLOG_PROVE lets them watch for longer.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from store.clock import SystemClock
from store.database import open_reader
from store.events import TasksPlanned
from store.fold import Fold
from store.fold_state import RunState
from store.read.live import MinuteRow
from store.read.status import AttemptCounts, TaskCounts, status
from store.read.tasks import events
from store.read.usage import ErrorCount
from store.runs import RunFolder
from store.tables import payload
from store.task import TaskState, planned_tasks
from tests.bench.long_log import build
from tests.processes import siftlog, start
from tests.terminals import on_terminal
from tests.tui.looking import figures
from tui.sources.run_snapshot import RunSnapshot, RunSource

ROOT = Path(__file__).resolve().parents[2]
PROVE = "SIFTLOG_PROVE" in os.environ
SECONDS = 30 if PROVE else 2
LOOKING = 5 if PROVE else 2
"""Besides them there are a screen, plain lines and a status."""
SCREEN = "stty rows 30 columns 100; export TERM=xterm LANG=C.UTF-8"
BEFORE = 300
"""Tasks of the run before anybody looks."""
PAGE = 5000


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    folder = RunFolder(tmp_path / "runs" / "r1")
    build(folder, BEFORE)
    return folder


@contextmanager
def process(*words: object) -> Iterator[subprocess.Popen[str]]:
    """A module of these tests in a process of its own."""
    started = subprocess.Popen(
        [sys.executable, "-m", *map(str, words)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        yield started
    finally:
        started.kill()
        started.wait()
        for pipe in (started.stdin, started.stdout):
            if pipe is not None:
                pipe.close()


def is_ready(started: subprocess.Popen[str]) -> None:
    """Wait until it says so."""
    assert started.stdout is not None
    assert started.stdout.readline() == "ready\n"


def replayed(run: RunFolder, seqs: Sequence[int]) -> dict[int, dict[str, object]]:
    """The figures at some events, folded in memory from all events up to them."""
    fold = Fold(run=RunState(), tasks={})
    found, wanted, after = {}, set(seqs), 0
    with open_reader(run.log) as reader:
        while page := events(reader, after=after, limit=PAGE):
            for row in page:
                manifest = (
                    planned_tasks(payload(reader, row.seq) or b"")
                    if isinstance(row.event, TasksPlanned)
                    else ()
                )
                fold.apply(row.seq, row.ts_us, row.event, manifest)
                if row.seq in wanted:
                    found[row.seq] = folded(fold, row.seq)
            after = page[-1].seq
    return found


def folded(fold: Fold, seq: int) -> dict[str, object]:
    """The figures of a fold, through JSON as the others are."""
    lanes: dict[tuple[str, str], dict[TaskState, int]] = {}
    for (stage, model, state), n in fold.counts.items():
        lanes.setdefault((stage, model), {})[state] = n
    states = {
        state: sum(lane.get(state, 0) for lane in lanes.values()) for state in TaskState
    }
    counters = fold.counters
    said = figures(
        seq=seq,
        tasks=TaskCounts(
            planned=fold.run.tasks,
            completed=states[TaskState.COMPLETED],
            failed=states[TaskState.FAILED],
            skipped=states[TaskState.SKIPPED],
            open=sum(n for state, n in states.items() if state.is_open),
            running=states[TaskState.RUNNING],
            waiting=states[TaskState.WAITING],
            unparsed=counters["tasks_unparsed"],
        ),
        attempts=AttemptCounts(
            started=counters["attempts_started"],
            answered=counters["attempts_answered"],
            cached=counters["answers_cached"] - counters["answers_kept"],
            reused=counters["answers_kept"],
            failed=counters["attempts_failed"],
            unknown=counters["attempts_unknown"],
        ),
        lanes=lanes,
        tokens=(counters["tokens_in"], counters["tokens_out"]),
        errors=[
            ErrorCount(
                error=error,
                stage=stage,
                model=model,
                n=seen.n,
                final=seen.final,
                last_seq=seen.last_seq,
                sample_task=seen.sample_task,
            )
            for (error, stage, model), seen in fold.errors.items()
        ],
        minutes=[
            MinuteRow(
                t=t,
                stage=stage,
                model=model,
                started=minute.started,
                succeeded=minute.succeeded,
                failed=minute.failed,
                retried=minute.retried,
                tokens_in=minute.tokens_in,
                tokens_out=minute.tokens_out,
                cost_usd=0.0,
            )
            for (stage, model, t), minute in fold.minutes.items()
        ],
    )
    as_json: dict[str, object] = json.loads(json.dumps(said))
    return as_json


@pytest.mark.timeout(60 + 2 * SECONDS)
def test_five_monitors_of_a_live_run_agree_with_its_replay(run: RunFolder) -> None:
    cwd = run.path.parent.parent
    with ExitStack() as stack:
        screen = stack.enter_context(
            on_terminal([f"{SCREEN}; SIFTLOG watch r1"], cwd=cwd)
        )
        looking = [
            stack.enter_context(process("tests.tui.looking", run.path))
            for _ in range(LOOKING)
        ]
        for each in looking:
            is_ready(each)
        writer = stack.enter_context(
            process("tests.bench.live_writer", run.log, 1000, SECONDS)
        )
        is_ready(writer)
        plain = start("watch", "r1", "--plain", cwd=cwd)
        assert writer.wait() == 0
        asked = json.loads(siftlog("status", "r1", "--json", cwd=cwd).stdout)
        assert plain.wait() == 0  # nobody works on it any more
        told = (cwd / "out.txt").read_text("ascii").splitlines()[-1]
        said = []
        for each in looking:
            said += [json.loads(line) for line in each.communicate()[0].splitlines()]
        last = max(said, key=lambda each: each["seq"])
        screen.read_until(f"event {last['seq']:,}".encode())
    assert len({each["seq"] for each in said}) > LOOKING
    truth = replayed(run, [each["seq"] for each in said])
    for each in said:
        assert each == truth[each["seq"]]
    tasks = asked["tasks"]
    assert last["tasks"] == [
        tasks[name] for name in ("planned", "completed", "failed", "open")
    ]
    done = tasks["completed"] + tasks["failed"]
    assert f", {done:,} of " in told
    assert f" done; {tasks['failed']:,} failed" in told


class SetClock(SystemClock):
    """The machine's clock, or what it is set to."""

    set_us: int | None = None

    def now_us(self) -> int:
        """Wall clock, microseconds since 1970-01-01 UTC."""
        return super().now_us() if self.set_us is None else self.set_us


def test_a_process_that_is_killed_is_lost_at_once_and_one_that_hangs_in_15_s(
    run: RunFolder,
) -> None:
    clock = SetClock()

    def state() -> str:
        sight = source.poll()
        assert isinstance(sight, RunSnapshot)
        return sight.state

    with (
        process("tests.bench.live_writer", run.log, 100, 60) as writer,
        RunSource(run, clock) as source,
        on_terminal(
            [f"{SCREEN}; SIFTLOG watch r1"],
            cwd=run.path.parent.parent,
        ) as terminal,
    ):
        is_ready(writer)
        assert state() == "live"
        terminal.read_until(b"live")
        writer.send_signal(signal.SIGSTOP)
        os.waitpid(writer.pid, os.WUNTRACED)
        with open_reader(run.log) as reader:
            beat = status(reader).heartbeat
        assert beat is not None
        # what it had committed by then is seen, and then nothing any more
        states = []
        for silent_s in (4, 12, 16):
            clock.set_us = beat.at_us + silent_s * 1_000_000
            states.append(state())
        assert states == ["quiet", "quiet", "lost"]
        assert not source.poll().is_ended  # it holds the log, and may go on
        clock.set_us = None
        writer.kill()
        writer.wait()
        assert state() == "lost"
        assert source.poll().is_ended
        assert b"siftlog resume r1" in terminal.read_until(b"siftlog resume r1")
