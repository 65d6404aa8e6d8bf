"""The endpoint's own record of what it served, to be held against a run's log.

A request gets its line before the first byte of its reply leaves. Only where the
client turns out to have gone before the last byte was out, a second line with the same
`n` says so: the last line of a request counts. Keys are never written, only whether
there was one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from runner.errors import UsageError
from runner.simulate.fate import Outcome


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

    def write(self, line: LedgerLine) -> None:
        """Add *line*."""
        if self._file is not None:
            self._file.write(msgspec.json.encode(line) + b"\n")

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


def read_ledger(path: Path) -> list[LedgerLine]:
    """What the ledger at *path* says at last of each request, in order of arrival."""
    lines = {line.n: line for line in _lines(path)}
    return [lines[n] for n in sorted(lines)]


def _lines(path: Path) -> Iterator[LedgerLine]:
    decoder = msgspec.json.Decoder(LedgerLine)
    with path.open("rb") as file:
        for line in file:
            yield decoder.decode(line)
