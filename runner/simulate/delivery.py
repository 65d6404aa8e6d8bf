"""Sends a reply as far as it is destined to get."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from aiohttp import web

from runner.simulate.fate import Fate, Outcome


async def deliver(
    request: web.BaseRequest,
    reply: web.Response,
    destined: Fate,
    note: Callable[[Outcome], None],
) -> None:
    """Send *reply* and tell what became of it.

    Args:
        request: What is answered.
        reply: The answer, at best.
        destined: Whether it is to arrive, and after how long.
        note: Told the outcome before the first byte leaves, and `GONE` in the end
            where the client left.
    """
    outcome = destined.outcome
    try:
        await asyncio.sleep(destined.latency_s)
        transport = request.transport
        if transport is None or transport.is_closing():
            raise ConnectionResetError
        note(outcome)
        if outcome is Outcome.HANG:
            await asyncio.Event().wait()
        if outcome is Outcome.DROPPED:
            await _cut(request, reply, destined.shape)
            return
        # Draining then waits for the last byte: "answered" means all of it.
        transport.set_write_buffer_limits(high=0)
        await reply.prepare(request)
        await reply.write_eof()
        if transport.is_closing():
            raise ConnectionResetError
    except (asyncio.CancelledError, ConnectionError) as error:
        if outcome is not Outcome.HANG:
            note(Outcome.GONE)
        if isinstance(error, asyncio.CancelledError):
            raise


async def _cut(request: web.BaseRequest, reply: web.Response, shape: float) -> None:
    """Break the connection: before the reply, or in its middle."""
    body = reply.body
    if shape < 0.5 and isinstance(body, bytes):  # noqa: PLR2004 - half of the cut ones
        half = web.StreamResponse(headers={"content-length": str(len(body))})
        await half.prepare(request)
        await half.write(body[: len(body) // 2])
    if request.transport is not None:
        request.transport.abort()
