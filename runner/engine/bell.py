"""Wakes the runs of one process that share endpoints or a budget.

What one of them gives back, a slot, a share of the minute, reserved money, another may
wait for.
"""

from __future__ import annotations

import asyncio


class Bell:
    """One wake-up call for each run; a run on its own has one to itself."""

    def __init__(self) -> None:
        self._calls: list[asyncio.Event] = []

    def hang(self) -> asyncio.Event:
        """A wake-up call more."""
        call = asyncio.Event()
        self._calls.append(call)
        return call

    def take_down(self, call: asyncio.Event) -> None:
        """Wake that one no more."""
        self._calls.remove(call)

    def ring(self, *, by: asyncio.Event | None = None) -> None:
        """Wake all, but whoever it is rung *by*."""
        for call in self._calls:
            if call is not by:
                call.set()
