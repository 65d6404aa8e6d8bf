"""The only place of the monitor that has anything written into a run's folder.

It appends lines to `control.jsonl`, and has the command record a scoring.
Where nothing may be asked, there is no `Control` at all: what does not exist cannot be
forgotten by a key, a palette command or a screen that is added later.
"""

from __future__ import annotations

import os
from typing import Protocol

from store.clock import Clock
from store.commands import Command, Payload, write
from store.runs import RunFolder
from tui.sources.child import CommandChild


class Control(Protocol):
    """Asks things of one run."""

    def ask(self, kind: str, payload: Payload, expected_state: str | None) -> str:
        """Append one request; the id that its answers will name.

        Args:
            kind: of `runner.control.effects`.
            payload: what it names.
            expected_state: refused if the run is in another state by then.

        Raises:
            OSError: the file cannot be written.
        """
        ...

    async def score(self) -> str:
        """Score the stored answers once more; what came of it, in a few words.

        Raises:
            ChildFailed: they were not scored; the message says why.
        """
        ...

    def close(self) -> None:
        """End a scoring that is under way."""
        ...


class FolderControl:
    """Writes for whoever runs the monitor."""

    def __init__(self, folder: RunFolder, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock
        self._child = CommandChild()

    def ask(self, kind: str, payload: Payload, expected_state: str | None) -> str:
        """Append one request; the id that its answers will name."""
        command = Command.new(
            kind,
            payload,
            at_us=self._clock.now_us(),
            expected_state=expected_state,
        )
        write(self._folder, command)
        return command.id

    async def score(self) -> str:
        """Score the stored answers once more, in a process of its own."""
        (scored,) = await self._child.records("score", str(self._folder.path), "--json")
        return f"recorded as scoring {scored['scoring']}"

    def close(self) -> None:
        """End a scoring that is under way."""
        self._child.close()


def control_of(
    folder: RunFolder, clock: Clock, *, is_read_only: bool = False
) -> Control | None:
    """Who asks things of a run; None where only looking is wanted, or allowed."""
    if is_read_only or not os.access(folder.path, os.W_OK):
        return None
    return FolderControl(folder, clock)
