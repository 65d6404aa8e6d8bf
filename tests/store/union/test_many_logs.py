"""A run of more logs than a process may have files open."""

from __future__ import annotations

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from store.database import LogReader, open_reader
from store.read.live import union_progress
from store.runs import RunFolder
from tests.store.union.union_logs import shard_log, shard_started


@contextmanager
def _files(count: int) -> Iterator[None]:
    """About so many more files may be opened."""
    free = os.dup(0)
    os.close(free)
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free + count, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_more_logs_are_merged_than_files_may_be_open(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    for index in range(20):
        shard_log(tmp_path, f"{index}-20", [shard_started(index, 20)])
    with _files(24):
        first, again = folder.refresh(), folder.refresh()
    assert first is not None
    assert (first.logs, first.events) == (20, 20)
    assert again is not None
    assert (again.logs, again.events) == (20, 0)
    with open_reader(folder.log) as reader:
        stand = union_progress(reader)
    assert stand is not None
    assert not stand.missing


def test_a_look_that_finds_nothing_new_opens_each_log_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = RunFolder(tmp_path)
    logs = [shard_log(tmp_path, f"{i}-3", [shard_started(i, 3)]) for i in range(3)]
    folder.refresh()
    opened: list[Path] = []

    def open_counted(path: Path) -> LogReader:
        opened.append(path)
        return open_reader(path)

    for name in (
        "store.union.source.open_reader",
        "store.union.merging.open_reader",
    ):
        monkeypatch.setattr(name, open_counted)
    again = folder.refresh()
    assert again is not None
    assert again.events == 0
    assert sorted(opened) == sorted([*logs, folder.log])
