"""Requests to a run from outside, as lines of its `control.jsonl`.

No second process ever writes to the log. Whoever wants something appends one line here;
the run's own process reads on from where it was, and answers with events. A line is
appended under a lock of the file, after a newline if somebody's crash left the line
before it unfinished: that one then spoils nothing but itself.
"""

from __future__ import annotations

import fcntl
import getpass
import os
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import msgspec

from store.runs import RunFolder

Payload: TypeAlias = Mapping[str, str | int | float | bool | None]
"""What a request names beside its kind: a stage, a filter, a number."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What somebody asks of a run."""

    id: str  #: unique; a command is carried out once, however often it is read
    author: str
    host: str
    at_us: int
    kind: str  #: "pause", "drain", "retry", ...
    payload: Payload = field(default_factory=dict)
    expected_state: str | None = None  #: refuse if the run is in another state by then

    @classmethod
    def new(
        cls, kind: str, payload: Payload, *, at_us: int, expected_state: str | None
    ) -> Command:
        """A request of whoever runs this process, not yet written."""
        return cls(
            id=uuid.uuid4().hex,
            author=_author(),
            host=os.uname().nodename,
            at_us=at_us,
            kind=kind,
            payload=payload,
            expected_state=expected_state,
        )


def _author() -> str:
    """Who asks; a container may know nobody by that number."""
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return f"uid {os.getuid()}"


def withdrawals(commands: Iterable[Command]) -> dict[str, Command]:
    """Who takes a request back first, by the id of the request."""
    found: dict[str, Command] = {}
    for command in commands:
        if command.kind == "withdraw":
            found.setdefault(str(command.payload.get("id")), command)
    return found


_DECODER = msgspec.json.Decoder(Command)


def write(folder: RunFolder, command: Command) -> None:
    """Ask *command* of a run; nothing waits for the answer."""
    line = msgspec.json.encode(command) + b"\n"
    with folder.control.open("ab+", buffering=0) as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # until the file is closed
        if (end := file.seek(0, os.SEEK_END)) and os.pread(
            file.fileno(), 1, end - 1
        ) != b"\n":
            line = b"\n" + line
        # one call as a rule; what a full disk cut off raises with the next one
        while line:
            line = line[file.write(line) :]


def hand_on(folder: RunFolder, line: bytes) -> None:
    """Write down what was asked of the run elsewhere, where it does not stand yet.

    Raises:
        ValueError: *line* is no request.
    """
    try:
        command = _DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"this is no request: {error}") from error
    if command.id not in {each.id for each in CommandTail(folder.control).read()}:
        write(folder, command)


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
