"""What the runs of one process have in common: endpoints, money, the signals they obey.

A run on its own is in nobody's company.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from runner.clients.route import is_offline
from runner.engine.bell import Bell
from runner.engine.driver import Driver
from runner.engine.scheduler import Scheduler
from runner.job import Job
from runner.leasing.holder import Holder
from runner.limits.limiter import Endpoint, Limits
from runner.money.budget import Budget
from runner.options import RunOptions
from runner.roles import assigned


class Company:
    """Runs of one process that share endpoints and, if there is one, a budget."""

    def __init__(
        self,
        limits: Mapping[str, Limits] | None = None,
        budget: Budget | None = None,
        *,
        holder: Holder | None = None,
    ) -> None:
        """Nobody is at work yet.

        Args:
            limits: what a person set for whole endpoints, by address.
            budget: what all runs together may cost; None: each has its own.
            holder: what a broker lends this process; None: it has all to itself.
        """
        self.budget = budget
        self.bell = Bell()
        self._limits = limits or {}
        self._holder = holder
        self._endpoints: dict[str, Endpoint] = {}
        self._drivers: list[Driver] = []
        self._is_draining = False
        self._is_stopping = False

    def scheduler(self, job: Job, options: RunOptions, own: Budget) -> Scheduler:
        """The scheduler of a run; *own* is its money where none is shared."""
        roles = assigned(job, options)
        lanes = [
            (
                model,
                roles.stages_of(job, model),
                options.limits_of(model),
                self._endpoint(options.endpoint_of(model), model),
            )
            for model in roles.all_models
        ]
        return Scheduler(
            lanes,
            deadline_s=options.deadline_s,
            budget=self._money(own),
            fence=self._holder,
        )

    def _money(self, own: Budget) -> Budget:
        """What pays for a run whose *own* money is known."""
        if self.budget is not None:
            return self.budget
        if self._holder is not None and own.statistics().cap_pico is not None:
            return self._holder.allowance
        return own

    def _endpoint(self, name: str, model: str) -> Endpoint:
        """Where a model is asked; what is offline is a function of one run's job."""
        if is_offline(model):
            return Endpoint(name)
        if name not in self._endpoints:
            limits = self._limits.get(name)
            self._endpoints[name] = Endpoint(name, limits, lender=self._holder)
        return self._endpoints[name]

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
