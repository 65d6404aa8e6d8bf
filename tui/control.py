"""The only place of the monitor that writes: a line in a run's `control.jsonl`.

Where nothing may be asked, there is no `Control` at all: what does not exist cannot be
forgotten by a key, a palette command or a screen that is added later.
"""

from __future__ import annotations

import os
from typing import Protocol

from store.clock import Clock
from store.commands import Command, Payload, write
from store.runs import RunFolder


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


class FolderControl:
    """Writes for whoever runs the monitor."""

    def __init__(self, folder: RunFolder, clock: Clock) -> None:
        self._folder = folder
        self._clock = clock

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


def control_of(
    folder: RunFolder, clock: Clock, *, is_read_only: bool = False
) -> Control | None:
    """Who asks things of a run; None where only looking is wanted, or allowed."""
    if is_read_only or not os.access(folder.path, os.W_OK):
        return None
    return FolderControl(folder, clock)
