"""A bundle is made whole and provable, or not at all."""

from __future__ import annotations

import asyncio
import hashlib
import os
import resource
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from zipfile import ZIP_STORED, ZipFile

import pytest

from runner.bundle import archive
from runner.errors import DatasetError, RunnerError, UsageError
from store.database import open_reader
from store.errors import StoreError
from store.events import AttemptStarted, Blob, Entry, TasksReopened
from store.log.sqlite import SqliteLog
from store.read.status import status
from store.runs import RunFolder
from store.scoring import families
from tests.runner.bundle.conftest import Bundled, made
from tests.store.memory_log import FakeClock

KEY = "sk-canary-7f3a9c51e8"

pytestmark = pytest.mark.usefixtures("installed")


@contextmanager
def _without(path: Path, content: bytes | None = None) -> Iterator[None]:
    """As long as it lasts a file is away, or another one."""
    kept = path.read_bytes()
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    try:
        yield
    finally:
        path.write_bytes(kept)


def test_the_same_scoring_gives_the_same_bytes(
    bundled: Bundled, tmp_path: Path
) -> None:
    again = made(RunFolder(bundled.cwd / "runs/r"), tmp_path / "again.zip")
    assert again.path.read_bytes() == bundled.path.read_bytes()
    assert again.sha256 == bundled.said["sha256"]
    assert [path.name for path in tmp_path.iterdir()] == ["again.zip"]


def test_members_come_by_name_and_are_what_a_run_s_folder_has(
    bundled: Bundled, tmp_path: Path
) -> None:
    with ZipFile(bundled.path) as opened:
        names = opened.namelist()
        opened.extractall(tmp_path / "r")
    assert names == sorted(names)
    assert [name for name in names if not name.startswith("scores/1/")] == [
        "bundle.json",
        "inputs/counted/count.txt",
        "inputs/tree/tree/deep/a paper.txt",
        "log.db",
        "run.toml",
    ]
    folder = RunFolder(tmp_path / "r")
    with open_reader(folder.log) as reader:
        assert status(reader).tasks.completed == len(list(families(reader))) > 0
    assert folder.config.read_bytes() == (bundled.cwd / "runs/r/run.toml").read_bytes()


def test_an_input_that_is_gone_is_named(bundled: Bundled, tmp_path: Path) -> None:
    folder = bundled.copied(tmp_path)
    with (
        _without(bundled.cwd / "data/count.txt"),
        pytest.raises(DatasetError, match=r"count\.txt \(counted\).* is missing"),
    ):
        made(folder)
    assert not folder.exports.exists()


def test_an_input_that_was_changed_since_is_named(
    bundled: Bundled, tmp_path: Path
) -> None:
    folder = bundled.copied(tmp_path)
    with (
        _without(bundled.cwd / "data/tree/deep/a paper.txt", b"other"),
        pytest.raises(DatasetError, match=r"deep \(deep\) is not what scoring 1"),
    ):
        made(folder)


def test_a_scorecard_that_was_written_over_is_not_handed_out(
    bundled: Bundled, tmp_path: Path
) -> None:
    folder = bundled.copied(tmp_path)
    card = folder.scores / "1/scorecard.json"
    for spoil in (lambda: card.write_bytes(b"{}"), card.unlink):
        spoil()
        with pytest.raises(RunnerError, match="differs from what scoring 1 wrote"):
            made(folder)


def test_files_of_a_scoring_that_are_gone_are_made_again(
    bundled: Bundled, tmp_path: Path
) -> None:
    folder = bundled.copied(tmp_path)
    shutil.rmtree(folder.scores)
    assert made(folder).manifest.digest == bundled.said["digest"]


def test_a_log_that_is_damaged_is_not_handed_out(
    bundled: Bundled, tmp_path: Path
) -> None:
    folder = bundled.copied(tmp_path)
    data = bytearray(folder.log.read_bytes())
    at = data.index(b"attempt_answered")
    data[at : at + 7] = b"ATTEMPT"
    folder.log.write_bytes(data)
    with pytest.raises((RunnerError, StoreError), match="verify"):
        made(folder)
    assert not list(folder.exports.iterdir())


