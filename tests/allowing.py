"""A server that allows so much, and an engine that finds it out, in virtual minutes.

The server's own rules are those of `siftlog simulate`, the engine's the real scheduler
and limiter; only sockets, log and time are left out.
"""

from __future__ import annotations

import heapq
import os
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Final

from runner import errors as e
from runner.clients.refusals import refusal
from runner.engine.model_queue import QueuedTask
from runner.engine.scheduler import Scheduler
from runner.limits.limiter import Endpoint, Limits
from runner.limits.rate_limits import header_limits
from runner.simulate.options import SimulatedLimits as ServerLimits
from runner.simulate.options import SimulateOptions, retry_after

LATE_S = 0.004
"""A loop's timers are late by up to so much."""


def seeds(n: int) -> range:
    """What a share is proven with; `make test` takes the first of them."""
    return range(n if "SIFTLOG_PROVE" in os.environ else 1)


SOME: Final = slice(None, None, 1 if "SIFTLOG_PROVE" in os.environ else 3)
"""Which of many cases are run: every third one in `make test`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the server allows, from a moment on."""

    since_s: float = 0.0
    rps: float | None = None
    tpm: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Minute:
    """What the server did in one minute."""

    served: int
    refused: int
    tokens: int  #: of what was served
    by_model: Mapping[str, int]

    @property
    def refused_share(self) -> float:
        """429s by requests."""
        return self.refused / max(1, self.served + self.refused)


@dataclass(slots=True, kw_only=True)
class World:
    """One run against one server."""

    rules: Sequence[Rules]
    models: Mapping[str, Limits]
    with_headers: bool = False
    waits: str = "ms"  #: how a 429 tells its wait: "ms", "s" or "" for not at all
    latency_s: tuple[float, float] = (0.15, 0.4)
    tokens: tuple[int, int] = (100, 100)  #: of a request: between these
    on_the_way_s: float = 0.002  #: of a request to the server, or a reply from it
    chance: float = 0.0  #: share of refusals that have nothing to do with a rate
    slots: int | None = None  #: calls at a time that the server takes
    status: int = 429  #: of the refusals by chance, and for want of slots
    apart: Mapping[str, float] = field(default_factory=dict)
    #: what a model has for itself, in shares of the rules; none: all share them
    seed: int = 0
    ledger: list[tuple[float, str, bool, int]] = field(default_factory=list)

    def run(self, minutes: int) -> list[Minute]:
        """Send as much as the engine will; the server's account, minute by minute."""
        _Run(self).until(60.0 * minutes)
        found = []
        for minute in range(minutes):
            lines = [x for x in self.ledger if minute <= x[0] / 60 < minute + 1]
            served = [x for x in lines if x[2]]
            found.append(
                Minute(
                    served=len(served),
                    refused=len(lines) - len(served),
                    tokens=sum(x[3] for x in served),
                    by_model=Counter(x[1] for x in served),
                )
            )
        return found


class _Run:
    def __init__(self, world: World) -> None:
        self.world = world
        self.random = random.Random(world.seed)
        self.now = 0.0
        endpoint = Endpoint("simulated")
        self.scheduler = Scheduler(
            [(m, ("only",), limits, endpoint) for m, limits in world.models.items()],
            deadline_s=1e9,
        )
        self.rules = list(world.rules)
        self.servers = self._servers()
        self.serving = 0
        self.order = count()
        self.numbers = count(1)
        self.events: list[tuple[float, int, str, QueuedTask, object]] = []

    def _servers(self) -> dict[str, ServerLimits]:
        """The limits of every model; one for all, or one each."""
        rules, world = self.rules.pop(0), self.world

        def limits(share: float) -> ServerLimits:
            options = SimulateOptions(
                rps=rules.rps and rules.rps * share,
                tpm=rules.tpm and rules.tpm * share,
                limit_headers=world.with_headers,
            )
            return ServerLimits(options, self.now)

        shared = limits(1.0)
        return {
            model: limits(world.apart[model]) if world.apart else shared
            for model in world.models
        }

    def _at(
        self, delay: float, kind: str, work: QueuedTask, what: object = None
    ) -> None:
        event = (self.now + delay, next(self.order), kind, work, what)
        heapq.heappush(self.events, event)

    def until(self, end: float) -> None:
        while self.now < end:
            step = self.scheduler.step(self.now)
            for load in step.load:
                works = [
                    QueuedTask(
                        number=next(self.numbers),
                        stage="only",
                        model=load.model,
                        prior_attempts=0,
                        tokens=2 * self.random.randint(*self.world.tokens)
                        if self.scheduler.counts_tokens(load.model)
                        else 0,
                    )
                    for _ in range(load.limit)
                ]
                due = [(work, float("-inf")) for work in works]
                self.scheduler.loaded(load, due, last=works[-1].number)
            for work in step.start:
                self._at(self.world.on_the_way_s, "arrives", work)
            if not step.load:
                # what the server does changes nothing for the scheduler
                while not self._advance(step.wake_at) and self.now < end:
                    pass

    def _advance(self, wake_at: float | None) -> bool:
        """Go on to what happens next; return whether the scheduler sees it."""
        first = self.events[0][0] if self.events else float("inf")
        wake = wake_at if wake_at is not None else float("inf")
        if wake < first:
            self.now = min(wake + self.random.random() * LATE_S, max(first, wake))
            return True
        self.now, _, kind, work, what = heapq.heappop(self.events)
        if kind == "arrives":
            self._arrives(work)
        elif kind == "is served":
            self._is_served(work, what)
        else:
            self._comes_back(work, what)
        return kind == "comes back"

    def _arrives(self, work: QueuedTask) -> None:
        world = self.world
        if self.rules and self.now >= self.rules[0].since_s:
            self.servers = self._servers()
        server = self.servers[work.model]
        tokens = self.random.randint(*world.tokens)
        is_full = world.slots is not None and self.serving >= world.slots
        by_chance = self.random.random() < world.chance
        status = world.status
        wait_s = 0.1 if by_chance else 0.5 if is_full else None
        if wait_s is None:
            status, wait_s = 429, server.admit(tokens, self.now)
        headers = server.headers(self.now)
        world.ledger.append((self.now, work.model, not wait_s, tokens))
        if not wait_s:
            self.serving += 1
            latency = self.random.uniform(*world.latency_s)
            self._at(latency, "is served", work, (headers, tokens))
            return
        waits = retry_after(wait_s)
        if world.waits != "ms":
            del waits["retry-after-ms"]
        if not world.waits:
            waits.clear()
        error = refusal("simulated", status, headers | waits, b"", now_us=0)
        self._at(world.on_the_way_s, "comes back", work, error)

    def _is_served(self, work: QueuedTask, what: object) -> None:
        self.serving -= 1
        self._at(self.world.on_the_way_s, "comes back", work, what)

    def _comes_back(self, work: QueuedTask, what: object) -> None:
        if isinstance(what, e.AttemptError):
            decision, _ = self.scheduler.failed(
                work,
                what,
                self.now,
                self.random.random(),
                header_limits=header_limits(what.headers, now_us=0),
            )
            wait = decision.retry_in_s
            retry_at = None if wait is None else self.now + wait
            self.scheduler.settled(work, retry_at=retry_at)
            return
        assert isinstance(what, tuple)
        headers, tokens = what
        self.scheduler.received(
            work, self.now, used=tokens, header_limits=header_limits(headers, now_us=0)
        )
        self.scheduler.settled(work)
