"""Runs that outlive their terminal, and runs that are told of its end."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

from store.database import open_reader
from store.read.status import status as stand
from tests.corpus import write_corpus
from tests.processes import siftlog, simulated, status, until
from tests.terminals import on_terminal

JOB = "paper-investigation"


def _pid(cwd: Path) -> int:
    with open_reader(cwd / "runs" / "r" / "log.db") as reader:
        beat = stand(reader).heartbeat
    assert beat is not None
    return beat.pid


def test_a_detached_run_goes_on_when_its_terminal_is_closed(tmp_path: Path) -> None:
    corpus = write_corpus(tmp_path / "corpus", 30)
    with simulated("--latency-ms", 200, "--job", JOB, cwd=tmp_path) as url:
        words = ("run", JOB, *corpus, "--model=x", f"--base-url={url}", "--run-id=r")
        shell = ("SIFTLOG", *words, "--concurrency=4", "--detach; echo code $?; cat")
        with on_terminal(shell, cwd=tmp_path) as terminal:
            shown = terminal.read_until(b"code 0")
            assert b"Run r runs in the background" in shown
            assert b"siftlog drain r" in shown
            before = status(tmp_path, "r")
            assert before["state"] == "live"
            pid = _pid(tmp_path)
            assert os.getsid(pid) == pid
            assert Path(f"/proc/{pid}/fd/0").readlink() == Path(os.devnull)
            terminal.hang_up()
            assert terminal.leader.wait(20) != 0, (
                "the shell survived the end of its terminal"
            )
        done = before["tasks"]["completed"]
        until(tmp_path, "r", lambda s: s["tasks"]["completed"] > done + 20)
        siftlog("drain", "r", cwd=tmp_path)
        until(tmp_path, "r", lambda s: s["state"] == "drained")
        resumed = siftlog("resume", "r", "--detach", "--json", cwd=tmp_path)
        said = json.loads(resumed.stdout)
        assert (said["event"], said["run"], said["exit"]) == ("detached", "r", None)
        assert said["pid"] == _pid(tmp_path)
        until(tmp_path, "r", lambda s: s["state"] == "finished")
    log = (tmp_path / "runs" / "r" / "run.log").read_text()
    assert "continue with: siftlog resume r" in log
    assert "\x1b" not in log, "the log is no terminal"


def test_a_detached_run_that_cannot_be_says_so_at_once_and_leaves_nothing(
    tmp_path: Path,
) -> None:
    for words, code, said in (
        (("--bench=nowhere.jsonl",), 2, "needs --papers"),
        (("--model=openai/x",), 2, "set OPENAI_API_KEY"),
        (("--model=x", "--base-url=ftp://x"), 2, "ftp"),
        (("--nonsense=1",), 2, "nonsense"),
    ):
        done = siftlog(
            *("run", JOB, *words, "--run-id=r", "--detach"), cwd=tmp_path, check=False
        )
        assert done.returncode == code, done.stderr
        assert said in done.stderr
        assert not (tmp_path / "runs").exists()


def test_a_detached_run_that_is_over_at_once_is_told_with_its_exit_code(
    tmp_path: Path,
) -> None:
    done = siftlog("run", JOB, "--run-id=r", "--detach", "--json", cwd=tmp_path)
    said = json.loads(done.stdout)
    assert said["exit"] in {None, 0}
    until(tmp_path, "r", lambda s: s["scorings"] == [1])
    again = siftlog("run", JOB, "--run-id=r", "--detach", cwd=tmp_path, check=False)
    assert again.returncode == 2
    assert "There is a run 'r' already" in again.stderr


def test_a_run_whose_terminal_is_closed_drains_and_loses_nothing(
    tmp_path: Path,
) -> None:
    corpus = write_corpus(tmp_path / "corpus", 30)
    with simulated("--latency-ms", 300, "--job", JOB, cwd=tmp_path) as url:
        words = ("run", JOB, *corpus, "--model=x", f"--base-url={url}", "--run-id=r")
        shell = ("exec SIFTLOG", *words, "--concurrency=8")
        with on_terminal(shell, cwd=tmp_path) as terminal:
            until(tmp_path, "r", lambda s: s["tasks"]["running"] > 0)
            terminal.hang_up()
            # the shell's hang-up and the kernel's: one terminal, two signals
            terminal.leader.send_signal(signal.SIGHUP)
            terminal.leader.wait(30)
    end = status(tmp_path, "r")
    assert end["state"] == "drained"
    assert end["attempts"]["unknown"] == end["tasks"]["running"] == 0
    assert end["attempts"]["started"] == end["attempts"]["answered"] > 0
