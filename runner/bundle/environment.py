"""The versions of all that took part in a scoring, and how two such lists differ."""

from __future__ import annotations

import platform
import re
import sqlite3
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import Distribution, PackageNotFoundError, distribution

_NAME = re.compile(r"[A-Za-z0-9._-]+")
_EXTRA = re.compile(r"\bextra\s*==")


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Where something was computed; nothing in it names a machine or a person."""

    python: str
    implementation: str  #: such as "CPython"
    platform: str  #: system and processor, such as "Linux x86_64"
    sqlite: str
    packages: Mapping[str, str]  #: name to version, by name


def environment(packages: Iterable[str]) -> Environment:
    """This process's environment, with those of the packages that are installed."""
    return Environment(
        python=platform.python_version(),
        implementation=platform.python_implementation(),
        platform=f"{platform.system()} {platform.machine()}",
        sqlite=sqlite3.sqlite_version,
        packages={
            name: found.version
            for name in sorted(packages)
            if (found := _distribution(name)) is not None
        },
    )


def differences(then: Environment, now: Environment) -> tuple[str, ...]:
    """What is not as it was, each as "numpy 2.2.0, here 2.3.1"; "-" is missing."""
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
    return tuple(f"{what} {a}, here {b}" for what, a, b in pairs if a != b)


def required(*roots: str) -> frozenset[str]:
    """Names of all installed packages that the named ones work with.

    That is what they require, and so on; of the named ones also what extras add.
    """
    found: set[str] = set()
    waiting = list(roots)
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        package = None if name in found else _distribution(name)
        if package is None:
            continue  # seen already, or for another platform or Python
        found.add(name)
        for requirement in package.requires or ():
            match = _NAME.match(requirement)
            if match and (name in roots or not _EXTRA.search(requirement)):
                waiting.append(match[0])
    return frozenset(found)


def _distribution(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None
