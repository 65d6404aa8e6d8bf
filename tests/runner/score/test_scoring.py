"""Inputs that a log keeps come back as they were.

The files of a scoring, as the runner writes them.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from runner.fingerprint import input_hashes
from runner.job import InputFile
from runner.score import scoring
from runner.score.result_files import write_files
from runner.score.scoring import keep, put_back
from runner.scorecard import Artifact, Scorecard, StreamedLine
from store.database import open_reader
from store.errors import CorruptLog
from store.events import Blob, Entry, Input
from store.log.sqlite import SqliteLog
from tests.store.memory_log import FakeClock
from tests.store.samples import RUN_STARTED


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "papers"
    (made / "older").mkdir(parents=True)
    (made / "P1.md").write_text("one")
    (made / "older" / "P1.md").write_text("one")
    (made / "P2.md").write_bytes(b"\xff\x00 two\r\n")
    return made


def noted(path: Path) -> Input:
    (given,) = input_hashes([InputFile(setting="papers", path=path)])
    return given


def logged(path: Path, *blobs: Blob) -> Path:
    """A log that holds those parts."""

    async def write() -> None:
        log = await SqliteLog.create(
            path, run_id="r1", config_sha256=b"", clock=FakeClock(), owner="tester"
        )
        async with log:
            await log.append(Entry(event=RUN_STARTED, blobs=blobs))

    asyncio.run(write())
    return path


def test_a_folder_comes_back_file_by_file(folder: Path, tmp_path: Path) -> None:
    (kept,), blobs = keep([noted(folder)])
    assert (kept.kept, len(blobs)) == ("folder", 3)
    place = tmp_path / "place"
    place.mkdir()
    with open_reader(logged(tmp_path / "log.db", *blobs)) as reader:
        there = put_back(reader, kept, place)
    assert there.name == "papers"
    assert noted(there).sha256 == kept.sha256
    assert (there / "P2.md").read_bytes() == b"\xff\x00 two\r\n"


def test_a_file_that_changed_since_its_hash_is_not_kept(folder: Path) -> None:
    given = noted(folder / "P1.md")
    (folder / "P1.md").write_text("other")
    assert keep([given]) == ([given], ())


def test_what_is_large_is_not_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scoring, "LIMIT", 12)
    given = noted(folder)
    assert keep([given]) == ([given], ())
    ((kept,), _) = keep([noted(folder / "P2.md")])
    assert kept.kept == "file"


@pytest.mark.parametrize("name", ["../escaped", "/escaped"])
def test_no_file_is_written_outside_of_its_folder(tmp_path: Path, name: str) -> None:
    part = Blob(sha256=bytes(32), data=b"x")
    listing = Blob(sha256=bytes([1] * 32), data=f"{name}\0{bytes(32).hex()}\n".encode())
    given = Input(
        setting="papers", path="p", sha256=listing.sha256.hex(), kept="folder"
    )
    place = tmp_path / "place"
    place.mkdir()
    with (
        open_reader(logged(tmp_path / "log.db", part, listing)) as reader,
        pytest.raises(CorruptLog, match="outside of its folder"),
    ):
        put_back(reader, given, place)
    assert not (place / "escaped").exists()


CARD = Scorecard(
    models={},
    summary="",
    artifacts=(
        Artifact(name="some.jsonl", text=""),
        Artifact(name="none.jsonl", text=""),
        Artifact(name="none.csv", text=""),
    ),
    details=[StreamedLine(artifact="some.jsonl", text="{}\n")],
)


def test_json_lines_without_a_line_have_no_file(tmp_path: Path) -> None:
    write_files(tmp_path / "draft", CARD, b"{}", b"{}")
    made = {path.name for path in (tmp_path / "draft").iterdir()}
    assert made >= {"some.jsonl", "none.csv"}
    assert "none.jsonl" not in made
