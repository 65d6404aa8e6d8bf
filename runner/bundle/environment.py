"""The versions of all that took part in a scoring, and how two such lists differ."""

from __future__ import annotations

import platform
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution

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


def environment(*packages: str) -> Environment:
    """This process's environment.

    Args:
        packages: distributions that are listed with all that they require.
    """
    return Environment(
        python=platform.python_version(),
        implementation=platform.python_implementation(),
        platform=f"{platform.system()} {platform.machine()}",
        sqlite=sqlite3.sqlite_version,
        packages=dict(sorted(_required(packages))),
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


def _required(packages: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Each distribution once, with all that it requires and that is installed.

    What extras bring is left out: they are not asked for, and tests are among them.
    """
    seen: set[str] = set()
    waiting = list(packages)
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in seen:
            continue
        seen.add(name)
        try:
            found = distribution(name)
        except PackageNotFoundError:
            continue  # for another platform or Python
        yield name, found.version
        for requirement in found.requires or ():
            match = _NAME.match(requirement)
            if match and not _EXTRA.search(requirement):
                waiting.append(match[0])
