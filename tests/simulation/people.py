"""The people around a run: they ask things of it, and look after it when it stops."""

from __future__ import annotations

import random

from runner.run.end import REASON
from store.control import Command
from store.task import pico
from tests.simulation.loop import SimulatedClock, SimulatedLoop
from tests.simulation.process import Orders
from tests.simulation.provider import Provider
from tests.simulation.scenario import BUDGET, LIMITS, PAUSE, RETRY, Act, Scenario

SOON_S = 1.0
"""A process looks for commands twice a second."""
LATER_S = (SOON_S, 4.0, 16.0, 64.0)
"""Where the log is slow, it may still be busy with the command before."""


class Operator:
    """Writes the commands of one run."""

    def __init__(
        self,
        scenario: Scenario,
        loop: SimulatedLoop,
        clock: SimulatedClock,
        provider: Provider,
    ) -> None:
        self._scenario = scenario
        self._loop = loop
        self._clock = clock
        self._provider = provider
        self._chance = random.Random(f"operator {scenario.seed}")
        self.commands: list[Command] = []

    def ask(self, kind: str, **payload: str | float | bool | None) -> None:
        """Ask something of the run, alive or not."""
        self.commands.append(
            Command(
                id=f"c{len(self.commands) + 1}",
                author="somebody",
                host="here",
                at_us=self._clock.now_us(),
                kind=kind,
                payload=payload,
            )
        )
        # the poll is no timer, so time has to pass for another reason
        for delay_s in LATER_S:
            self._loop.call_later(delay_s, lambda: None)

    def act(self, act: Act) -> None:
        """Ask what an act stands for."""
        chance = random.Random(act.chance)
        lane = chance.choice(self._scenario.lanes)
        if act.kind == PAUSE:
            self._pause(chance, lane.model)
        elif act.kind == LIMITS:
            slots = chance.choice((1, 2, 5, 20))
            self._provider.allow(lane.model, slots)
            self.ask(LIMITS, model=lane.model, concurrency=slots)
        elif act.kind == BUDGET:
            self.add_money()
        else:
            self.ask(act.kind, now=chance.random() < 0.5)

    def _pause(self, chance: random.Random, model: str) -> None:
        scope: dict[str, str | float | bool | None] = {
            "stage": chance.choice((None, "read", "ask")),
            "model": chance.choice((None, model)),
        }
        self.ask(PAUSE, **scope)
        lifted = chance.choice((scope, {}))
        # a little late, so that nobody waits for a run that is paused for good
        self._loop.call_later(
            SOON_S + chance.choice((0.0, 5.0, 300.0)),
            lambda: self.ask("resume", **lifted),
        )

    def add_money(self) -> None:
        """Raise the cap of a run that has one."""
        amount_usd = self._chance.choice((0.004, 0.05))
        if self._provider.cap_pico is not None:
            self._provider.cap_pico += pico(amount_usd)
        self.ask(BUDGET, add_usd=amount_usd)

    def orders(self, ended: str, *, is_cancelled: bool) -> Orders:
        """What to start the next process with, after one that ended so."""
        if ended == "budget":
            self.add_money()
        if is_cancelled:  # and nothing else would bring its tasks back
            self.ask(RETRY, reason=REASON)
        return Orders(
            holds=ended != "held" and self._chance.random() < self._scenario.holds,
            rereads=self._chance.random() < self._scenario.rereads,
        )
