"""What people write: one shared httpx client, a semaphore's worth of workers, JSONL."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterator
from typing import TextIO

import httpx

from tests.bench.floor_prompts import Work, body, timed, work


async def worker(
    client: httpx.AsyncClient, url: str, numbers: Iterator[int], out: TextIO
) -> None:
    for number in numbers:
        response = await client.post(url, json=body(number))
        response.raise_for_status()
        text = response.json()["choices"][0]["message"]["content"]
        out.write(json.dumps({"id": number, "response": text}) + "\n")
        out.flush()


async def main(todo: Work) -> None:
    numbers = iter(range(todo.calls))
    limits = httpx.Limits(
        max_connections=todo.concurrency, max_keepalive_connections=todo.concurrency
    )
    with tempfile.TemporaryFile("w") as out:
        async with httpx.AsyncClient(limits=limits, timeout=60) as client:
            watch = timed(todo)
            async with asyncio.TaskGroup() as group:
                for _ in range(todo.concurrency):
                    group.create_task(worker(client, todo.url, numbers, out))
            watch.stop()


if __name__ == "__main__":
    asyncio.run(main(work()))
