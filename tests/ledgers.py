"""Reads the ledger of a simulated endpoint, as its file says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TypeVar

import msgspec

from runner.simulate.billing import BatchLine, LedgerLine

_T = TypeVar("_T")


def read_ledger(path: Path) -> list[LedgerLine]:
    """What the ledger at *path* says at last of each call, in order of arrival."""
    lines = {line.n: line for line in _lines(path, LedgerLine)}
    return [lines[n] for n in sorted(lines)]


def read_batch_ledger(path: Path) -> list[BatchLine]:
    """What was done at the batch endpoints, as it was written down."""
    return list(_lines(path, BatchLine))


class _Kind(msgspec.Struct):
    act: str | None = None


def _lines(path: Path, form: type[_T]) -> Iterator[_T]:
    kinds, decoder = msgspec.json.Decoder(_Kind), msgspec.json.Decoder(form)
    with path.open("rb") as file:
        for line in file:
            if (kinds.decode(line).act is not None) is (form is BatchLine):
                yield decoder.decode(line)
