"""Files that are made once, in a folder and behind fsspec."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from fsspec.implementations.memory import MemoryFileSystem

from store.errors import PlaceAway, StoreError
from store.segments.place import Place


@pytest.fixture(params=["folder", "file", "memory"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    addresses = {
        "folder": str(tmp_path / "runs" / "r1"),
        "file": (tmp_path / "a b" / "r1").as_uri(),
        "memory": f"memory://{tmp_path}/r1",
    }
    return Place.of(addresses[request.param])


def test_what_is_put_is_there_under_its_name(place: Place) -> None:
    assert place.names("seg") == []
    assert place.get("seg/a/1.zst") is None
    assert place.put_new("seg/b/2.zst", b"two")
    assert place.put_new("seg/a/1.zst", b"one")
    assert place.put_new("done/a.json", b"{}")
    assert place.names("seg") == ["seg/a/1.zst", "seg/b/2.zst"]
    assert place.names("seg/b") == ["seg/b/2.zst"]
    assert place.get("seg/a/1.zst") == b"one"


def test_nothing_is_overwritten(place: Place) -> None:
    assert place.put_new("seg/a/1.zst", b"one")
    assert not place.put_new("seg/a/1.zst", b"other")
    assert place.get("seg/a/1.zst") == b"one"


def test_what_is_removed_is_gone_and_may_be_removed_again(place: Place) -> None:
    place.put_new("seg/a/1.zst", b"one")
    place.remove("seg/a/1.zst")
    place.remove("seg/a/1.zst")
    assert place.get("seg/a/1.zst") is None
    assert place.names("seg") == []


def test_a_second_look_sees_what_another_has_put(place: Place) -> None:
    place.names("seg")
    Place.of(place.address).put_new("seg/a/1.zst", b"one")
    assert place.names("seg") == ["seg/a/1.zst"]


def test_listings_that_a_client_remembers_are_asked_for_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remembered: dict[str, list[str]] = {}
    find = MemoryFileSystem.find

    def once(self: MemoryFileSystem, path: str) -> list[str]:
        return remembered.setdefault(path, find(self, path))

    def forget(_self: MemoryFileSystem) -> None:
        remembered.clear()

    monkeypatch.setattr(MemoryFileSystem, "find", once)
    monkeypatch.setattr(MemoryFileSystem, "invalidate_cache", forget)
    place = Place.of(f"memory://{tmp_path}")
    assert place.names("seg") == []
    Place.of(f"memory://{tmp_path}").put_new("seg/a", b"one")
    assert place.names("seg") == ["seg/a"]


def test_a_place_is_proved_without_leaving_anything(place: Place) -> None:
    place.prove()
    place.prove()
    assert place.names("") == []


def test_a_file_that_was_begun_is_not_seen(tmp_path: Path) -> None:
    place = Place.of(str(tmp_path))
    place.put_new("seg/a/1.zst", b"one")
    (tmp_path / "seg" / "a" / ".2.zst.77-aa.tmp").write_bytes(b"tw")
    assert place.names("seg") == ["seg/a/1.zst"]


def test_a_disk_that_fails_leaves_nothing_and_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    (tmp_path / "seg").mkdir()
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(PlaceAway, match="No space left on device"):
        Place.of(str(tmp_path)).put_new("seg/1.zst", b"one")
    assert list(tmp_path.rglob("*.*")) == []


def test_a_file_system_without_hard_links_does_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unknown(_old: Path, _new: Path) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr("os.link", unknown)
    place = Place.of(str(tmp_path))
    assert place.put_new("seg/1.zst", b"one")
    assert not place.put_new("seg/1.zst", b"other")
    assert [file.name for file in tmp_path.rglob("*.*")] == ["1.zst"]
    assert place.get("seg/1.zst") == b"one"


@pytest.mark.parametrize(
    ("number", "is_away"), [(errno.EINVAL, False), (errno.EIO, True)]
)
def test_a_folder_that_cannot_be_synced_is_no_failing_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, is_away: bool
) -> None:
    def files_only(descriptor: int) -> None:
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(number, os.strerror(number))

    monkeypatch.setattr("os.fsync", files_only)
    place = Place.of(str(tmp_path))
    if is_away:
        with pytest.raises(PlaceAway):
            place.put_new("1.zst", b"one")
    else:
        assert place.put_new("1.zst", b"one")


def test_a_folder_that_is_a_file_is_away(tmp_path: Path) -> None:
    (tmp_path / "place").write_text("")
    place = Place.of(str(tmp_path / "place"))
    with pytest.raises(PlaceAway):
        place.put_new("seg/1.zst", b"one")
    with pytest.raises(PlaceAway):
        place.names("seg")


def test_whatever_a_client_raises_is_the_place_being_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_self: MemoryFileSystem, path: str, **_more: object) -> list[str]:
        raise RuntimeError(f"403 for {path}")

    monkeypatch.setattr(MemoryFileSystem, "find", refuse)
    with pytest.raises(PlaceAway, match="403 for"):
        Place.of(f"memory://{tmp_path}").names("seg")


def test_a_password_in_an_address_is_not_shown(tmp_path: Path) -> None:
    place = Place.of(f"memory://ada:s3cret@host{tmp_path}")
    assert place.address == f"memory://ada:...@host{tmp_path}"
    with pytest.raises(StoreError) as caught:
        Place.of("nosuch://ada:s3cret@host/runs")
    assert "s3cret" not in str(caught.value)


def test_a_folder_of_another_machine_is_refused() -> None:
    with pytest.raises(StoreError, match="a folder of another machine"):
        Place.of("file://node7/scratch")


@pytest.mark.parametrize("step", ["fsync", "link"])
def test_a_crash_leaves_a_whole_file_or_none(tmp_path: Path, step: str) -> None:
    place = Place.of(str(tmp_path))
    place.put_new("seg/0.zst", b"zero")
    code = (
        "import os, sys\n"
        "from store.segments.place import Place\n"
        f"os.{step} = lambda *_: os._exit(9)\n"
        "Place.of(sys.argv[1]).put_new('seg/1.zst', b'one')\n"
    )
    words = [sys.executable, "-c", code, place.address]
    assert subprocess.run(words, check=False).returncode == 9
    assert place.names("seg") == ["seg/0.zst"]
    assert place.put_new("seg/1.zst", b"one")
    assert place.get("seg/1.zst") == b"one"


@pytest.mark.parametrize("address", ["gs://bucket/runs", "nosuch://host/runs"])
def test_an_address_that_nothing_here_can_reach_is_refused_at_once(
    address: str,
) -> None:
    with pytest.raises(StoreError, match="install that package"):
        Place.of(address)
