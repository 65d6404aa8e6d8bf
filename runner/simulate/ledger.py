"""The endpoint's own record of what it served, to be held against a run's log.

A request gets its line before the first byte of its reply leaves. Only where the
client turns out to have gone before the last byte was out, a second line with the same
`n` says so: the last line of a request counts. Keys are never written, only whether
there was one.

The batch endpoints write lines of another kind to the same file: what was done there,
and every item that was billed.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from runner.errors import UsageError
from runner.simulate.fate import Outcome

_T = TypeVar("_T")


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerLine:
    """One request, and what became of it."""

    n: int  #: order of arrival, from 1
    request: str  #: SHA-256 of its body, hex
    model: str
    seen: int  #: how often the same body had come before
    outcome: Outcome
    status: int  #: 0: no reply was begun
    received_ms: int  #: wall clock, since 1970-01-01 UTC
    finished_ms: int  #: when this line was written
    authorized: bool  #: whether an authorization header came with it
    tokens: int = 0  #: of prompt and reply, as far as they count against a limit


class BatchAct(enum.StrEnum):
    """What was done at a batch endpoint."""

    UPLOADED = "uploaded"
    CREATED = "created"
    CANCELLED = "cancelled"
    LOST = "lost"  #: the reply that told of a new batch did not get out whole
    BILLED = "billed"  #: an item succeeded


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchLine:
    """One thing that was done; only what is billed has tokens."""

    act: BatchAct
    id: str  #: of the batch, or of the file that was uploaded
    at_ms: int  #: wall clock, since 1970-01-01 UTC
    requests: int = 0  #: of the batch, where it was created or cancelled
    custom_id: str = ""  #: of the item that is billed, as all that follows
    request: str = ""  #: SHA-256 of its body, hex
    model: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    half_price: bool = False


class Ledger:
    """Writes a ledger; without a file it keeps nothing."""

    def __init__(self, path: Path | None) -> None:
        try:
            # Unbuffered: a line is in the kernel's hands before its reply is.
            self._file = None if path is None else path.open("xb", buffering=0)
        except FileExistsError:
            raise UsageError(
                f"The ledger {path} exists already; move it away or name another."
            ) from None
        except OSError as error:
            raise UsageError(
                f"The ledger {path} cannot be written: {error.strerror}."
            ) from None

    def write(self, line: LedgerLine | BatchLine) -> None:
        """Add *line*."""
        if self._file is not None:
            self._file.write(msgspec.json.encode(line) + b"\n")

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


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
