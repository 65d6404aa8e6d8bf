"""Steering a real run from a second process; its own log tells what took effect.

That it does so within a second is tested on a virtual clock, where it cannot depend on
the machine (`tests/runner/run/test_control.py`).
"""

from __future__ import annotations

import json
import math
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from store.database import open_reader
from store.read.tasks import events
from store.runs import RunFolder
from tests.corpus import write_corpus
from tests.gates import Gate, gated
from tests.processes import Process, siftlog, simulated, start, status, until
from tests.terminals import on_terminal

JOB = "paper-investigation"
MIDDLE = 60
"""Requests after which a run is kept in its middle."""


class Live:
    """A run that goes on in another process."""

    def __init__(self, cwd: Path, gate: Gate, process: Process) -> None:
        self.cwd = cwd
        self.gate = gate
        self.folder = RunFolder(cwd / "runs" / "r")
        self.process = process

    def say(self, *words: object, check: bool = True) -> dict[str, Any]:
        """A verb with --json; its last line."""
        done = siftlog(*words, "--json", cwd=self.cwd, check=check)
        return json.loads(done.stdout.splitlines()[-1])

    def until(self, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait for a state of the run."""
        return until(self.cwd, "r", holds)

    def places(self, kind: str) -> list[int]:
        """Where in the log events of a kind are."""
        with open_reader(self.folder.log) as reader:
            return [r.seq for r in events(reader, limit=100_000, kinds=[kind])]


@contextmanager
def _live(
    cwd: Path,
    *words: object,
    papers: int = 160,
    latency_ms: int = 150,
    passes: float = math.inf,
) -> Iterator[Live]:
    """A run long enough to be still alive when a slow machine has said its verbs."""
    corpus = write_corpus(cwd / "corpus", papers)
    with (
        simulated("--latency-ms", latency_ms, "--job", JOB, cwd=cwd) as url,
        gated(url, passes=passes) as gate,
    ):
        engine = (f"--base-url={gate.url}", "--concurrency=8", "--run-id=r", *words)
        process = start("run", JOB, *corpus, *engine, cwd=cwd)
        live = Live(cwd, gate, process)
        try:
            live.until(lambda s: s["tasks"]["completed"] >= 20)
            yield live
        finally:
            process.kill()
            process.wait()


def test_a_pause_from_a_second_process_stops_the_run_and_a_resume_lifts_it(
    tmp_path: Path,
) -> None:
    with _live(tmp_path, "--model=x", papers=25, passes=MIDDLE) as live:
        dry = live.say("pause", "r", "--dry-run")
        assert dry["tasks"] > 0
        said = live.say("pause", "r")
        assert said["answer"] == "applied"
        live.gate.open()
        stands = live.until(lambda s: s["tasks"]["running"] == 0)
        assert stands["state"] == "paused"
        assert [pause["stage"] for pause in stands["pauses"]] == [None]
        time.sleep(1)
        assert max(live.places("attempt_started")) < live.places("command_applied")[0]
        assert live.process.poll() is None, "a paused run stays alive"
        assert live.say("pause", "r", "--dry-run")["in_flight"] == 0
        assert live.say("resume", "r")["answer"] == "applied"
        assert live.process.wait() == 0
        applied = live.places("command_applied")[1]
        assert max(live.places("attempt_started")) > applied
    end = status(tmp_path, "r")["tasks"]
    assert end["completed"] == end["planned"] > 150


def test_one_model_is_held_back_while_the_other_goes_on(tmp_path: Path) -> None:
    def started(stands: dict[str, Any], model: str) -> int:
        return sum(
            lane["completed"] + lane["running"]
            for lane in stands["stages"]
            if lane["model"] == model
        )

    with _live(tmp_path, "--model=x", "--model=y") as live:
        live.say("pause", "r", "--model=y")
        time.sleep(1)
        before = status(tmp_path, "r")
        assert before["state"] == "live"
        later = live.until(lambda s: started(s, "x") > started(before, "x") + 20)
        assert started(later, "y") == started(before, "y")
        refused = live.say("pause", "r", "--model=z", check=False)
        assert refused["answer"] == "rejected"
        assert "use x, y" in refused["said"]
        wrong = siftlog("resume", "r", "--model=x", cwd=tmp_path, check=False)
        assert wrong.returncode == 1
        assert "model y" in wrong.stderr
        siftlog("resume", "r", "--model=y", cwd=tmp_path)
        live.until(lambda s: started(s, "y") > started(before, "y") + 20)


def test_limits_are_shown_and_set_and_hold_after_a_kill(tmp_path: Path) -> None:
    with _live(tmp_path, "--model=x") as live:
        assert live.say("limits", "r")["concurrency"] == 8
        said = live.say("limits", "r", "--concurrency=2", "--rpm=6000")
        assert said["answer"] == "applied"
        live.until(lambda s: s["limits"][0]["concurrency"] == 2)
        live.until(lambda s: s["tasks"]["running"] <= 2)
        live.process.kill()
        live.process.wait(20)
        resumed = start("resume", "r", cwd=tmp_path)
        # until then the killed process may still look alive, and drain goes to it
        live.until(lambda _: bool(live.places("run_resumed")))
        shown = live.until(lambda s: s["state"] == "live")
        assert (shown["limits"][0]["concurrency"], shown["limits"][0]["rpm"]) == (
            2,
            6000,
        )
        siftlog("drain", "r", cwd=tmp_path)
        assert resumed.wait(30) == 5
        # limits of its own: those count
        resumed = start("resume", "r", "--concurrency=5", cwd=tmp_path)
        live.until(lambda s: s["limits"][0]["concurrency"] == 5)
        siftlog("drain", "r", cwd=tmp_path)
        assert resumed.wait(30) == 5


def test_a_retry_is_taken_up_by_the_live_run(tmp_path: Path) -> None:
    with _live(tmp_path, "--model=x", papers=25, passes=MIDDLE) as live:
        dry = live.say("retry", "r", "--filter", "state:completed", "--dry-run")
        assert dry["tasks"] >= 20
        said = live.say("retry", "r", "--filter", "state:completed stage:extract")
        assert said["answer"] == "applied"
        (reopened,), (applied,) = map(
            live.places, ("tasks_reopened", "command_applied")
        )
        assert reopened < applied
        live.gate.open()
        assert live.process.wait() == 0
    with open_reader(live.folder.log) as reader:
        (event,) = events(reader, kinds=["tasks_reopened"])
        again = {
            r.event.task
            for r in events(reader, limit=100_000, kinds=["attempt_started"])
            if r.event.attempt == 2
        }
    assert again == set(event.event.tasks)


@pytest.mark.parametrize("words", [(), ("--now",)])
def test_a_cancelled_run_skips_what_is_open_can_be_scored_and_brought_back(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    with _live(tmp_path, "--model=x", "--price=1,1", papers=50, latency_ms=400) as live:
        assert live.say("cancel", "r", "--dry-run")["in_flight"] > 0
        assert live.say("cancel", "r", *words)["answer"] == "applied"
        assert live.process.wait(30) == 5
        assert (
            "siftlog retry r --reason cancelled" in (tmp_path / "err.txt").read_text()
        )
        end = status(tmp_path, "r")
        assert end["state"] == "cancelled"
        assert end["tasks"]["open"] == end["attempts"]["unknown"] == 0
        assert end["skips"]["cancelled"] == end["tasks"]["skipped"] > 0
        assert (end["errors"].get("Cancelled", 0) > 0) == bool(words)
        assert (end["possible_usd"] > 0) == bool(words), "a cut call may be billed"
        assert max(live.places("attempt_started")) < live.places("command_applied")[0]
        siftlog("score", "r", cwd=tmp_path)
        refused = siftlog("resume", "r", cwd=tmp_path, check=False)
        assert refused.returncode == 2
        assert "retry r --reason cancelled" in refused.stderr
        siftlog("retry", "r", "--reason=cancelled", cwd=tmp_path)
        siftlog("resume", "r", "--concurrency=64", cwd=tmp_path)
    end = status(tmp_path, "r")
    assert end["state"] == "finished"
    assert end["tasks"]["completed"] == end["tasks"]["planned"] > 150
    assert end["skips"] == {}


def test_without_a_live_process_some_requests_wait_and_others_are_refused(
    tmp_path: Path,
) -> None:
    with _live(tmp_path, "--model=x") as live:
        siftlog("drain", "r", cwd=tmp_path)
        live.process.wait(30)
        for verb in ("pause", "drain"):
            refused = siftlog(verb, "r", cwd=tmp_path, check=False)
            assert refused.returncode == 2
            assert f"nothing to {verb}" in refused.stderr
        for words in (
            ("limits", "r", "--concurrency=3"),
            ("retry", "r", "--filter=state:completed"),
            ("cancel", "r"),
        ):
            said = siftlog(*words, cwd=tmp_path)
            assert "`siftlog resume r` applies the command" in said.stderr
        siftlog("limits", "r", "--rpm=1", cwd=tmp_path)
        *_, slip = siftlog("commands", "r", cwd=tmp_path).stdout.splitlines()
        assert slip.endswith("limits rpm 1.0  waiting")
        for dry in (["--dry-run"], []):
            said = siftlog("commands", "r", "--withdraw", slip[:8], *dry, cwd=tmp_path)
        assert "`siftlog resume r` applies the command" in said.stderr
        again = siftlog("commands", "r", "--withdraw=x", cwd=tmp_path, check=False)
        assert again.returncode == 2
        assert "No pending commands of r match 'x'" in again.stderr
        resumed = siftlog("resume", "r", cwd=tmp_path, check=False)
        assert resumed.returncode == 5
        assert "Waiting was limits (by " in resumed.stderr
        assert ": withdrawn by " in resumed.stderr
        assert ": every model: at most 3 calls at a time.\n" in resumed.stderr
        assert " tasks reopened.\n" in resumed.stderr
    with open_reader(live.folder.log) as reader:
        applied = events(reader, kinds=["command_applied"])
    assert len(applied) == 5
    assert status(tmp_path, "r")["state"] == "cancelled"
    assert status(tmp_path, "r")["tasks"]["completed"] == 0


def test_on_a_terminal_a_cancel_asks_whether_it_is_meant(tmp_path: Path) -> None:
    with _live(tmp_path, "--model=x") as live:
        words = ("SIFTLOG cancel r; echo code $?",)
        with on_terminal(words, cwd=tmp_path) as terminal:
            assert b"would be skipped" in terminal.read_until(b"[y/N]")
            terminal.type(b"n\n")
            assert b"code 5" in terminal.read_until(b"code")
        assert not live.folder.control.exists()
        with on_terminal(words, cwd=tmp_path) as terminal:
            terminal.read_until(b"[y/N]")
            terminal.type(b"y\n")
            assert b"code 0" in terminal.read_until(b"code 0")
        assert live.process.wait(30) == 5
    again = siftlog("cancel", "r", cwd=tmp_path, check=False)
    assert again.returncode == 2
    assert "is cancelled; there is nothing to cancel" in again.stderr


def test_the_line_of_progress_says_what_is_paused_and_by_whom(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus", 20)
    with simulated("--latency-ms", 200, "--job", JOB, cwd=tmp_path) as url:
        words = ("run", JOB, *corpus, "--model=x", f"--base-url={url}", "--run-id=r")
        with on_terminal(
            ("exec SIFTLOG", *words, "--concurrency=2"), cwd=tmp_path
        ) as terminal:
            assert b" done" in terminal.read_until(b" done")
            siftlog("pause", "r", "--stage=question", cwd=tmp_path)
            said = b"paused: stage question (by "
            assert said in terminal.read_until(said)


def test_what_was_decided_on_another_state_is_refused(tmp_path: Path) -> None:
    with _live(tmp_path, "--model=x") as live:
        done = siftlog("cancel", "r", "--if-state=paused", cwd=tmp_path, check=False)
        assert done.returncode == 1
        assert "is now live, not paused; no command was sent" in done.stderr
        assert not live.folder.control.exists()
        assert live.say("pause", "r", "--if-state=live")["answer"] == "applied"


def test_a_stopped_process_is_not_called_alive_and_does_not_answer(
    tmp_path: Path,
) -> None:
    with _live(tmp_path, "--model=x") as live:
        live.process.send_signal(signal.SIGSTOP)
        live.until(lambda s: s["state"] == "quiet")
        said = siftlog("pause", "r", cwd=tmp_path)
        assert "The run has not answered (heartbeat" in said.stderr
        assert "the command stays queued" in said.stderr
        live.process.send_signal(signal.SIGCONT)
        live.until(lambda s: s["state"] == "paused")
