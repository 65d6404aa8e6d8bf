"""What packages declare, beside what `importlib.metadata` finds."""

from __future__ import annotations

import sys
from importlib import metadata
from pathlib import Path

import pytest

from runner.installed import entry_points, version
from tests.plugging import plugged

GROUPS = ("jobs", "outlines", "recipes", "reports", "decisions", "commands")


@pytest.mark.parametrize("group", [f"siftlog.{name}" for name in GROUPS])
def test_entry_points_are_those_of_the_standard_library(group: str) -> None:
    declared = metadata.entry_points(group=group)
    assert declared
    assert {*entry_points(group=group)} == {
        (point.name, point.value, point.group) for point in declared
    }
    for point in declared:
        assert entry_points(group=group, name=point.name)[0].value == point.value


def test_versions_are_those_of_the_standard_library() -> None:
    for package in ("siftlog", "typing-extensions", "Pydantic_Core", "click"):
        assert version(package) == metadata.version(package)
    with pytest.raises(metadata.PackageNotFoundError):
        version("no-such-package")


def test_the_first_package_of_a_name_on_the_path_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("a", "b"):
        plugged(tmp_path / folder, toy=f"{folder}:job")
    monkeypatch.setattr(sys, "path", [f"{tmp_path / name}" for name in ("a", "b")])
    (point,) = entry_points(group="siftlog.jobs")
    assert point.value == "a:job"
    # installed while the process runs, as the first on the path
    plugged(tmp_path / "a" / "c", toy="c:job")
    (tmp_path / "a" / "c" / "plugged-1.dist-info").rename(
        tmp_path / "a" / "other-2.dist-info"
    )
    assert {point.value for point in entry_points(group="siftlog.jobs")} == {
        *("a:job", "c:job")
    }


def test_an_entry_point_loads_a_module_or_an_attribute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = "os.path:join"
    plugged(tmp_path, whole="json", inner=path, extra=f"{path} [all]", none="json:none")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    points = {point.name: point for point in entry_points(group="siftlog.jobs")}
    assert points["whole"].load() is sys.modules["json"]
    assert points["inner"].load() is points["extra"].load()
    with pytest.raises(AttributeError):
        points["none"].load()


def test_a_path_without_folders_has_no_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file.zip").write_text("no folder")
    places = ["", str(tmp_path / "file.zip"), str(tmp_path / "missing")]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", places)
    assert entry_points(group="siftlog.jobs") == ()
