"""Label logs on disk: nobody waits, nothing is lost, damage is found."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from store.clock import SystemClock
from store.errors import LogClosed, NotALog, StoreError
from store.labels.events import LabelRecorded
from store.labels.folder import (
    LabelFolder,
    author_of,
    label_logs,
    read_labels,
    verify_labels,
)
from store.labels.writer import LabelWriter, check_author

PROVE = "SIFTLOG_PROVE" in os.environ


async def writer_of(folder: Path, author: str) -> LabelWriter:
    return await LabelWriter.open(
        folder,
        author=author,
        clock=SystemClock(),
        owner="test:1",
        siftlog_version="1",
    )


def record(folder: Path, author: str, *values: str) -> Path:
    """Record a value for each of the items 0, 1, ...; return the file."""

    async def write() -> Path:
        async with await writer_of(folder, author) as writer:
            for at, value in enumerate(values):
                await writer.record(str(at), value)
            return writer.path

    return asyncio.run(write())


def test_a_later_session_continues_the_first_free_file(tmp_path: Path) -> None:
    async def sessions() -> list[str]:
        async with (
            await writer_of(tmp_path, "Ann Bé") as first,
            await writer_of(tmp_path, "Ann Bé") as second,
            await writer_of(tmp_path, "Ann/Bé") as other,
        ):
            names = [first.path.name, second.path.name, other.path.name]
            await first.record("one", "a")
            await second.record("one", "b")
        async with await writer_of(tmp_path, "Ann Bé") as third:
            return [*names, third.path.name]

    # two names that look alike in a file system never share a file
    expected = ["Ann_Bé.db", "Ann_Bé-2.db", "Ann_Bé-3.db", "Ann_Bé.db"]
    assert asyncio.run(sessions()) == expected
    assert author_of(tmp_path / "Ann_Bé-3.db") == "Ann/Bé"
    labels = read_labels(tmp_path)
    assert labels.current["Ann Bé", "one", ""].event.value == "b"  # type: ignore[index]
    assert all(report.is_sound for report in verify_labels(tmp_path))


def test_two_people_at_once_never_overwrite_each_other(tmp_path: Path) -> None:
    ids: dict[str, list[str]] = {}

    async def label(author: str) -> None:
        async with await writer_of(tmp_path, author) as writer:
            ids.setdefault(author, []).extend(
                [await writer.record(f"item {i}", author) for i in range(60)]
            )

    async def everybody() -> None:
        async with asyncio.TaskGroup() as group:
            for author in ("ann", "bo", "ann"):
                group.create_task(label(author))

    asyncio.run(everybody())
    labels = read_labels(tmp_path)
    assert len(label_logs(tmp_path)) == 3
    assert {label.id for label in labels.labels} == {*ids["ann"], *ids["bo"]}
    assert len(labels.labels) == 180
    assert all(label.event.value == label.event.author for label in labels.labels)
    assert len(labels.disputed()) == 60


def test_a_folder_is_read_as_it_grows(tmp_path: Path) -> None:
    folder = LabelFolder(tmp_path / "labels")
    assert folder.refresh().authors == []
    path = record(folder.path, "ann", "a", "b")
    assert len(folder.refresh().current) == 2
    assert folder.refresh() is folder.refresh()
    older = shutil.copytree(folder.path, tmp_path / "older")
    record(folder.path, "ann", "c")
    assert folder.refresh().current["ann", "0", ""].event.value == "c"  # type: ignore[index]
    # an older copy is put back, and a file goes
    for file in folder.path.iterdir():
        file.unlink()
    shutil.copytree(older, folder.path, dirs_exist_ok=True)
    assert folder.refresh().current["ann", "0", ""].event.value == "a"  # type: ignore[index]
    path.unlink()
    assert not folder.refresh().current


def test_what_is_no_label_log_is_named(tmp_path: Path) -> None:
    (tmp_path / "notes.db").write_text("not a database, but some text of notes")
    with pytest.raises(NotALog, match=r"notes\.db"):
        read_labels(tmp_path)
    (report,) = verify_labels(tmp_path)
    assert "notes.db" in report.problems[0]
    record(tmp_path, "notes", "a")  # goes to a file of its own
    assert author_of(tmp_path / "notes-2.db") == "notes"


@pytest.mark.parametrize("author", ["", "  ", "a\nb", "x" * 101])
def test_an_author_has_a_name(author: str) -> None:
    with pytest.raises(StoreError, match="--author"):
        check_author(author)


def test_a_file_left_by_a_process_that_died_at_creating_it_is_used(
    tmp_path: Path,
) -> None:
    (tmp_path / "ann.db").touch()
    assert record(tmp_path, "ann", "a") == tmp_path / "ann.db"
    assert len(read_labels(tmp_path).current) == 1


def test_a_label_is_not_acknowledged_once_its_file_is_gone(tmp_path: Path) -> None:
    async def label() -> None:
        async with await writer_of(tmp_path / "labels", "ann") as writer:
            await writer.record("one", "a")
            (tmp_path / "labels").rename(tmp_path / "moved")
            with pytest.raises(LogClosed, match="moved or replaced"):
                await writer.record("two", "a")

    asyncio.run(label())


def test_an_import_is_recorded_as_a_whole(tmp_path: Path) -> None:
    async def write() -> list[str]:
        async with await writer_of(tmp_path, "ann") as writer:
            assert await writer.record_all([]) == []
            return await writer.record_all(
                [LabelRecorded(author=a, item="one", value="x") for a in ("bo", "cy")]
            )

    ids = asyncio.run(write())
    assert [label.id for label in read_labels(tmp_path).labels] == ids
    assert read_labels(tmp_path).authors == ["bo", "cy"]


TYPIST = """
import asyncio, sys
from pathlib import Path
from tests.store.labels.test_label_logs import writer_of

