"""The formats of files that papers are imported from, told by their names' ends."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias

from runner.errors import UsageError

Form: TypeAlias = Literal["json", "jsonl", "csv", "tsv", "pubmed", "ris", "bibtex"]

ENDS: Final[Mapping[str, Form]] = {
    ".json": "json",
    ".jsonl": "jsonl",
    ".csv": "csv",
    ".tsv": "tsv",
    ".xml": "pubmed",
    ".ris": "ris",
    ".bib": "bibtex",
}
"""Formats by the end of a file's name, `.gz` apart."""


def form_of(path: Path) -> Form:
    """The format of a file by its name.

    Raises:
        UsageError: the name says nothing.
    """
    name = path.name.lower().removesuffix(".gz")
    form = ENDS.get(Path(name).suffix)
    if form is None:
        raise UsageError(
            f"{path}: its name ends in none of {', '.join(ENDS)} (say the format with "
            "--format)."
        )
    return form
