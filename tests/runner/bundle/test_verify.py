"""Bundles that are whole, with right hashes, and yet do not hold what was recorded.

Archives that somebody made to do harm are refused before anything is unpacked.
"""

from __future__ import annotations

import stat
import struct
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZipFile, ZipInfo

import pytest

from runner.bundle import archive
from runner.bundle.manifest import NAME, encoded
from runner.bundle.verify import BundleReport, check, require_room
from runner.errors import RunnerError
from store.errors import ignore_progress
from tests.runner.bundle.conftest import Bundled
from tests.runner.bundle.forging import (
    Members,
    contents,
    forged,
    log_changed,
    manifest_of,
    packed,
    told,
)

SCORECARD = "scores/1/scorecard.json"


def _checked(
    bundled: Bundled, tmp_path: Path, change: Callable[[Members], None]
) -> BundleReport:
    return check(forged(bundled.path, tmp_path / "forged.zip", change), ignore_progress)


SWAPPED = (
    "UPDATE event SET seq = -5 WHERE seq = 5",
    "UPDATE event SET seq = 5 WHERE seq = 6",
    "UPDATE event SET seq = 6 WHERE seq = -5",
)


@pytest.mark.parametrize(
    ("statements", "where"),
    [
        (("DELETE FROM event WHERE seq = 5",), "event"),
        (
            ("DELETE FROM event WHERE seq = 5", "DELETE FROM body WHERE seq = 5"),
            "event",
        ),
        (SWAPPED, "event"),
        (("UPDATE event SET ts_us = ts_us + 1 WHERE seq = 7",), "event"),
        (("UPDATE task SET state = 4 WHERE task = 1",), "table task, row 1"),
        (("DROP TABLE chain",), "events"),
        (("UPDATE run SET run_id = 'other'",), "events 1 to "),
    ],
)
def test_a_log_that_was_changed_is_found_and_the_place_is_named(
    bundled: Bundled, tmp_path: Path, statements: tuple[str, ...], where: str
) -> None:
    found = _checked(bundled, tmp_path, log_changed(tmp_path, *statements))
    assert found.faults
    assert found.faults[0].where.startswith(where)
    assert not found.is_rebuilt


def test_a_log_without_its_last_commits_is_not_the_one_that_was_bundled(
    bundled: Bundled, tmp_path: Path
) -> None:
    events = bundled.said["events"]
    cut = f"(SELECT max(last_seq) FROM chain WHERE last_seq < {events})"
    change = log_changed(
        tmp_path,
        f"DELETE FROM event WHERE seq > {cut}",
        f"DELETE FROM body WHERE seq > {cut}",
        f"DELETE FROM mark WHERE seq > {cut}",
        f"DELETE FROM chain WHERE last_seq > {cut}",
    )
    found = _checked(bundled, tmp_path, change)
    assert found.faults
    said = " ".join(f"{fault.where} {fault.message}" for fault in found.faults)
    assert "event" in said or "table mark" in said


def test_what_is_too_much_or_too_little_is_named(
    bundled: Bundled, tmp_path: Path
) -> None:
    members = contents(bundled.path)
    members["inputs/extra.txt"] = b"x"
    del members["run.toml"]
    found = check(packed(tmp_path / "x.zip", members), ignore_progress)
    assert [(fault.where, fault.message) for fault in found.faults] == [
        ("inputs/extra.txt", "does not belong here"),
        ("run.toml", "is missing"),
    ]


def test_a_member_that_is_not_what_the_manifest_says_is_named(
    bundled: Bundled, tmp_path: Path
) -> None:
    members = contents(bundled.path)
    members["scores/1/operations.json"] += b" "
    (fault,) = check(packed(tmp_path / "x.zip", members), ignore_progress).faults
    assert fault.where == "scores/1/operations.json"
    assert fault.message == "differs from bundle.json"


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize(
    ("member", "where"),
    [
        ("inputs/counted/count.txt", "inputs/counted"),
        ("inputs/tree/tree/deep/a paper.txt", "inputs/deep"),
    ],
)
def test_an_input_that_was_changed_is_found_by_what_the_log_recorded(
    bundled: Bundled, tmp_path: Path, member: str, where: str
) -> None:
    def change(members: Members) -> None:
        members[member] = members[member].upper()

    (fault,) = _checked(bundled, tmp_path, change).faults
    assert (fault.what, fault.where) == ("input", where)
    assert fault.message == "is not what scoring 1 has read"


def test_another_scorecard_is_not_the_one_that_was_recorded(
    bundled: Bundled, tmp_path: Path
) -> None:
    def change(members: Members) -> None:
        members[SCORECARD] = members[SCORECARD].replace(b'"value": 3', b'"value": 4')

    (fault,) = _checked(bundled, tmp_path, change).faults
    assert fault.where == SCORECARD
    assert fault.message == "is not what scoring 1 recorded"


