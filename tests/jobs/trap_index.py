"""Where the tests of a specification's numbered traps stand."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

Index: TypeAlias = Mapping[int, tuple[tuple[str, str], ...]]
"""Module, from the index's own folder, and name of each test, by number."""

FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


def gone(named: Iterable[tuple[str, str]], here: Path) -> list[tuple[str, str]]:
    """The tests that are named and do not exist."""
    return [(path, name) for path, name in named if name not in _tests(here / path)]


def _tests(path: Path) -> set[str]:
    module = ast.parse(path.read_text("utf-8"))
    return {each.name for each in module.body if isinstance(each, FUNCTION)}
