"""The one source of time; everything else is given the time it needs.

Contains only clocks, and how a time is written. A module that needs the time takes a
`Clock`, so a test can run hours of work in milliseconds.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """The time functions that the log writer, driver and simulator need."""

    def now_us(self) -> int:
        """Wall clock, microseconds since 1970-01-01 UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; never goes backwards."""
        ...

    async def sleep_until(self, when: float) -> None:
        """Return once `monotonic()` has reached *when*."""
        ...


class SystemClock:
    """The clock of the machine."""

    def now_us(self) -> int:
        """Wall clock, microseconds since 1970-01-01 UTC."""
        return time.time_ns() // 1000

    def monotonic(self) -> float:
        """Seconds of the machine's monotonic clock."""
        return time.monotonic()  # noqa: TID251 - this is the Clock

    async def sleep_until(self, when: float) -> None:
        """Sleep on the event loop until *when*; at least one turn of the loop."""
        # commands that only read a log do without it: a tenth of `status`
        import asyncio  # noqa: PLC0415

        await asyncio.sleep(max(0.0, when - self.monotonic()))


def iso_time(at_us: int) -> str:
    """Return a time in UTC, to the second; *at_us* counts microseconds since 1970."""
    return datetime.fromtimestamp(at_us // 1_000_000, UTC).isoformat()
