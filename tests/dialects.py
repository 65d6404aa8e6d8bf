"""A simulated endpoint of any dialect in this process, for clients of any kind.

`dialect` serves from a thread, so that a client that blocks, or a command of its own
process, can call it; a test that runs a loop uses `runner.simulate.server.simulated`,
which does the same without a thread. Both keep the ledger in memory; `ledger.bill()` is
what the provider charges.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from queue import SimpleQueue
from typing import Any

from runner.errors import UsageError
from runner.simulate.options import SimulateOptions
from runner.simulate.server import Simulated, simulated


@contextmanager
def dialect(name: str, **options: Any) -> Iterator[Simulated]:
    """Serve the dialect *name* until the context ends."""
    ready: SimpleQueue[Simulated | UsageError] = SimpleQueue()
    loop, stop = asyncio.new_event_loop(), asyncio.Event()

    async def serve() -> None:
        try:
            settings = SimulateOptions(dialect=name, **options)
            async with simulated(settings) as endpoint:
                ready.put(endpoint)
                await stop.wait()
        except UsageError as error:
            ready.put(error)

    def run() -> None:
        with asyncio.Runner(loop_factory=lambda: loop) as runner:
            runner.run(serve())

    thread = threading.Thread(target=run, name=f"dialect {name}")
    thread.start()
    endpoint = ready.get(timeout=30)
    if isinstance(endpoint, UsageError):
        thread.join()
        raise endpoint
    try:
        yield endpoint
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(timeout=30)
        assert not thread.is_alive()
