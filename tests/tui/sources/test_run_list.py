"""A folder of runs is looked at, and only what changed is read again."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from store.runs import RunFolder
from tests.store.logs import COURSE, edit, written
from tests.store.memory_log import FakeClock
from tui.sources.run_list import BATCH, FolderRuns, ListedRun
from tui.sources.run_snapshot import ReadProblem, RunSnapshot


@dataclass(frozen=True)
class Folder:
    """A runs folder, and who looks at it."""

    path: Path
    listing: FolderRuns

    def add(self, run_id: str) -> RunFolder:
        run = RunFolder(self.path / run_id)
        run.path.mkdir(parents=True)
        written(run.log, *COURSE)
        return run

    def seen(self) -> dict[str, ListedRun]:
        return {each.folder.run_id: each for each in self.listing.poll()}


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path / "runs", FolderRuns(tmp_path / "runs", FakeClock()))


def facts_of(listed: ListedRun) -> object:
    assert isinstance(listed.snapshot, RunSnapshot)
    return listed.snapshot.facts


def test_a_folder_that_is_missing_has_no_runs(folder: Folder) -> None:
    assert folder.seen() == {}


def test_only_a_run_whose_files_changed_is_read_again(folder: Folder) -> None:
    folder.add("a")
    changed = folder.add("b")
    first = folder.seen()
    edit(changed.log, "UPDATE heartbeat SET pid = 7")
    second = folder.seen()
    assert facts_of(second["a"]) is facts_of(first["a"])
    assert facts_of(second["b"]) is not facts_of(first["b"])


def test_many_runs_are_read_a_few_at_a_time_until_all_are(folder: Folder) -> None:
    for number in range(BATCH + 2):
        folder.add(f"r{number}")
    unread = [
        sum(each.snapshot is None for each in folder.seen().values()) for _ in range(2)
    ]
    assert unread == [2, 0]


def test_a_run_that_cannot_be_read_does_not_hide_the_others(folder: Folder) -> None:
    folder.add("a")
    (folder.path / "b").mkdir()
    (folder.path / "b" / "log.db").write_text("no database" * 100)
    seen = folder.seen()
    assert isinstance(seen["a"].snapshot, RunSnapshot)
    assert isinstance(seen["b"].snapshot, ReadProblem)


def test_a_run_that_was_deleted_is_no_longer_listed(folder: Folder) -> None:
    run = folder.add("a")
    folder.add("b")
    assert set(folder.seen()) == {"a", "b"}
    run.log.unlink()
    assert set(folder.seen()) == {"b"}


def test_a_folder_that_may_no_longer_be_read_keeps_what_is_known_of_it(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder.add("a")
    assert set(folder.seen()) == {"a"}
    folder.add("b")
    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", refused)
        assert set(folder.seen()) == {"a"}
    assert set(folder.seen()) == {"a", "b"}


def refused(path: Path) -> None:
    raise PermissionError(path)
