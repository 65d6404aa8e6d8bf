"""The versions of all that took part, and what of them is another one here.

Inputs keep their names in a bundle, and settings that were moved find them there.
"""

from __future__ import annotations

import platform
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import pytest
from pydantic import BaseModel

from runner.bundle.manifest import differences, environment, files, moved, required
from runner.errors import RunnerError
from runner.job import InputFile


def test_what_a_package_requires_is_listed_with_what_that_requires() -> None:
    names = required("siftlog")
    assert {"siftlog", "pydantic", "pydantic-core", "numpy"} <= names
    here = environment(names)
    assert here.python == platform.python_version()
    assert here.packages["numpy"] == version("numpy")
    assert list(here.packages) == sorted(names)


def test_nothing_in_it_names_the_machine() -> None:
    assert platform.node() not in str(environment(required("siftlog")))


def test_every_difference_is_told_with_both_versions() -> None:
    here = environment(["numpy", "siftlog"])
    assert differences(here, here) == ()
    then = replace(here, python="3.9.1", packages={"numpy": "1.0", "gone": "2"})
    assert differences(then, replace(here, packages={"numpy": "2.0", "new": "1"})) == (
        f"Python 3.9.1, here {here.python}",
        "gone 2, here -",
        "new -, here 1",
        "numpy 1.0, here 2.0",
    )


class Settings(BaseModel):
    """Every form in which a setting names files."""

    one: Path | None = None
    tree: Path | None = None
    several: tuple[Path, ...] = ()
    words: tuple[str, ...] = ("a/b",)
    count: int = 3


@pytest.fixture
def data(tmp_path: Path) -> Path:
    for name in ("one.csv", "tree/deep/x.md", "tree/deep/y.md", "tree/z.md", "p/q.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    return tmp_path


def test_files_and_folders_come_with_the_names_that_they_have(data: Path) -> None:
    settings = Settings(
        one=data / "one.csv",
        tree=data / "tree",
        several=(data / "p/q.txt", data / "one.csv"),
    )
    named = (settings.one, settings.tree, *settings.several)
    inputs = [InputFile(setting="x", path=path) for path in named if path]
    found = files(settings, inputs)
    assert {
        name: path.relative_to(data).as_posix() for name, path in found.items()
    } == {
        "inputs/one/one.csv": "one.csv",
        "inputs/several/1/q.txt": "p/q.txt",
        "inputs/several/2/one.csv": "one.csv",
        "inputs/tree/tree/deep/x.md": "tree/deep/x.md",
        "inputs/tree/tree/deep/y.md": "tree/deep/y.md",
        "inputs/tree/tree/z.md": "tree/z.md",
    }
    there = moved(settings, Path("/unpacked"))
    assert there == Settings(
        one=Path("/unpacked/inputs/one/one.csv"),
        tree=Path("/unpacked/inputs/tree/tree"),
        several=(
            Path("/unpacked/inputs/several/1/q.txt"),
            Path("/unpacked/inputs/several/2/one.csv"),
        ),
    )


def test_of_a_folder_that_is_read_in_part_that_part_alone_comes(data: Path) -> None:
    settings = Settings(tree=data / "tree")
    found = files(settings, [InputFile(setting="deep", path=data / "tree/deep")])
    assert sorted(found) == ["inputs/tree/tree/deep/x.md", "inputs/tree/tree/deep/y.md"]


def test_a_file_goes_where_the_nearest_setting_names_it(data: Path) -> None:
    settings = Settings(tree=data, one=data / "tree/z.md")
    found = files(settings, [InputFile(setting="one", path=data / "tree/z.md")])
    assert sorted(found) == ["inputs/one/z.md"]


def test_a_path_that_nothing_was_read_from_leads_into_the_bundle_too() -> None:
    there = moved(Settings(one=Path("/etc/passwd")), Path("/unpacked"))
    assert there == Settings(one=Path("/unpacked/inputs/one/passwd"))


def test_an_input_that_no_setting_names_cannot_be_bundled(data: Path) -> None:
    with pytest.raises(RunnerError, match=r"one\.csv \(shipped\) is named by no"):
        files(Settings(), [InputFile(setting="shipped", path=data / "one.csv")])
