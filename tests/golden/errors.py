"""Commands that are refused, from the table `errors.toml`."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

from tests.golden.cases import Case, steps

TABLE = Path(__file__).with_name("errors.toml")
CODED = ("@latin-1:", "@utf-16:", "@hex:")
"""Marks of a content that is not UTF-8."""


def error_cases() -> Iterator[Case]:
    """A case for each group of the table."""
    with TABLE.open("rb") as file:
        groups = tomllib.load(file)["group"]
    for group in groups:
        lines = [*group.get("setup", ()), *group["lines"]]
        files = group.get("files", {})
        yield Case(
            name=f"errors/{group['name']}",
            steps=steps(*lines),
            files={name: _content(text) for name, text in files.items()},
        )


def _content(text: str) -> str | bytes:
    for mark in CODED:
        if text.startswith(mark):
            rest = text.removeprefix(mark)
            if mark == "@hex:":
                return bytes.fromhex(rest)
            return rest.encode(mark[1:-1])
    return text
