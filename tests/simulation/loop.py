"""The virtual loop of a simulation: it counts its turns, and a heartbeat moves nothing.

Whatever awaits goes on in a later turn of the loop, so a crash between two turns is a
crash at an `await`; inside a turn nothing is made durable and nothing is sent twice.
"""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from itertools import count

from runner.testing import START_US, VirtualLoop


class SimulatedLoop(VirtualLoop):
    """Tells `on_turn` before each turn, which may end processes in it."""

    def __init__(self, on_turn: Callable[[], None]) -> None:
        self.on_turn = on_turn
        self.dozing: list[tuple[float, int, asyncio.Future[None]]] = []
        super().__init__()

    def _run_once(self) -> None:
        self.on_turn()
        while self.dozing and self.dozing[0][0] <= self.virtual_now:
            _when, _order, woken = heapq.heappop(self.dozing)
            if not woken.done():
                woken.set_result(None)
        super()._run_once()  # type: ignore[misc] - asyncio's own, one turn of the loop


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
