"""Where the files that settings name lie in a bundle.

A setting's file keeps its own name, `inputs/<setting>/<name>`, and a folder what is
below it: jobs tell the parts of a folder, and tables in findings, by names. What lies
above is the machine's business and stays there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from runner.bundle.manifest import INPUTS
from runner.errors import RunnerError
from runner.job import InputFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A path that a setting names, and the member of that name, or above it."""

    path: Path
    member: str


def places(settings: BaseModel) -> Iterator[Place]:
    """Every path in the settings."""
    for setting, value in settings:
        for path, member in _named(setting, value):
            yield Place(path=path, member=member)


def _named(setting: str, value: object) -> Iterator[tuple[Path, str]]:
    if isinstance(value, Path):
        yield value, f"{INPUTS}/{setting}/{value.name}"
    elif isinstance(value, tuple | list):
        for number, each in enumerate(value, 1):
            if isinstance(each, Path):
                yield each, f"{INPUTS}/{setting}/{number}/{each.name}"


def files(settings: BaseModel, inputs: Sequence[InputFile]) -> Mapping[str, Path]:
    """The files that a job reads under its settings, by the member of each.

    Raises:
        RunnerError: one is not below any path that the settings name.
    """
    known = tuple(places(settings))
    found: dict[str, Path] = {}
    for each in inputs:
        for place in _holding(each, known):
            for file in _files(each.path):
                below = file.relative_to(place.path).as_posix()
                found[place.member if below == "." else f"{place.member}/{below}"] = (
                    file
                )
    return found


def _holding(given: InputFile, known: Sequence[Place]) -> list[Place]:
    """The places that name an input, or else those nearest above it."""
    above = [place for place in known if given.path.is_relative_to(place.path)]
    if not above:
        raise RunnerError(
            f"{given.path} ({given.setting}) is named by no setting, and a bundle "
            "could not be scored with a copy of it: have the job take it as a setting "
            "of type Path."
        )
    nearest = max(len(place.path.parts) for place in above)
    return [place for place in above if len(place.path.parts) == nearest]


def _files(path: Path) -> list[Path]:
    """A file, or those that count for a folder's hash."""
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.rglob("*") if file.is_file())


def moved(settings: BaseModel, folder: Path) -> BaseModel:
    """The same settings of a bundle that lies unpacked in *folder*.

    Every path leads into it, also where nothing lies there: a job that was given a
    bundle's settings reads no other file of this machine.
    """
    return settings.model_copy(
        update={name: _moved(name, value, folder) for name, value in settings}
    )


def _moved(setting: str, value: Any, folder: Path) -> Any:  # noqa: ANN401 - any job's
    if isinstance(value, Path):
        ((_, member),) = _named(setting, value)
        return folder / member
    if isinstance(value, tuple | list):
        members = dict(_named(setting, value))
        return type(value)(
            folder / members[each] if isinstance(each, Path) else each for each in value
        )
    return value
