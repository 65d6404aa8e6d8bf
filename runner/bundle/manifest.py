"""Describes a bundle: its members, its environment, the paths in it."""

from __future__ import annotations

import platform
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final

import msgspec
from pydantic import BaseModel

from runner.errors import RunnerError
from runner.job import InputFile

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_EXTRA = re.compile(r"\bextra\s*==")


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Software of a computation; it names no machine or person."""

    python: str
    implementation: str  #: such as "CPython"
    platform: str  #: system and processor, such as "Linux x86_64"
    sqlite: str
    packages: Mapping[str, str]  #: name to version, by name


def environment(packages: Iterable[str]) -> Environment:
    """Return this process's environment, with the installed *packages*."""
    return Environment(
        python=platform.python_version(),
        implementation=platform.python_implementation(),
        platform=f"{platform.system()} {platform.machine()}",
        sqlite=sqlite3.sqlite_version,
        packages={
            name: version.version
            for name in sorted(packages)
            if (version := _distribution(name)) is not None
        },
    )


def differences(then: Environment, now: Environment) -> tuple[str, ...]:
    """Return changed versions, as "numpy 2.2.0, here 2.3.1"; "-" is missing."""
    pairs = [
        ("Python", then.python, now.python),
        ("implementation", then.implementation, now.implementation),
        ("platform", then.platform, now.platform),
        ("SQLite", then.sqlite, now.sqlite),
    ]
    pairs += [
        (name, then.packages.get(name, "-"), now.packages.get(name, "-"))
        for name in sorted({*then.packages, *now.packages})
    ]
    return tuple(f"{label} {a}, here {b}" for label, a, b in pairs if a != b)


def required(*roots: str) -> frozenset[str]:
    """Return the names of all installed packages that *roots* depend on.

    Dependencies are transitive; extras are included for *roots* only.
    """
    names: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        package = None if name in names else _distribution(name)
        if package is None:
            continue  # seen already, or not installed here
        names.add(name)
        for requirement in package.requires or ():
            match = _NAME.match(requirement)
            if match and (name in roots or not _EXTRA.search(requirement)):
                waiting.append(match[0])
    return frozenset(names)


def _distribution(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None


NAME: Final = "bundle.json"
LOG: Final = "log.db"
CONFIG: Final = "run.toml"
INPUTS: Final = "inputs"
SCORES: Final = "scores"
LABELS: Final = "labels"
SCORECARD: Final = "scorecard.json"
REBUILT: Final = "rebuilt.json"
"""The recomputed scorecard, beside the log of an unpacked bundle."""

FORMAT: Final = 1
"""Version of the format of bundles."""

REDACTED_FORMAT: Final = 2
"""Version of the format of redacted bundles; later versions are not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleMember:
    """A file of a bundle."""

    name: str
    size: int  #: bytes, unpacked
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Description of a bundle and its members."""

    format: int
    run: str
    job: str
    scoring: int
    digest: str  #: SHA-256 of scorecard.json
    partial: bool  #: the run is unfinished in this bundle
    events: int
    head: str  #: last hash of the log's chain
    environment: Environment  #: environment in which the scorecard was recomputed
    members: tuple[BundleMember, ...]  #: all members except this file, by name


@dataclass(frozen=True, slots=True, kw_only=True)
class RedactedManifest(Manifest):
    """Description of a redacted bundle; `digest` and `head` are of its members."""

    commitments: Mapping[str, str]
    """Hex, to the hash of the original log's last commit, `log`, and to the original
    scorecard, `scorecard`."""
    hidden: int  #: texts of the scorecard and of names that are left out


def member_of(scoring: int, name: str) -> str:
    """Return the member name of a scoring's file."""
    return f"{SCORES}/{scoring}/{name}"


def scorecard_of(scoring: int) -> str:
    """Return the member name of a scoring's scorecard."""
    return member_of(scoring, SCORECARD)


def encoded(manifest: Manifest) -> bytes:
    """Encode a manifest; equal manifests give equal bytes."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Versioned:
    format: int


def decoded(content: bytes) -> Manifest | int:
    """Decode a manifest; return the format of a manifest of a later siftlog.

    Raises:
        ValueError: it is invalid.
    """
    version = msgspec.json.decode(content, type=_Versioned).format
    if version > REDACTED_FORMAT:
        return version
    if version == REDACTED_FORMAT:
        return msgspec.json.decode(content, type=RedactedManifest)
    return msgspec.json.decode(content, type=Manifest)


@dataclass(frozen=True, slots=True, kw_only=True)
class BundledPath:
    """A path in a setting, and the corresponding member or prefix."""

    path: Path
    member: str


def bundled_paths(settings: BaseModel) -> Iterator[BundledPath]:
    """Yield every path in the settings."""
    for setting, value in settings:
        for path, member in _setting_paths(setting, value):
            yield BundledPath(path=path, member=member)


def _setting_paths(setting: str, value: object) -> Iterator[tuple[Path, str]]:
    if isinstance(value, Path):
        yield value, f"{INPUTS}/{setting}/{value.name}"
    elif isinstance(value, tuple | list):
        for number, item in enumerate(value, 1):
            if isinstance(item, Path):
                yield item, f"{INPUTS}/{setting}/{number}/{item.name}"


def files(settings: BaseModel, inputs: Sequence[InputFile]) -> Mapping[str, Path]:
    """Return the files that a job reads under its settings, by member.

    Raises:
        RunnerError: a file is below none of the settings' paths.
    """
    bundled = tuple(bundled_paths(settings))
    by_member: dict[str, Path] = {}
    for input_file in inputs:
        for bundled_path in _holding(input_file, bundled):
            for file in _files(input_file.path):
                below = file.relative_to(bundled_path.path).as_posix()
                by_member[
                    bundled_path.member
                    if below == "."
                    else f"{bundled_path.member}/{below}"
                ] = file
    return by_member


def _holding(
    input_file: InputFile, bundled: Sequence[BundledPath]
) -> list[BundledPath]:
    """Return the paths that name an input, or else those nearest above it."""
    above = [
        bundled_path
        for bundled_path in bundled
        if input_file.path.is_relative_to(bundled_path.path)
    ]
    if not above:
        raise RunnerError(
            f"{input_file.path} ({input_file.setting}) is named by no setting, and "
            "a bundle could not be scored with a copy of it: have the job take it "
            "as a setting of type Path."
        )
    nearest = max(len(bundled_path.path.parts) for bundled_path in above)
    return [
        bundled_path
        for bundled_path in above
        if len(bundled_path.path.parts) == nearest
    ]


def _files(path: Path) -> list[Path]:
    """Return the file, or the files of a folder that its hash covers."""
    if not path.is_dir():
        return [path]
    return sorted(file for file in path.rglob("*") if file.is_file())


def moved(settings: BaseModel, folder: Path) -> BaseModel:
    """Return the settings with all paths in *folder*, the unpacked bundle.

    All paths point into it, even if nothing is there: with a bundle's settings, a job
    reads no other file of this machine.
    """
    return settings.model_copy(
        update={name: _moved(name, value, folder) for name, value in settings}
    )


def _moved(setting: str, value: Any, folder: Path) -> Any:  # noqa: ANN401 - any job's
    if isinstance(value, Path):
        ((_, member),) = _setting_paths(setting, value)
        return folder / member
    if isinstance(value, tuple | list):
        members = dict(_setting_paths(setting, value))
        return type(value)(
            folder / members[item] if isinstance(item, Path) else item for item in value
        )
    return value
