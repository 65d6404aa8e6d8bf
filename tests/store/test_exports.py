"""The public surface of the package cannot drift."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import store

ROOT = Path(store.__file__).resolve().parent.parent
_IMPORT = re.compile(r"^\s*(?:from|import) store\.(\w+)", re.MULTILINE)


def test_the_public_modules_are_sorted_and_there() -> None:
    assert store.__all__ == sorted(store.__all__)
    for name in store.__all__:
        importlib.import_module(f"store.{name}")


def test_the_other_packages_use_nothing_else() -> None:
    used = {
        module
        for package in ("runner", "jobs", "tui")
        for path in (ROOT / package).rglob("*.py")
        for module in _IMPORT.findall(path.read_text("utf-8"))
    }
    assert used - set(store.__all__) == set()
