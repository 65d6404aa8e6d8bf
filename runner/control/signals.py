"""What signals mean to a run: finish the calls in flight, or stop at once."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable
from typing import Protocol

ASKING = (signal.SIGINT, signal.SIGTERM, signal.SIGUSR1)


class Worker(Protocol):
    """A run at work, or several."""

    def drain(self) -> None:
        """Start nothing more; calls in flight get the grace time."""
        ...

    def stop(self) -> None:
        """End at once."""
        ...


def obey_signals(worker: Worker, tell: Callable[[str], None]) -> None:
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
            tell("Finishing the calls in flight; once more to stop at once.")
            worker.drain()
        else:
            worker.stop()

    for number in ASKING:
        loop.add_signal_handler(number, obey, number)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        loop.add_signal_handler(signal.SIGHUP, worker.drain)