def test_a_key_of_this_machine_is_not_given_away(
    bundled: Bundled, tmp_path: Path
) -> None:
    folder = bundled.copied(tmp_path)
    # it stands in an input, of which the log keeps a copy
    with pytest.raises(RunnerError, match=r"log\.db, .* holds the key that MY_API_KEY"):
        made(folder, MY_API_KEY="three-little-words")
    assert not list(folder.exports.iterdir())


def test_a_key_in_a_prompt_that_the_log_has_packed_is_found_too(
    bundled: Bundled, tmp_path: Path
) -> None:
    folder = bundled.copied(tmp_path)
    # its halves are known to zstd already, and do not stand side by side
    text = b"sk-canary- 7f3a9c51e8 " * 100 + KEY.encode()
    part = Blob(sha256=hashlib.sha256(text).digest(), data=text)

    async def write() -> None:
        log = await SqliteLog.open(folder.log, clock=FakeClock(), owner="tester")
        async with log:
            await log.append(TasksReopened(tasks=[1], by="tester"))
            sent = AttemptStarted(task=1, attempt=9, request_sha256="0" * 64)
            await log.append(Entry(event=sent, payload=b"{}", blobs=(part,)))

    asyncio.run(write())
    assert KEY.encode() not in folder.log.read_bytes()
    with pytest.raises(RunnerError, match=r"log\.db, message part \d+, holds the key"):
        made(folder, MY_API_KEY=KEY)


def test_a_scoring_that_there_is_not_is_told(bundled: Bundled) -> None:
    with pytest.raises(UsageError, match="no scoring 9; its newest is 1"):
        made(RunFolder(bundled.cwd / "runs/r"), number=9)


def test_a_run_that_goes_on_is_told_of_as_far_as_it_has_come(
    bundled: Bundled, tmp_path: Path
) -> None:
    folder = bundled.copied(tmp_path)

    async def beside_a_writer() -> None:
        log = await SqliteLog.open(folder.log, clock=FakeClock(), owner="tester")
        async with log:
            await log.append(TasksReopened(tasks=[1], by="tester"))
            assert folder.is_alive()
            manifest = made(folder).manifest
            assert manifest.partial
            assert manifest.events == bundled.said["events"] + 1
            assert manifest.digest == bundled.said["digest"]

    asyncio.run(beside_a_writer())


def test_what_is_squeezed_as_no_bundle_may_be_is_stored_as_it_is(
    bundled: Bundled, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "RATIO", 2)
    folder = bundled.copied(tmp_path)
    with ZipFile(made(folder).path) as opened:
        assert {info.compress_type for info in opened.infolist()} == {ZIP_STORED}


def test_a_full_disk_leaves_what_was_there_and_no_half_of_a_bundle(
    bundled: Bundled, tmp_path: Path
) -> None:
    folder = bundled.copied(tmp_path)
    out = tmp_path / "mine.zip"
    out.write_bytes(b"of before")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, hard))
    try:
        with pytest.raises((RunnerError, StoreError), match="space"):
            made(folder, out)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert out.read_bytes() == b"of before"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine.zip", "r"]


def test_what_is_no_plain_file_is_not_replaced(
    bundled: Bundled, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(UsageError, match="is not a plain file"):
        made(RunFolder(bundled.cwd / "runs/r"), tmp_path / "pipe")
    assert (tmp_path / "pipe").is_fifo()


def test_a_place_that_is_none_is_told(bundled: Bundled) -> None:
    with pytest.raises(RunnerError, match="name another --out"):
        made(RunFolder(bundled.cwd / "runs/r"), bundled.path / "x.zip")


def test_the_place_that_cannot_be_written_is_the_one_that_was_named(
    bundled: Bundled,
) -> None:
    place = bundled.path / "x.zip"  # a file is no folder
    with pytest.raises(RunnerError) as caught:
        made(RunFolder(bundled.cwd / "runs/r"), place)
    assert str(caught.value).startswith(f"{place} cannot be bundled or written ")
