"""Serves until a signal says stop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable

from runner.simulate.options import SimulateOptions
from runner.simulate.server import running


async def serve(options: SimulateOptions, announce: Callable[[str], object]) -> None:
    """Serve as *options* say, from one call of *announce* to SIGINT or SIGTERM."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signum in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(signum, stop.set)
    async with running(options) as base_url:
        announce(base_url)
        await stop.wait()