@pytest.mark.parametrize(
    ("changed", "where"),
    [
        ({"head": "0" * 64}, "event"),
        ({"events": 3}, "event"),
        ({"run": "other"}, "event"),
        ({"job": "other"}, "event"),
        ({"digest": "0" * 64}, "scoring 1"),
    ],
)
def test_a_manifest_that_tells_of_another_run_is_found(
    bundled: Bundled, tmp_path: Path, changed: dict[str, object], where: str
) -> None:
    members = contents(bundled.path)
    told(members, **changed)
    (fault,) = check(packed(tmp_path / "x.zip", members), ignore_progress).faults
    assert fault.where.startswith(where)


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"format": 1}', b"\xff"])
def test_a_manifest_that_cannot_be_read_is_named(
    content: bytes, tmp_path: Path
) -> None:
    path = packed(tmp_path / "x.zip", {NAME: content})
    (fault,) = check(path, ignore_progress).faults
    assert fault.where == NAME


def test_a_manifest_that_is_written_otherwise_hides_nothing(
    bundled: Bundled, tmp_path: Path
) -> None:
    members = contents(bundled.path)
    members[NAME] = members[NAME].replace(b'"format"', b'"more": 1, "format"')
    (fault,) = check(packed(tmp_path / "x.zip", members), ignore_progress).faults
    assert fault.message == "is not written as siftlog writes it"


def test_a_bundle_of_a_later_siftlog_asks_for_an_upgrade(
    bundled: Bundled, tmp_path: Path
) -> None:
    members = contents(bundled.path)
    members[NAME] = encoded(replace(manifest_of(members), format=3))
    with pytest.raises(RunnerError, match="upgrade siftlog"):
        check(packed(tmp_path / "x.zip", members), ignore_progress)


ENDLESS = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"


@pytest.mark.parametrize(
    ("statements", "said"),
    [
        (
            (
                "DROP TABLE run",
                f"CREATE VIEW run AS {ENDLESS} SELECT max(i) AS schema_ver FROM n",
            ),
            "the view 'run'",
        ),
        (("CREATE VIEW more AS SELECT 1",), "the view 'more'"),
        (
            ("CREATE TRIGGER t AFTER INSERT ON heartbeat BEGIN DELETE FROM task; END",),
            "the trigger 't'",
        ),
        (("CREATE INDEX i ON task(abs(task))",), "the index 'i'"),
        (("CREATE TABLE g(a, b AS (a + 1))",), "the table 'g'"),
        (("CREATE VIRTUAL TABLE v USING fts5(a)",), "the table 'v'"),
    ],
)
def test_a_log_with_code_of_anothers_making_is_not_read(
    bundled: Bundled, tmp_path: Path, statements: tuple[str, ...], said: str
) -> None:
    found = _checked(bundled, tmp_path, log_changed(tmp_path, *statements))
    assert said in found.faults[0].message
    assert "which siftlog does not make" in found.faults[0].message
    assert found.log is None
    assert not found.is_rebuilt


@pytest.mark.parametrize("looks", [1, 5, 20])
def test_a_check_that_takes_too_long_is_broken_off(
    bundled: Bundled, looks: int
) -> None:
    left = iter(range(looks))

    def is_late() -> bool:
        return next(left, None) is None

    with pytest.raises(RunnerError, match="--time-limit SECONDS"):
        check(bundled.path, ignore_progress, is_late=is_late)


Make = Callable[[Path], object]


def _member(name: str, **attributes: object) -> Make:
    """An archive with a member of that name and those attributes."""

    def make(path: Path) -> None:
        with ZipFile(path, "w") as made:
            info = ZipInfo(name)
            info.filename = name
            info.create_system = 3
            info.external_attr = (stat.S_IFREG | 0o644) << 16
            for attribute, value in attributes.items():
                setattr(info, attribute, value)
            made.writestr(info, b"x" * 10)

    return make


def _kind(mode: int) -> Make:
    return _member("inputs/x", external_attr=(mode | 0o777) << 16)


def _twice(path: Path) -> None:
    with ZipFile(path, "w") as made:
        info = ZipInfo("inputs/x")
        info.external_attr = archive.MODE << 16
        made.writestr(info, b"x")
        made.filelist.append(info)


def _bomb(path: Path) -> None:
    zeros = bytes(1 << 20)
    archive.write(path, [("log.db", 64 << 20, [zeros] * 64)], method=ZIP_DEFLATED)


def _overlapping(path: Path) -> None:
    """Many names in the directory for one and the same content."""
    data = bytes(1 << 16)
    with ZipFile(path, "w") as made:
        for number in range(400):
            info = ZipInfo(f"inputs/{number}")
            info.external_attr = archive.MODE << 16
            info.compress_type = ZIP_DEFLATED
            if number == 0:
                made.writestr(info, data)
                first = made.getinfo("inputs/0")
            else:
                for name in ("header_offset", "compress_size", "file_size", "CRC"):
                    setattr(info, name, getattr(first, name))
                made.filelist.append(info)


