"""What makes a scorecard again can open no socket and start nobody who could.

Bundles on the command line: made in one place, verified in another.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from runner.bundle.verify import check
from runner.cli.main import exit_code
from runner.errors import RunnerError
from runner.registry import load_job
from runner.score.scoring import effective_settings, score_run
from store.errors import ignore_progress
from tests.processes import siftlog
from tests.runner.bundle.conftest import Bundled, made
from tests.runner.bundle.forging import contents, forged
from tests.store.memory_log import FakeClock

TRIED = """
import _socket, asyncio, os, pty, socket, subprocess, sys, urllib.request
before = socket.socket()  # that sockets can be made here at all
from runner.bundle.verify import go_offline
go_offline()
ways = {
    "internet": lambda: socket.socket(),
    "version 6": lambda: socket.socket(socket.AF_INET6, socket.SOCK_DGRAM),
    "local": lambda: socket.socket(socket.AF_UNIX),
    "of C": lambda: _socket.socket(),
    "pair": lambda: socket.socketpair(),
    "one from before": lambda: before.connect(("127.0.0.1", 9)),
    "name": lambda: socket.getaddrinfo("localhost", 80),
    "loop": lambda: asyncio.run(asyncio.sleep(0)),
    "page": lambda: urllib.request.urlopen("http://127.0.0.1:9/"),
    "program": lambda: subprocess.run([sys.executable, "-c", "0"]),
    "shell": lambda: os.system("true"),
    "fork": lambda: os.fork(),
    "exec": lambda: os.execv(sys.executable, [sys.executable, "-c", "0"]),
    "spawn": lambda: os.posix_spawn(sys.executable, [sys.executable], {}),
    "terminal": lambda: pty.spawn(["true"]),
}
for name, way in ways.items():
    try:
        way()
    except OSError as error:
        assert "while a scorecard is recomputed" in str(error), (name, error)
    else:
        print(name)
before.close()
"""


def test_no_way_to_a_socket_is_left() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", TRIED],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout == ""


@pytest.mark.usefixtures("installed")
def test_a_job_that_asks_the_network_while_it_scores_cannot_be_bundled(
    bundled: Bundled, tmp_path: Path
) -> None:
    folder = bundled.copied(tmp_path)
    job = load_job("counting")
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(0)
        typed = {"port": [str(server.getsockname()[1])]}
        settings = effective_settings(job, folder, typed)
        asyncio.run(
            score_run(
                job, folder, settings, clock=FakeClock(), record=True, report=False
            )
        )
        server.accept()[0].close()  # a scoring of every day goes out
        with pytest.raises(RunnerError, match=r"socket.* while a scorecard is rec"):
            made(folder)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert not list(folder.exports.iterdir())


def test_a_bundle_is_verified_where_nothing_else_of_the_run_is(
    bundled: Bundled, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    copy = shutil.copy(bundled.path, elsewhere / "from a friend.zip")
    data, away = bundled.cwd / "data", bundled.cwd / "away"
    data.rename(away)
    try:
        words = ("verify", copy, "--json")
        done = siftlog(*words, cwd=elsewhere, env=bundled.environment)
    finally:
        away.rename(data)
    said = json.loads(done.stdout)
    told = {"run": "r", "scoring": 1, "sound": True, "rebuilt": True, "partial": False}
    same = {name: bundled.said[name] for name in ("digest", "head", "events")}
    assert said.items() >= (told | same | {"differs": [], "faults": []}).items()
    assert [path.name for path in elsewhere.iterdir()] == ["from a friend.zip"]


def test_what_bundle_says_of_its_file_is_so(bundled: Bundled) -> None:
    assert bundled.said["file"] == "runs/r/exports/r.1.siftlog.zip"
    assert bundled.said["bytes"] == bundled.path.stat().st_size
    assert bundled.said["members"] == len(contents(bundled.path))
    assert (bundled.said["run"], bundled.said["partial"]) == ("r", False)


def test_a_bundle_with_a_fault_ends_with_6_and_the_place(
    bundled: Bundled, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = forged(
        bundled.path,
        tmp_path / "x.zip",
        lambda members: members.update({"scores/1/scorecard.json": b"{}"}),
    )
    assert exit_code(["verify", str(path)]) == 6
    said = capsys.readouterr()
    assert said.err == (
        "siftlog: x.zip: scores/1/scorecard.json: is not what scoring 1 recorded\n"
    )
    assert said.out == ""


def test_a_run_goes_before_a_file_of_the_same_name(
    bundled: Bundled,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "r").write_text("of no matter")
    monkeypatch.chdir(tmp_path)
    assert exit_code(["verify", "r", "--runs-dir", str(bundled.cwd / "runs")]) == 0
    assert capsys.readouterr().out.startswith("r is sound")
    assert exit_code(["verify", "r"]) == 6
    assert capsys.readouterr().err.startswith("siftlog: r: its end: is not that of")


def test_a_job_that_is_not_installed_is_the_reason_that_is_told(
    bundled: Bundled,
) -> None:
    (fault,) = check(bundled.path, ignore_progress).faults
    assert fault.where == "scores/1/scorecard.json"
    assert fault.message.startswith("cannot be recomputed: There is no job 'counting'")
