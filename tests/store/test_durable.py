"""Content is synced before its name, and the name before anybody relies on it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from runner.options import options_from, read_toml, write_toml
from store.filesystem import make_folder, replace_file


class Trace:
    """The order in which files are synced and named."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.steps: list[str] = []
        fsync, replace = os.fsync, Path.replace

        def traced_fsync(descriptor: int) -> None:
            fsync(descriptor)
            name = Path(f"/proc/self/fd/{descriptor}").readlink().name
            self.steps.append(f"sync {name}")

        def traced_replace(path: Path, target: Path) -> Path:
            self.steps.append(f"name {target.name}")
            return replace(path, target)

        monkeypatch.setattr(os, "fsync", traced_fsync)
        monkeypatch.setattr(Path, "replace", traced_replace)


def test_a_configuration_is_synced_before_and_after_it_gets_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = Trace(monkeypatch)
    path = tmp_path / "run.toml"
    write_toml(path, job="toy", options=options_from({}), settings={"items": 3})
    assert trace.steps == [
        f"sync .run.toml.{os.getpid()}",
        "name run.toml",
        f"sync {tmp_path.name}",
    ]
    assert read_toml(path)["settings"] == {"items": 3}


def test_folders_are_synced_into_their_parents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = Trace(monkeypatch)
    make_folder(tmp_path / "runs" / "r")
    assert trace.steps == [f"sync {tmp_path.name}", "sync runs"]
    make_folder(tmp_path / "runs" / "r")
    assert len(trace.steps) == 2


def test_what_could_not_be_written_leaves_the_old_file_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "run.toml"
    replace_file(path, b"old")

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "no space", str(descriptor))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        replace_file(path, b"new")
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
