"""What the runs of one process have in common: endpoints, money, the signals they obey.

A run on its own is in nobody's company.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from runner.clients.route import is_offline
from runner.engine.bell import Bell
from runner.engine.driver import Driver
from runner.limits.limiter import Endpoint, Limits
from runner.money.budget import Budget
from runner.options import RunOptions


class Company:
    """Runs of one process that share endpoints and, if there is one, a budget."""

    def __init__(
        self, limits: Mapping[str, Limits] | None = None, budget: Budget | None = None
    ) -> None:
        """Nobody is at work yet.

        Args:
            limits: what a person set for whole endpoints, by address.
            budget: what all runs together may cost; None: each has its own.
        """
        self.budget = budget
        self.bell = Bell()
        self._limits = limits or {}
        self._endpoints: dict[str, Endpoint] = {}
        self._drivers: list[Driver] = []
        self._is_draining = False
        self._is_stopping = False

    def endpoints(self, options: RunOptions) -> Mapping[str, Endpoint]:
        """The endpoint of each model of a run; the run's own of what is offline."""
        own: dict[str, Endpoint] = {}
        found = {}
        for model in options.asked:
            name = options.endpoint_of(model)
            shared = own if is_offline(model) else self._endpoints
            if name not in shared:
                shared[name] = Endpoint(name, self._limits.get(name))
            found[model] = shared[name]
        return found

    @contextmanager
    def joined(self, driver: Driver) -> Iterator[None]:
        """Hear signals as the others do while the body runs, earlier ones too."""
        self._drivers.append(driver)
        if self._is_draining:
            driver.drain()
        if self._is_stopping:
            driver.stop()
        try:
            yield
        finally:
            self._drivers.remove(driver)

    def drain(self) -> None:
        """Start nothing more in any run; calls in flight get the grace time."""
        self._is_draining = True
        for driver in self._drivers:
            driver.drain()

    def stop(self) -> None:
        """End every run at once."""
        self._is_draining = self._is_stopping = True
        for driver in self._drivers:
            driver.stop()
