"""The tuned script: one httpx client per slot, JSONL, no durability and no limits."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Iterator
from typing import TextIO

import httpx

from tests.bench.floor_prompts import Watch, Work, body, timed, work


async def worker(
    client: httpx.AsyncClient,
    url: str,
    numbers: Iterator[int],
    out: TextIO,
    watch: Watch,
) -> None:
    async with client:
        for number in numbers:
            response = await client.post(url, json=body(number))
            response.raise_for_status()
            text = response.json()["choices"][0]["message"]["content"]
            out.write(json.dumps({"id": number, "response": text}) + "\n")
            out.flush()
            watch.answered()


async def main(todo: Work) -> None:
    numbers = iter(range(todo.calls))
    # making a client reads the certificates, 20 ms each: not part of a call
    clients = [httpx.AsyncClient(timeout=60) for _ in range(todo.concurrency)]
    with tempfile.TemporaryFile("w") as out:
        watch = timed(todo)
        async with asyncio.TaskGroup() as group:
            for client in clients:
                group.create_task(worker(client, todo.url, numbers, out, watch))
        watch.stop()


if __name__ == "__main__":
    asyncio.run(main(work()))
