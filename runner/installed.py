"""Reads what installed packages declare: entry points and versions.

It finds the packages and reads the files that `importlib.metadata` does. That module
takes 25 ms of processor time to import and to list the entry points of two hundred
packages, which is a third of `siftlog --help`; this one takes 3.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import lru_cache
from importlib import import_module
from operator import attrgetter
from typing import Any, NamedTuple

_SUFFIXES = (".dist-info", ".egg-info")
_DECLARED = b"[siftlog."
"""Files without it are not parsed: they have no group of ours."""


class EntryPoint(NamedTuple):
    """An object that a package declares by name in a group."""

    name: str
    value: str  #: `module:attribute`, or any word
    group: str

    def load(self) -> Any:  # noqa: ANN401 - type depends on the group
        """Import the object; its module may raise anything."""
        path = self.value.partition("[")[0]  # extras
        module, _, attribute = path.partition(":")
        loaded = import_module(module.strip())
        return attrgetter(attribute.strip())(loaded) if attribute else loaded


def entry_points(*, group: str, name: str | None = None) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group `siftlog.*`, or those of one name.

    Where several folders of the import path hold a package, its first one counts.
    """
    return tuple(
        point
        for metadata in _packages().values()
        for point in _points(metadata)
        if point.group == group and name in {None, point.name}
    )


def version(package: str) -> str:
    """Return the version of an installed package.

    Raises:
        PackageNotFoundError: it is not installed.
    """
    metadata = _packages().get(_normal(package))
    for name in ("METADATA", "PKG-INFO"):
        content = b"" if metadata is None else _content(metadata, name)
        for line in content.splitlines():
            key, _, value = line.partition(b":")
            if key.lower() == b"version":
                return value.strip().decode()
    from importlib import metadata as standard  # noqa: PLC0415 - slow to import

    return standard.version(package)


def _packages() -> dict[str, str]:
    """Return the folder of metadata of each package, by its normalised name."""
    packages: dict[str, str] = {}
    for place in sys.path:
        try:
            changed = os.stat(place or ".").st_mtime_ns  # noqa: PTH116 - Path is slow
        except OSError:
            continue
        for name, folder in _in_folder(place or ".", changed):
            packages.setdefault(name, folder)
    return packages


@lru_cache
def _in_folder(place: str, changed: int) -> tuple[tuple[str, str], ...]:
    """Return the packages of one folder of the import path.

    Args:
        place: the folder.
        changed: when an entry was last added or removed, ns: part of the cache's key.
    """
    del changed
    try:
        entries = os.listdir(place)  # noqa: PTH208 - as above
    except OSError:
        return ()  # a zip file has no jobs
    return tuple(
        (_normal(entry.removesuffix(suffix).partition("-")[0]), f"{place}/{entry}")
        for entry in entries
        for suffix in _SUFFIXES
        if entry.endswith(suffix)
    )


def _normal(package: str) -> str:
    return package.lower().replace("-", "_").replace(".", "_")


def _points(metadata: str) -> Iterator[EntryPoint]:
    """Yield the entry points of one package, if it declares any for siftlog."""
    content = _content(metadata, "entry_points.txt")
    if _DECLARED not in content:
        return
    group = ""
    for written in content.decode().splitlines():
        line = written.strip()
        name, is_point, value = line.partition("=")
        if line.startswith("["):
            group = line[1:-1]
        elif is_point and not line.startswith("#"):
            yield EntryPoint(name.strip(), value.strip(), group)


def _content(metadata: str, name: str) -> bytes:
    try:
        with open(f"{metadata}/{name}", "rb") as file:  # noqa: PTH123 - as above
            return file.read()
    except OSError:
        return b""
