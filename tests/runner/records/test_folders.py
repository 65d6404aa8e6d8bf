"""A folder that appears whole or not at all."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from runner.errors import UsageError
from runner.run.folder import replaced

KILLED = """
import os, signal, sys
from pathlib import Path
from runner.run.folder import replaced

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

with replaced(Path(sys.argv[1]), force=True) as draft:
    (draft / "half").write_text("half")
    if sys.argv[2] == "inside":
        die()
    # the second of the two moves, or what is removed after it
    if sys.argv[2] == "between":
        draft.__class__.replace = lambda own, to, move=Path.replace: (
            die() if own == draft else move(own, to)
        )
    else:
        import shutil
        shutil.rmtree = die
"""


def fill(target: Path, text: str, *, force: bool = False) -> None:
    with replaced(target, force=force) as draft:
        (draft / "file").write_text(text)


def fail(target: Path, error: BaseException) -> None:
    with replaced(target, force=True) as draft:
        (draft / "file").write_text("two")
        raise error


def held(folder: Path) -> dict[str, str]:
    """All files below a folder, hidden ones too."""
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_folder_is_made_with_those_above_it_and_replaced_only_by_force(
    tmp_path: Path,
) -> None:
    target = tmp_path / "a" / "set"
    fill(target, "one")
    with pytest.raises(UsageError, match=r"exists already: name another --out, or use"):
        fill(target, "two")
    assert held(tmp_path) == {"a/set/file": "one"}
    (target / "own").write_text("mine")
    fill(target, "two", force=True)
    # nothing is merged into, and nothing is left beside it
    assert held(tmp_path) == {"a/set/file": "two"}
    assert [path.name for path in target.parent.iterdir()] == ["set"]


def test_a_folder_of_the_working_folder_may_be_named_by_itself(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    fill(Path("set"), "one")
    assert held(tmp_path) == {"set/file": "one"}


def test_a_link_stays_and_what_it_names_is_replaced(tmp_path: Path) -> None:
    link, target = tmp_path / "link", tmp_path / "elsewhere" / "set"
    link.symlink_to(target)
    fill(link, "one")
    fill(link, "two", force=True)
    assert link.readlink() == target
    assert held(tmp_path / "elsewhere") == {"set/file": "two"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere", "link"]


@pytest.mark.parametrize("error", [ValueError("bad row"), KeyboardInterrupt()])
def test_whatever_goes_wrong_inside_the_old_folder_stays(
    tmp_path: Path, error: BaseException
) -> None:
    target = tmp_path / "set"
    fill(target, "one")
    with pytest.raises(type(error)):
        fail(target, error)
    assert held(tmp_path) == {"set/file": "one"}


def test_a_full_disk_is_one_sentence_and_leaves_the_old_folder(tmp_path: Path) -> None:
    target = tmp_path / "set"
    fill(target, "one")
    error = OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(UsageError, match="set cannot be written: No space left"):
        fail(target, error)
    assert held(tmp_path) == {"set/file": "one"}


def test_a_place_that_is_no_folder_is_refused(tmp_path: Path) -> None:
    target = tmp_path / "file"
    target.write_text("mine")
    with pytest.raises(UsageError, match=r"file is no folder: name another --out\."):
        fill(target, "one", force=True)
    with pytest.raises(UsageError, match=r"^\. is no folder of its own: name anothe"):
        fill(Path(), "one", force=True)
    with pytest.raises(UsageError, match=r"cannot be written: Not a directory\."):
        fill(target / "set", "one")
    assert held(tmp_path) == {"file": "mine"}


def killed(target: Path, where: str) -> None:
    """A process that replaces *target* is killed there."""
    done = subprocess.run([sys.executable, "-c", KILLED, target, where], check=False)
    assert done.returncode == -signal.SIGKILL


def test_a_process_killed_in_the_middle_leaves_the_old_folder(tmp_path: Path) -> None:
    target = tmp_path / "set"
    fill(target, "one")
    killed(target, "inside")
    assert held(target) == {"file": "one"}
    # what it had begun lies hidden beside it, and goes; what others write stays
    others = tmp_path / f".set.{os.getppid()}.draft"
    others.mkdir()
    (others / "file").write_text("three")
    earlier = tmp_path / f".set.{os.getpid()}.draft"
    earlier.mkdir()
    assert sum(path.suffix == ".draft" for path in tmp_path.iterdir()) == 3
    fill(target, "two", force=True)
    assert held(tmp_path) == {"set/file": "two", f"{others.name}/file": "three"}


def test_what_a_process_killed_between_the_moves_took_away_is_put_back(
    tmp_path: Path,
) -> None:
    target = tmp_path / "s[e]t"
    fill(target, "one")
    killed(target, "between")
    assert not target.exists()
    with pytest.raises(UsageError, match=r"killed, and is back as it was: name anoth"):
        fill(target, "two")
    assert held(target) == {"file": "one"}
    killed(target, "between")
    fill(target, "two", force=True)
    assert held(target) == {"file": "two"}


def test_what_a_process_killed_after_the_moves_left_is_removed(tmp_path: Path) -> None:
    target = tmp_path / "set"
    fill(target, "one")
    killed(target, "after")
    assert held(target) == {"half": "half"}
    assert [path.suffix for path in sorted(tmp_path.iterdir())] == [".old", ""]
    fill(target, "two", force=True)
    assert held(tmp_path) == {"set/file": "two"}
