"""Runs work alongside a block, wakes runs that share, and obeys signals.

Runs can share endpoints or a budget, so a slot, rate credit or money that one releases
may be what another waits for.
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

    An error of either ends both and is raised without an exception group, because
    callers catch it by class.
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
    """Wake-up calls of runs; a single run has its own."""

    def __init__(self) -> None:
        self._calls: list[asyncio.Event] = []

    def register(self) -> asyncio.Event:
        """Return a new wake-up call."""
        call = asyncio.Event()
        self._calls.append(call)
        return call

    def unregister(self, call: asyncio.Event) -> None:
        """Stop waking that call."""
        self._calls.remove(call)

    def wake_all(self, *, by: asyncio.Event | None = None) -> None:
        """Wake all except the caller *by*."""
        for call in self._calls:
            if call is not by:
                call.set()


STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


class Interruptible(Protocol):
    """One or several live runs."""

    def drain(self) -> None:
        """Start nothing more; calls in flight get the grace time."""
        ...

    def stop(self) -> None:
        """End at once."""
        ...


def obey_signals(worker: Interruptible, notify: Callable[[str], None]) -> None:
    """Drain at the first signal, stop at the second.

    A closed terminal only drains: its hang-up arrives twice, from the shell and from
    the kernel, and the second must not stop the run. If hang-ups are ignored (nohup),
    they stay ignored.
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
