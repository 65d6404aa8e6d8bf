"""Reads JSON and JSONL: lists of papers, and results of agents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import msgspec

from jobs.inputs.files import lines, read_json
from jobs.inputs.rows import kind_of
from jobs.review_benchmark.database.formats.entry import entry_of
from jobs.review_benchmark.database.paper import BadEntry, Entry
from jobs.review_benchmark.inputs.results import EXCLUDED, INCLUDED
from runner.errors import DatasetError

_LISTS = (("papers",), INCLUDED, EXCLUDED)
"""Under which names an object holds papers, included ones first."""

_DECODER = msgspec.json.Decoder()


def read_whole(path: Path) -> Iterator[Entry | BadEntry]:
    """The papers in a JSON file: a list of them, or an agent's result.

    Raises:
        DatasetError: the file is neither.
    """
    value = read_json(path)
    found = value if isinstance(value, list) else _inside(value)
    if found is None:
        raise DatasetError(
            f"{path.name}: neither a list nor an object with papers or included_papers "
            "(see --format for the other formats)."
        )
    for number, each in enumerate(found, start=1):
        yield _entry(number, each)


def read_lines(path: Path) -> Iterator[Entry | BadEntry]:
    """The papers in a JSONL file: one a line, or the result of an agent a line.

    Raises:
        DatasetError: the file is not to be read.
    """
    numbers = count(1)
    for _, text in lines(path):
        if not text.strip():
            continue
        try:
            value = _DECODER.decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            reason = f"not valid JSON, {error} (each line must hold one object)"
            yield BadEntry(number=next(numbers), reason=reason)
            continue
        inside = _inside(value)
        for each in [value] if inside is None else inside:
            yield _entry(next(numbers), each)


def _inside(value: object) -> list[Any] | None:
    """What stands in the lists of an object; None where it has none."""
    if not isinstance(value, Mapping):
        return None
    named = [next((name for name in names if name in value), None) for names in _LISTS]
    lists = [value[name] for name in named if name is not None]
    if not lists or not all(isinstance(each, list) for each in lists):
        return None
    return [each for found in lists for each in found]


def _entry(number: int, value: object) -> Entry | BadEntry:
    if isinstance(value, Mapping):
        return entry_of(number, value)
    reason = f"{kind_of(value)} instead of an object (each paper must be one)"
    return BadEntry(number=number, reason=reason)
