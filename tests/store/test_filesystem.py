"""Content is synced before its name, and the name before anybody relies on it.

A log is not written on a network file system.
"""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.options import options_from, read_toml, write_toml
from store.filesystem import (
    is_network,
    kind_at,
    make_folder,
    network_problem,
    replace_file,
)
from tests.processes import environment, siftlog


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


def _line(point: str, kind: str, options: str = "shared:1 master:2") -> str:
    escaped = "".join(f"\\{ord(c):03o}" if c in " \t\n\\" else c for c in point)
    fields = ["36 25 0:32 /", escaped, "rw,relatime", options]
    return " ".join([*filter(None, fields), "-", kind, "server:/export", "rw"])


TABLE = "\n".join(
    [
        _line("/", "ext4", options=""),
        _line("/home", "nfs4"),
        _line("/home/ada/scratch", "xfs"),
        _line("/data", "autofs"),
        _line("/data", "lustre"),
        _line("/mnt/my papers", "fuse.sshfs"),
    ]
)


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/", "ext4"),
        ("/homely", "ext4"),
        ("/home/ada/runs", "nfs4"),
        ("/home/ada/scratch", "xfs"),
        ("/home/ada/scratch2", "nfs4"),
        ("/data/runs", "lustre"),
        ("/mnt/my papers/runs", "fuse.sshfs"),
    ],
)
def test_a_folder_lies_on_what_was_mounted_nearest_above_it(
    folder: str, kind: str
) -> None:
    assert kind_at(PurePosixPath(folder), TABLE) == kind


_NAMES = st.text(st.characters(codec="ascii", exclude_characters="/\0"), min_size=1)


@given(st.lists(_NAMES.filter(lambda name: name not in {".", ".."}), max_size=4))
def test_any_mount_point_is_found_again(names: list[str]) -> None:
    point = PurePosixPath("/", *names)
    table = f"{_line('/', 'ext4')}\n{_line(str(point), 'beegfs')}"
    assert kind_at(point / "runs", table) == "beegfs"


def test_what_is_no_table_tells_nothing() -> None:
    assert kind_at(PurePosixPath("/runs"), "") is None
    assert kind_at(PurePosixPath("/runs"), "/dev/sda1 on / (ext4)\nrw - nfs") is None


@pytest.mark.parametrize(
    "kind",
    [
        "nfs",
        "nfs4",
        "lustre",
        "gpfs",
        "beegfs",
        "cifs",
        "smb3",
        "ceph",
        "fuse.sshfs",
        "fuse.s3fs",
    ],
)
def test_what_several_machines_write_is_refused(kind: str) -> None:
    assert is_network(kind)


@pytest.mark.parametrize(
    "kind",
    [
        "ext4",
        "xfs",
        "btrfs",
        "zfs",
        "tmpfs",
        "overlay",
        "fuseblk",
        "fuse.gocryptfs",
        "9p",
        "newfs",
    ],
)
def test_disks_of_this_machine_and_the_unknown_are_not(kind: str) -> None:
    assert not is_network(kind)


def test_without_a_table_nothing_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("store.filesystem.MOUNTINFO", tmp_path / "absent")
    assert network_problem(tmp_path) is None


def _on_nfs(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The command on a machine where *cwd* is a share."""
    table = cwd.with_name("mountinfo")
    table.write_text(f"{_line('/', 'ext4')}\n{_line(str(cwd), 'nfs4')}\n")
    code = (
        "import pathlib, sys, store.filesystem, runner.cli.main as cli\n"
        f"store.filesystem.MOUNTINFO = pathlib.Path({str(table)!r})\n"
        "sys.exit(cli.main())"
    )
    return subprocess.run(
        [sys.executable, "-c", code, *words],
        cwd=cwd,
        env=environment(None),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_run_on_a_network_file_system_is_refused_before_a_log_is_made(
    tmp_path: Path,
) -> None:
    share = tmp_path / "share"
    share.mkdir()
    done = _on_nfs("run", "screening", "--run-id", "r1", cwd=share)
    assert done.returncode == 1
    assert "(nfs4)" in done.stderr
    assert "--local-dir $SLURM_TMPDIR" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(share.iterdir())


def test_logs_are_not_merged_there_either(tmp_path: Path) -> None:
    share = tmp_path / "share"
    share.mkdir()
    siftlog("run", "screening", "--run-id", "r1", "--shard", "0/1", cwd=share)
    done = _on_nfs("merge", "r1", cwd=share)
    assert done.returncode == 1
    assert "(nfs4)" in done.stderr
    assert not (share / "runs" / "r1" / "log.db").exists()


def test_doctor_says_so_too(tmp_path: Path) -> None:
    share = tmp_path / "share"
    share.mkdir()
    done = _on_nfs("doctor", cwd=share)
    assert done.returncode == 1
    assert "blocks  folder" in done.stdout
    assert "network file system (nfs4)" in done.stdout
