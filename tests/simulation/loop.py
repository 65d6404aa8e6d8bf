"""The virtual loop of a simulation: it counts its turns, and a heartbeat moves nothing.

Whatever awaits goes on in a later turn of the loop, so a crash between two turns is a
crash at an `await`; inside a turn nothing is made durable and nothing is sent twice.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from itertools import count

from tests.runner.toy_jobs import START_US, VirtualLoop


class SimulatedLoop(VirtualLoop):
    """Tells of each turn, and of each sleep, before it comes."""

    def __init__(
        self, on_turn: Callable[[], None], on_sleep: Callable[[float], None]
    ) -> None:
        """*on_turn* may end processes; *on_sleep* is told until when."""
        self._now = 0.0
        self._on_turn = on_turn
        self._on_sleep = on_sleep
        self.dozing: list[tuple[float, int, asyncio.Future[None]]] = []
        super().__init__()

    def time(self) -> float:
        """Virtual seconds."""
        return self._now

    @property
    def virtual_now(self) -> float:
        """The same."""
        return self._now

    @virtual_now.setter
    def virtual_now(self, when: float) -> None:
        if when > self._now:
            self._on_sleep(when)
            self._now = when

    def _run_once(self) -> None:
        self._on_turn()
        while self.dozing and self.dozing[0][0] <= self._now:
            _when, _order, woken = heapq.heappop(self.dozing)
            if not woken.done():
                woken.set_result(None)
        super()._run_once()


class SimulatedClock:
    """The loop's clock; who sleeps by it is woken only where time passes anyway.

    A heartbeat and a poll for commands go on for ever: as timers of the loop they would
    hide that nothing else will ever happen again.
    """

    def __init__(self, loop: SimulatedLoop) -> None:
        self._loop = loop
        self._order = count()

    def now_us(self) -> int:
        """Wall clock, microseconds since 1970-01-01 UTC."""
        return START_US + round(self._loop.virtual_now * 1e6)

    def monotonic(self) -> float:
        """Virtual seconds."""
        return self._loop.virtual_now

    async def sleep_until(self, when: float) -> None:
        """Sleep until time has passed *when*."""
        woken: asyncio.Future[None] = self._loop.create_future()
        heapq.heappush(self._loop.dozing, (when, next(self._order), woken))
        await woken
