"""Requests to a run from outside, as lines of its `control.jsonl`.

No second process ever writes to the log. Whoever wants something appends one line here;
the run's own process reads on from where it was, and answers with events. A line is
written by a single call in append mode, with a newline before and after it: a line that
somebody's crash left unfinished then spoils nothing but itself.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from store.runs import RunFolder


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What somebody asks of a run."""

    id: str  #: unique; a command is carried out once, however often it is read
    author: str
    host: str
    at_us: int
    kind: str  #: "pause", "drain", "retry", ...
    payload: dict[str, str | int | float | bool | None] = field(default_factory=dict)
    expected_state: str | None = None  #: refuse if the run is in another state by then


_DECODER = msgspec.json.Decoder(Command)


def write(folder: RunFolder, command: Command) -> None:
    """Ask *command* of a run; nothing waits for the answer."""
    line = b"\n" + msgspec.json.encode(command) + b"\n"
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
    descriptor = os.open(folder.control, flags, 0o644)
    try:
        os.write(descriptor, line)
    finally:
        os.close(descriptor)


class CommandTail:
    """Reads on in a `control.jsonl` from where it was.

    A line without its newline is left for the next time; a line that is no command is
    passed over and counted in `unreadable`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._position = 0
        self.unreadable = 0

    def read(self) -> list[Command]:
        """What was asked since the last call."""
        try:
            with self._path.open("rb") as file:
                file.seek(self._position)
                added = file.read()
        except FileNotFoundError:
            return []
        whole = added[: added.rfind(b"\n") + 1]
        self._position += len(whole)
        commands = []
        for line in filter(None, whole.split(b"\n")):
            try:
                commands.append(_DECODER.decode(line))
            except (msgspec.DecodeError, UnicodeDecodeError):
                self.unreadable += 1
        return commands
