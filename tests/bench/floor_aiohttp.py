"""aiohttp as its documentation shows it: one session, JSON decoded, nothing written."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import aiohttp

from tests.bench.floor_prompts import Watch, Work, body, timed, work


async def worker(
    session: aiohttp.ClientSession, url: str, numbers: Iterator[int], watch: Watch
) -> None:
    for number in numbers:
        async with session.post(url, json=body(number)) as response:
            response.raise_for_status()
            reply = await response.json()
        assert reply["choices"][0]["message"]["content"]
        watch.answered()


async def main(todo: Work) -> None:
    numbers = iter(range(todo.calls))
    connector = aiohttp.TCPConnector(limit=todo.concurrency)
    async with aiohttp.ClientSession(connector=connector) as session:
        watch = timed(todo)
        async with asyncio.TaskGroup() as group:
            for _ in range(todo.concurrency):
                group.create_task(worker(session, todo.url, numbers, watch))
        watch.stop()


if __name__ == "__main__":
    asyncio.run(main(work()))