def _encrypted(path: Path) -> None:
    _member("inputs/x")(path)
    data = bytearray(path.read_bytes())
    at = data.index(b"PK\x01\x02") + 8
    data[at : at + 2] = struct.pack("<H", 1)
    path.write_bytes(data)


def _hiding(*, first: bool) -> Make:
    """A member that stands in no directory, for programs that need none."""

    def make(path: Path) -> None:
        _member("inputs/hidden")(path)
        hidden = path.read_bytes()
        hidden = hidden[: hidden.index(b"PK\x01\x02")]
        with path.open("wb") as file:
            if first:
                file.write(hidden)
            with ZipFile(file, "w") as made:
                info = ZipInfo("inputs/x")
                info.external_attr = archive.MODE << 16
                made.writestr(info, b"x")
                if not first:
                    assert made.fp is not None
                    made.fp.write(hidden)
                    made.start_dir = made.fp.tell()

    return make


def _sealed(path: Path, make: Make) -> None:
    """Give what *make* makes a bundle's end."""
    make(path)
    data = path.read_bytes()
    if not archive.has_seal(path):
        comment = b"siftlog bundle sha256 " + b"0" * 64
        path.write_bytes(data[:-2] + struct.pack("<H", len(comment)) + comment)


HOSTILE: dict[str, tuple[Make, str]] = {
    "absolute": (_member("/etc/cron.d/x"), "is an absolute path"),
    "out": (_member("../../x"), "leads out of the folder"),
    "cut name": (_member("inputs/x\0.txt"), "cannot be shown"),
    "link": (_kind(stat.S_IFLNK), "not a plain file"),
    "device": (_kind(stat.S_IFBLK), "not a plain file"),
    "pipe": (_kind(stat.S_IFIFO), "not a plain file"),
    "folder": (_kind(stat.S_IFDIR), "not a plain file"),
    "twice": (_twice, "is there twice"),
    "bomb": (_bomb, "would become 67,108,864"),
    "overlapping": (_overlapping, "would become 26,214,400"),
    "encrypted": (_encrypted, "is encrypted"),
    "packed otherwise": (
        _member("inputs/x", compress_type=ZIP_BZIP2),
        "is packed in a way that bundles are not",
    ),
    "hidden before": (_hiding(first=True), "does not begin where the member before"),
    "hidden behind": (_hiding(first=False), "does not begin where the last member"),
    "no manifest": (_member("inputs/x"), "is missing: this is not a bundle"),
}


@pytest.fixture
def temporary(tmp_path: Path) -> Iterator[Path]:
    """The folder of temporary files, as long as the test lasts."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    yield folder
    tempfile.tempdir = before


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_archive_is_refused_and_writes_nothing(
    name: str, tmp_path: Path, temporary: Path
) -> None:
    make, said = HOSTILE[name]
    path = tmp_path / "x.zip"
    _sealed(path, make)
    before = sorted(tmp_path.rglob("*"))
    found = check(path, ignore_progress)
    assert [fault.what for fault in found.faults] == ["archive"]
    assert said in found.faults[0].message
    assert sorted(tmp_path.rglob("*")) == before
    assert not list(temporary.iterdir())


def test_more_members_than_a_bundle_has_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "MOST_MEMBERS", 2)
    path = packed(tmp_path / "x.zip", {"a": b"", "b": b"", "c": b""})
    (fault,) = check(path, ignore_progress).faults
    assert fault.message == "names 3 members, where 2 are the most"


def test_a_manifest_that_would_fill_the_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive, "LARGEST_MANIFEST", 10)
    path = packed(tmp_path / "x.zip", {"bundle.json": b"{" * 11})
    (fault,) = check(path, ignore_progress).faults
    assert (fault.where, fault.message) == ("bundle.json", "is too large")


def test_what_is_announced_smaller_than_it_is_does_not_come_out(
    bundled: Bundled, tmp_path: Path, temporary: Path
) -> None:
    path = tmp_path / "x.zip"
    packed(path, contents(bundled.path))
    data = bytearray(path.read_bytes())
    # the unpacked size of the log, in the directory
    at = data.index(b"log.db", data.index(b"PK\x01\x02")) - 46 + 24
    data[at : at + 4] = struct.pack("<I", 8192)
    path.write_bytes(data)
    found = check(path, ignore_progress)
    assert "log.db" in {fault.where for fault in found.faults}
    assert not list(temporary.iterdir())


def test_without_room_nothing_is_begun() -> None:
    require_room(10, Path("/tmp"), free=10)  # noqa: S108 - only named
    with pytest.raises(RunnerError, match=r"takes 3\.0 GB, and /x has 1\.0 GB left"):
        require_room(3 * 10**9, Path("/x"), free=10**9)


@pytest.mark.parametrize("content", [b"", b"PK", b"%PDF-1.7 " * 100, b"\0" * 5000])
def test_any_other_file_is_no_bundle(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "paper.pdf"
    path.write_bytes(content)
    found: BundleReport = check(path, ignore_progress)
    assert found.manifest is None
    assert found.faults[0].where == "its end"