async def main():
    async with await writer_of(Path(sys.argv[1]), sys.argv[2]) as writer:
        number = 0
        while True:
            name = await writer.record(f"item {number}", "include")
            print(name, flush=True)
            number += 1

asyncio.run(main())
"""


def test_labels_that_were_acknowledged_survive_kill_9(tmp_path: Path) -> None:
    """The short form of 10,000 labels over random kills, which `make prove` types."""
    chance = random.Random(7)
    acknowledged: set[str] = set()
    rounds, each = (60, 170) if PROVE else (3, 40)
    for _ in range(rounds):
        with subprocess.Popen(
            (sys.executable, "-c", TYPIST, str(tmp_path), "ann"),
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[3],
        ) as typist:
            assert typist.stdout is not None
            for _ in range(chance.randint(each // 2, each)):
                acknowledged.add(typist.stdout.readline().strip())
            typist.send_signal(signal.SIGKILL)
            acknowledged |= {line.strip() for line in typist.stdout}
    found = {label.id for label in read_labels(tmp_path).labels}
    assert acknowledged <= found
    assert len(found - acknowledged) <= rounds  # written, and killed before it was said
    assert [path.name for path in label_logs(tmp_path)] == ["ann.db"]
    assert all(report.is_sound for report in verify_labels(tmp_path))


def test_a_flipped_byte_of_a_label_is_found(tmp_path: Path) -> None:
    path = record(tmp_path, "ann", *(f"value number {i}" for i in range(50)))
    (report,) = verify_labels(tmp_path)
    assert report.is_sound
    whole = path.read_bytes()
    places = [at for at in range(len(whole)) if whole.startswith(b"value number", at)]
    assert len(places) >= 50
    for at in places[:: 5 if not PROVE else 1]:
        changed = bytearray(whole)
        changed[at] ^= 1
        path.write_bytes(changed)
        (report,) = verify_labels(tmp_path)
        assert not report.is_sound, at
    # a file that lost its end, as an older copy has
    path.write_bytes(whole)
    older = path.with_suffix(".older")
    shutil.copy(path, older)
    record(tmp_path, "ann", "another")
    shutil.copy(older, path)
    (report,) = verify_labels(tmp_path)
    assert "missing" in report.problems[0]
    with pytest.raises(StoreError, match="lost labels"):
        record(tmp_path, "ann", "more")
