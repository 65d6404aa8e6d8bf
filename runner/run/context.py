"""The context of a run: clock, environment, progress."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from runner.engine.background import Interruptible, obey_signals
from runner.engine.driver import Driver
from store.clock import Clock
from store.read.status import Status


class ProgressWatch(Protocol):
    """Shows the progress of a driver, inside an async context."""

    def __call__(
        self, driver: Driver, log: Path, before: Status
    ) -> AbstractAsyncContextManager[None]:
        """Return the context.

        Args:
            driver: what works on the run.
            log: the run's log.
            before: the run's status when the process started.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """The context of a run: clock, environment, and message receivers."""

    clock: Clock
    environment: Mapping[str, str]  #: with what .env adds; holds the keys
    runs_dir: Path
    notify: Callable[[str], None]  #: shows a message to the user
    launched: Callable[[], None]  #: called once, before the first call
    watch: ProgressWatch  #: shows progress while the driver works
    obey: Callable[[Interruptible, Callable[[str], None]], None] = obey_signals
    """Connects what interrupts the run, by default the signals of the process."""
    broker: str | None = None  #: HOST:PORT of the broker that lends limits and money
