"""Runs work alongside a block, and wakes runs that share endpoints or a budget.

What one of them gives back, a slot, a share of the minute, reserved money, another may
wait for.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager
from typing import Any


@asynccontextmanager
async def run_alongside(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run *work* while the body runs; cancel it when the body ends.

    An error of either ends both and comes out bare, not in an exception group: there
    are only two parties, and whoever catches it wants to know its class.
    """
    try:
        async with asyncio.TaskGroup() as group:
            task = group.create_task(work)
            try:
                yield
            finally:
                task.cancel()
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from errors.exceptions[0].__cause__


class WakeUps:
    """One wake-up call for each run; a run on its own has one to itself."""

    def __init__(self) -> None:
        self._calls: list[asyncio.Event] = []

    def register(self) -> asyncio.Event:
        """A wake-up call more."""
        call = asyncio.Event()
        self._calls.append(call)
        return call

    def take_down(self, call: asyncio.Event) -> None:
        """Wake that one no more."""
        self._calls.remove(call)

    def wake_all(self, *, by: asyncio.Event | None = None) -> None:
        """Wake all, but whoever it is rung *by*."""
        for call in self._calls:
            if call is not by:
                call.set()
