"""What runner and store declare is what the import contracts let others use."""

from __future__ import annotations

import re
import tomllib
from importlib import import_module
from itertools import pairwise
from pathlib import Path

import pytest

import runner
import store

ROOT = Path(__file__).resolve().parent.parent
AUTHORS, SHARED, MONITOR = (
    "For authors of jobs",
    "For the code that jobs share",
    "For the monitor",
)
_ENTRY = re.compile(r"^- (.*?):", re.MULTILINE | re.DOTALL)
_MODULE = re.compile(r"`([\w.]+)`")


def declared(audience: str) -> set[str]:
    """The modules in the list below the heading that begins with *audience*."""
    found = set()
    for package in (runner, store):
        blocks = (package.__doc__ or "").split("\n\n")
        for heading, entries in pairwise(blocks):
            if heading.startswith(audience):
                names = _MODULE.findall(" ".join(_ENTRY.findall(entries)))
                found |= {f"{package.__name__}.{name}" for name in names}
    return found


def allowed(contract: str, importers: str) -> set[str]:
    """The modules that a contract leaves out of what it forbids."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    (found,) = (
        each
        for each in settings["tool"]["importlinter"]["contracts"]
        if contract in each["name"]
    )
    assert {"runner", "store"} <= {*found["forbidden_modules"]}
    pairs = (entry.split(" -> ") for entry in found["ignore_imports"])
    return {imported for importer, imported in pairs if importer == importers}


def test_a_job_may_use_what_is_declared_for_authors_of_jobs() -> None:
    assert allowed("for authors of jobs", "jobs.**") == declared(AUTHORS)


def test_what_jobs_share_may_use_that_and_what_is_declared_for_it() -> None:
    used = declared(AUTHORS) | declared(SHARED)
    assert allowed("The kit uses", "jobs.**") == used
    assert not declared(AUTHORS) & declared(SHARED)


def test_the_monitor_may_use_its_part_of_the_store_and_nothing_of_the_runner() -> None:
    assert allowed("The monitor sees", "tui.**") == declared(MONITOR)
    assert not {name for name in declared(MONITOR) if name.startswith("runner")}


@pytest.mark.parametrize(
    "name", sorted(declared(AUTHORS) | declared(SHARED) | declared(MONITOR))
)
def test_what_is_declared_is_there(name: str) -> None:
    import_module(name)
