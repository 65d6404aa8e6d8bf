"""Finds a folder of the user's that hides a package of siftlog on the import path.

The first entry of the import path is often the current folder, and the names of our
packages are common ones. In an installation for development, a folder without any
Python file hides a package too.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Final

PACKAGES: Final = ("store", "runner", "jobs", "tui")
"""The packages of siftlog; all lie in one folder."""


def hidden_package(home: Path) -> str | None:
    """Return a sentence about a package that is not the one in the folder *home*."""
    for package in PACKAGES:
        spec = find_spec(package)
        if spec is None:
            continue
        places = spec.submodule_search_locations or (spec.origin or "",)
        if home / package not in {Path(place).resolve() for place in places}:
            return (
                f"{next(iter(places))} hides the package {package!r} of siftlog: "
                "rename it, or start in another folder."
            )
    return None
