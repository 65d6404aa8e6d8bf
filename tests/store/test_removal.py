"""A run is deleted wholly, or is still a run, whenever the process dies."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from store.database import WriterLock, open_reader
from store.errors import LogBusy, StoreError
from store.read.status import status
from store.removal import check_removable, folder_size, remove_run
from store.runs import RunFolder, list_runs
from tests.store.logs import FINISHED, written
from tests.store.samples import RUN_STARTED


@pytest.fixture
def folder(tmp_path: Path) -> RunFolder:
    """A finished run with a scoring."""
    run = RunFolder(tmp_path / "runs" / "r1")
    (run.scores / "1" / "figures").mkdir(parents=True)
    (run.scores / "1" / "figures" / "a.svg").write_text("<svg/>")
    (run.scores / "1" / "scorecard.json").write_text("{}")
    run.control.write_text("")
    written(run.log, [RUN_STARTED], [FINISHED])
    return run


def test_all_files_of_a_run_go_and_are_counted(folder: RunFolder) -> None:
    (folder.path / "log.0-2.db").write_bytes(b"x" * 1000)
    size = folder_size(folder.path)
    assert size.bytes > 1000
    assert remove_run(folder) == size
    assert list(folder.path.parent.iterdir()) == []


def test_a_run_that_is_worked_on_stays(folder: RunFolder) -> None:
    (folder.path / "log.1-2.db").touch()
    for lock in (folder.lock, folder.driver_lock, folder.shard(1, 2).lock):
        held = WriterLock(lock)
        held.acquire()
        with pytest.raises(LogBusy):
            remove_run(folder)
        held.release()
        assert folder.log.exists()


def test_what_is_not_the_runs_is_not_deleted(folder: RunFolder, tmp_path: Path) -> None:
    notes = folder.path / "notes.md"
    notes.touch()
    with pytest.raises(StoreError, match="which siftlog did not write"):
        remove_run(folder)
    assert folder.log.exists()
    notes.unlink()
    link = RunFolder(tmp_path / "link")
    link.path.symlink_to(folder.path)
    with pytest.raises(StoreError, match="is a link to"):
        remove_run(link)
    check_removable(folder)


def _killed(kill: Callable[[], None], folder: RunFolder) -> None:
    """Remove a run in a child that *kill* prepares to die."""
    child = os.fork()
    if not child:
        kill()
        remove_run(folder)
        os._exit(1)  # it was to die
    _, code = os.waitpid(child, 0)
    assert os.WTERMSIG(code) == signal.SIGKILL


def _die(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("remaining", range(5))
def test_a_kill_leaves_a_run_or_none(
    folder: RunFolder, remaining: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, count = os.unlink, [remaining]

    def unlink(*words: object, **named: object) -> None:
        if not count[0]:
            _die()
        count[0] -= 1
        real(*words, **named)  # type: ignore[arg-type]

    _killed(lambda: monkeypatch.setattr(os, "unlink", unlink), folder)
    runs_dir = folder.path.parent
    assert [path.name for path in runs_dir.iterdir()] == [".r1.removed"]
    assert list_runs(runs_dir) == []
    # the name is free, and the next removal clears what is left
    again = RunFolder(folder.path)
    again.path.mkdir()
    written(again.log, [RUN_STARTED])
    remove_run(again)
    assert list(runs_dir.iterdir()) == []


def test_a_kill_before_the_run_is_moved_leaves_it_whole(
    folder: RunFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    _killed(lambda: monkeypatch.setattr(Path, "rename", _die), folder)
    (run,) = list_runs(folder.path.parent)
    assert not run.is_alive()
    with open_reader(run.log) as reader:
        assert status(reader).run_id == "r1"
    assert (run.scores / "1" / "scorecard.json").exists()
