"""What surrounds a run at work: clock, environment, progress, signals."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from runner.engine.driver import Driver
from runner.engine.planner import Planner
from store.clock import Clock
from store.read.status import Status


class ProgressWatch(Protocol):
    """Shows how a driver gets on, inside an async context."""

    def __call__(
        self, driver: Driver, planner: Planner, before: Status
    ) -> AbstractAsyncContextManager[None]:
        """The context; *before* is how the run stood when the process began."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """What surrounds a run: clock, environment, and who is told of things."""

    clock: Clock
    environment: Mapping[str, str]  #: with what .env adds; holds the keys
    runs_dir: Path
    notify: Callable[[str], None]  #: a sentence for people
    launched: Callable[[], None]  #: told once, before the first call
    watch: ProgressWatch  #: shows progress while the driver works
    broker: str | None = None  #: HOST:PORT of who lends a shard its limits and money


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
            notify("Finishing the calls in flight; once more to stop at once.")
            worker.drain()
        else:
            worker.stop()

    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, obey, number)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        loop.add_signal_handler(signal.SIGHUP, worker.drain)
