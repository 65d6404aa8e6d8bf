"""Ctrl-C before a run listens to signals: exit 5, one sentence, nothing half made."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from runner.run.launch import RunSession
from runner.workload import load_workload
from tests.processes import environment, siftlog

HIT = """
import os, signal, sys
import importlib.abc
from runner.cli.main import main

def hit(text):
    sys.stderr.write("\\n")
    os.kill(os.getpid(), signal.SIGINT)

{place}
sys.argv = ["siftlog", "run", "paper-investigation", "--run-id=r"]
main()
"""
"""The command, which gets the signal itself at the place that is filled in."""

IMPORTING = """
class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == {module!r}:
            hit(name)
sys.meta_path.insert(0, Finder())
"""

CONVERTING = """
class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == "jobs.paper_investigation.job":
            try:
                hit(name)
                for _ in range(10 ** 7):
                    pass
            except KeyboardInterrupt as error:
                raise ImportError("the extension could not be loaded") from error
sys.meta_path.insert(0, Finder())
"""

CALLING = """
import {module} as module
real = module.{name}
def wrapped(*words, **more):
    hit("called")
    return real(*words, **more)
module.{name} = wrapped
"""

PLACES = {
    "import of a verb": IMPORTING.format(module="runner.cli.run"),
    "import of the job": IMPORTING.format(module="jobs.paper_investigation.job"),
    "import that converts": CONVERTING,
    "import of the engine": IMPORTING.format(module="runner.run.launch"),
    "loading of the inputs": CALLING.format(
        module=load_workload.__module__, name=load_workload.__name__
    ),
    "prices": CALLING.format(module="runner.run.launch", name="prices_of"),
    "configuration": CALLING.format(module="runner.run.folder", name="write_toml"),
    "opening of the log": CALLING.format(module="store.log.opening", name="prepare"),
    "first event": CALLING.format(module="runner.run.launch", name=RunSession.__name__),
}


@pytest.mark.parametrize("place", PLACES)
def test_an_interrupt_before_the_first_call_is_exit_5(
    place: str, tmp_path: Path
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", HIT.format(place=PLACES[place])],
        cwd=tmp_path,
        env=environment(None),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "Traceback" not in done.stderr
    assert done.returncode == 5, done.stderr
    assert done.stderr.splitlines()[-1] == "siftlog: Interrupted."
    log = tmp_path / "runs" / "r" / "log.db"
    if log.exists():
        assert siftlog("verify", "r", cwd=tmp_path, check=False).returncode == 0


def test_a_second_interrupt_while_the_process_ends_changes_nothing(
    tmp_path: Path,
) -> None:
    place = PLACES["loading of the inputs"] + (
        "import atexit\natexit.register(os.kill, os.getpid(), signal.SIGINT)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", HIT.format(place=place)],
        cwd=tmp_path,
        env=environment(None),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 5, done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.iterdir())
