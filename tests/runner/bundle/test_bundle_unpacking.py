"""Archives that somebody made to do harm are refused before anything is unpacked."""

from __future__ import annotations

import stat
import struct
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from zipfile import ZIP_BZIP2, ZIP_DEFLATED, ZipFile, ZipInfo

import pytest

from runner.bundle import archive
from runner.bundle.verify import BundleReport, check, require_room
from runner.errors import RunnerError
from store.errors import ignore_progress
from tests.runner.bundle.conftest import Bundled
from tests.runner.bundle.forging import contents, packed

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
    "link": (_kind(stat.S_IFLNK), "no plain file"),
    "device": (_kind(stat.S_IFBLK), "no plain file"),
    "pipe": (_kind(stat.S_IFIFO), "no plain file"),
    "folder": (_kind(stat.S_IFDIR), "no plain file"),
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
    "no manifest": (_member("inputs/x"), "is missing: this is no bundle"),
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
