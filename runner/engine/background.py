"""Runs work alongside a block, wakes runs that share, and obeys signals.

Runs share endpoints or a budget. What one of them gives back, a slot, a share of the
minute, reserved money, another may wait for.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any, Protocol


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

    def unregister(self, call: asyncio.Event) -> None:
        """Wake that one no more."""
        self._calls.remove(call)

    def wake_all(self, *, by: asyncio.Event | None = None) -> None:
        """Wake all, but whoever it is rung *by*."""
        for call in self._calls:
            if call is not by:
                call.set()


STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


class Interruptible(Protocol):
    """A run at work, or several."""

    def drain(self) -> None:
        """Start nothing more; calls in flight get the grace time."""
        ...

    def stop(self) -> None:
        """End at once."""
        ...


def obey_signals(worker: Interruptible, notify: Callable[[str], None]) -> None:
    """Drain at the first signal, stop at the second.

    A terminal that is closed only ever drains: its hang-up comes twice, from the shell
    and from the kernel, and nobody meant the second. Where a hang-up is ignored
    (nohup), it stays so.
    """
    loop = asyncio.get_running_loop()
    seen: list[int] = []

    def obey(number: int) -> None:
        seen.append(number)
        if len(seen) == 1:
            notify("Finishing the calls in flight; press again to stop at once.")
            worker.drain()
        else:
            worker.stop()

    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, obey, number)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        loop.add_signal_handler(signal.SIGHUP, worker.drain)
