"""One run of a toy job, and its bundle."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from runner.bundle.pack import Bundle, make_bundle
from store.errors import ignore_progress
from store.runs import RunFolder
from tests.plugging import plugged
from tests.processes import siftlog


@dataclass(frozen=True)
class Bundled:
    """A folder with a run `r` and its bundle."""

    cwd: Path
    environment: dict[str, str]  #: in which the job is installed
    said: dict[str, Any]  #: by `siftlog bundle --json`

    @property
    def path(self) -> Path:
        return self.cwd / self.said["file"]

    def copied(self, runs: Path) -> RunFolder:
        """A run of its own to be changed, without the bundle."""
        copy = shutil.copytree(
            self.cwd / "runs/r", runs / "r", ignore=shutil.ignore_patterns("exports")
        )
        return RunFolder(copy)


def made(
    folder: RunFolder, out: Path | None = None, number: int | None = None, **keys: str
) -> Bundle:
    """A bundle of a run, made in this process; *keys* are its environment."""
    return make_bundle(
        folder, number, out, report=False, environ=keys, progress=ignore_progress
    )


@pytest.fixture(scope="session")
def bundled(tmp_path_factory: pytest.TempPathFactory) -> Bundled:
    cwd = tmp_path_factory.mktemp("bundled")
    environment = plugged(cwd / "plugins", counting="tests.runner.bundle.counting:job")
    (cwd / "data/tree/deep").mkdir(parents=True)
    (cwd / "data/count.txt").write_text("three-little-words")
    (cwd / "data/tree/deep/a paper.txt").write_text("four " * 100)
    (cwd / "data/tree/beside.txt").write_text("read by nobody")
    inputs = ("--counted=data/count.txt", "--tree=data/tree", "--unread=data/x.txt")
    run = ("run", "counting", *inputs, "--run-id=r")
    siftlog(*run, cwd=cwd, env=environment)
    done = siftlog("bundle", "r", "--json", cwd=cwd, env=environment)
    return Bundled(cwd, environment, json.loads(done.stdout))


@pytest.fixture
def installed(bundled: Bundled, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have this process, and those that it starts, know the job."""
    monkeypatch.syspath_prepend(bundled.cwd / "plugins")
    for name, value in bundled.environment.items():
        monkeypatch.setenv(name, value)
