"""What makes a scorecard again can open no socket and start nobody who could."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from runner.errors import RunnerError
from runner.registry import load_job
from runner.score.scoring import effective_settings, score_run
from tests.runner.bundle.conftest import Bundled, made
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
        assert "while a scorecard is made again" in str(error), (name, error)
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
        with pytest.raises(RunnerError, match=r"socket.* while a scorecard is made"):
            made(folder)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert not list(folder.exports.iterdir())
